"""An iterator that a thread reads ahead."""

from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

_PAUSE = 0.05  # seconds between two looks at whether somebody still waits


class ReadAhead:
    """Up to `count` items of an iterator, read by a thread before they are asked for.

    The thread ends when this is closed. One that hangs in the iterator is left behind, and ends with the process.
    """

    def __init__(self, iterator: Iterator[Any], count: int):
        self._items: Queue[tuple[Any, BaseException | None]] = Queue(count)
        self._error: BaseException | None = None
        self._closed = Event()
        self._thread = Thread(target=self._pump, args=(iterator,), name="contourmc batches", daemon=True)
        self._thread.start()

    def next(self, stopped: Callable[[], bool]) -> Any:
        """The next item, or the error that the iterator raised; an InterruptedError if waiting for it is `stopped`."""
        while self._error is None:
            if stopped():
                raise InterruptedError("reading was stopped")
            try:
                item, self._error = self._items.get(timeout=_PAUSE)
            except Empty:
                continue
            if self._error is None:
                return item
        raise self._error

    def close(self) -> None:
        self._closed.set()
        self._thread.join(1.0)  # no longer: the iterator may hang

    def _pump(self, iterator: Iterator[Any]) -> None:
        try:
            while not self._closed.is_set():
                self._put((next(iterator), None))
        except BaseException as error:
            self._put((None, error))

    def _put(self, item: tuple[Any, BaseException | None]) -> None:
        while not self._closed.is_set():
            try:
                return self._items.put(item, timeout=_PAUSE)
            except Full:
                pass
