"""Batches from any iterable, read ahead by a thread."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from queue import Full, Queue
from threading import Event, Thread
from typing import Any

import jax
import numpy as np

from contourmc._core.checks import require, require_finite
from contourmc.data.host_callback import Reader
from contourmc.data.memmap_reader import canonical


class BatchStream(Reader):
    """Gives each step its batch: the batches of an iterable in order, from the beginning again when it ends.

    A batch is kept until no step will request it again. Every session starts at the beginning of the iterable; an
    iterator, which can be used only once, goes on where it stopped.

    batches: an iterable, or a function that gives one.
    prefetch: how many batches are read ahead.
    check: a function that raises if something is wrong with a batch.
    """

    def __init__(
        self, batches: Iterable[Any] | Callable[[], Iterable[Any]], prefetch: int, check: Callable[[Any], Any]
    ):
        self._batches, self._prefetch, self._check = batches, prefetch, check
        iterator = self._iterate()
        first = next(iterator, None)
        require(first is not None, "batches", batches, "it holds no batch")
        self._unread = [first] if iterator is batches else []
        first = _arrays(first)
        require(bool(jax.tree.leaves(first)), "batches", first, "a batch needs at least one array")
        super().__init__(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, canonical(leaf)), first))
        self._checked(first)
        self._kept: dict[int, Any] = {}
        self._reading: Iterator[Any] | None = None
        self._step = 0  # the last one read

    def open(self) -> None:
        self.close()
        self._reading = ahead(self._endless(), self._prefetch)

    def close(self) -> None:
        if self._reading is not None:
            self._reading.close()  # type: ignore[attr-defined]
        self._reading, self._kept, self._step = None, {}, 0

    def forget(self, step: int) -> None:
        self._kept = {number: batch for number, batch in self._kept.items() if number > step}

    def read(self, request: np.ndarray) -> Any:
        step = int(request.flat[0])
        if self._reading is None:
            self._reading = self._endless()
        if step <= self._step and step not in self._kept:  # a new count of steps, as after tuning
            self._kept, self._step = {}, step - 1
        while self._step < step:
            self._kept[self._step + 1] = next(self._reading)
            self._step += 1
        batch = self._kept[step]
        return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*request.shape, *leaf.shape)), batch)

    def _iterate(self) -> Iterator[Any]:
        return iter(self._batches if hasattr(self._batches, "__iter__") else self._batches())  # type: ignore[operator]

    def _endless(self) -> Iterator[Any]:
        total = 0
        while True:
            unread, self._unread = self._unread, []
            count = 0
            for count, batch in enumerate(chain(unread, self._iterate()), start=1):  # noqa: B007
                yield self._checked(_arrays(batch))
            total += count
            remedy = (
                "give a list, a data loader, or a function that gives a new iterator: something that can be read again"
            )
            require(count > 0, "batches", f"an iterator that ended after {total} batches", remedy)

    def _checked(self, batch: Any) -> Any:
        """The batch in the types of the device; raises unless it is like the first, and finite."""
        like = jax.tree.structure(self.shapes)
        require(jax.tree.structure(batch) == like, "batches", jax.tree.structure(batch), f"the first batch was {like}")
        self._check(batch)

        def check(path: Any, leaf: np.ndarray, shape: Any) -> np.ndarray:
            name = f"batches{jax.tree_util.keystr(path)}"
            remedy = f"in the first batch its shape was {shape.shape}; leave out a smaller last batch (drop_last)"
            require(leaf.shape == shape.shape, name, f"an array of shape {leaf.shape}", remedy)
            require_finite(name, leaf)
            return leaf.astype(shape.dtype, copy=False)

        return jax.tree_util.tree_map_with_path(check, batch, self.shapes)


def ahead(iterator: Iterator[Any], count: int) -> Iterator[Any]:
    """The same iterator, read up to `count` items ahead by a thread that ends when this iterator is closed."""
    queue: Queue[tuple[Any, BaseException | None]] = Queue(count)
    stop = Event()

    def put(item: tuple[Any, BaseException | None]) -> None:
        while not stop.is_set():
            try:
                return queue.put(item, timeout=0.05)
            except Full:
                pass

    def pump() -> None:
        try:
            while not stop.is_set():
                put((next(iterator), None))
        except BaseException as error:
            put((None, error))

    thread = Thread(target=pump, name="contourmc batches", daemon=True)
    thread.start()
    try:
        while True:
            thing, error = queue.get()
            if error is not None:
                raise error
            yield thing
    finally:
        stop.set()
        thread.join(5.0)  # no longer: the loader may hang


def _arrays(batch: Any) -> Any:
    """A batch as NumPy arrays; a list of them, as a PyTorch loader gives, becomes a tuple."""
    return jax.tree.map(np.asarray, tuple(batch) if isinstance(batch, list) else batch)
