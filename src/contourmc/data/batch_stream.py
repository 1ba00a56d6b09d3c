"""Batches from any iterable, read ahead by a thread."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import jax
import numpy as np

from contourmc._core.checks import require, require_finite
from contourmc.data.data_error import DataError
from contourmc.data.host_callback import Reader
from contourmc.data.loader_state import EVERY, LoaderState, iterate_from, state_of
from contourmc.data.memmap_reader import canonical
from contourmc.data.read_ahead import ReadAhead

_READABLE_AGAIN = "a list, a data loader, or a function that gives a new iterator: something that can be read again"


class BatchStream(Reader):
    """Gives each step its batch: the batches of an iterable in order, from the beginning again when it ends.

    A batch is kept until no step will request it again. Every session starts at the beginning of the iterable; an
    iterator, which has only one beginning, is good for one session.

    batches: an iterable, or a function that gives one.
    prefetch: how many batches are read ahead.
    check: a function that raises if something is wrong with a batch.
    """

    def __init__(
        self, batches: Iterable[Any] | Callable[[], Iterable[Any]], prefetch: int, check: Callable[[Any], Any]
    ):
        self._batches, self._prefetch, self._check = batches, prefetch, check
        iterator = iter(self._loader())
        first = next(iterator, None)
        require(first is not None, "batches", batches, "it holds no batch")
        self._only_once = iterator is batches
        self._unread = [first] if self._only_once else []
        first = _arrays(first)
        require(bool(jax.tree.leaves(first)), "batches", first, "a batch needs at least one array")
        super().__init__(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, canonical(leaf)), first))
        self._checked(first)
        self._kept: dict[int, Any] = {}
        self._states: list[LoaderState] = []
        self._step = 0  # the last one read
        self._ahead: ReadAhead | None = None
        self._next: Callable[[], Any] | None = None
        self._opened = False
        self._beginning: tuple[int, ...] = ()  # hashes of the first batch of the first session

    def open(self) -> None:
        """Wait for the first batch: here, and not in a compiled program, where Ctrl-C would have to wait too."""
        self.close()
        used, self._opened = self._only_once and self._opened, True
        require(not used, "batches", "an iterator that an earlier run has read", f"give {_READABLE_AGAIN}")
        self._read_from(None)
        beginning = tuple(hash(leaf.tobytes()) for leaf in jax.tree.leaves(self.get(np.array(1))))
        if self._beginning and beginning != self._beginning:
            warnings.warn(
                "batches do not begin as they did in the first run, so that the same seed does not give the same"
                " draws. For that, give a function that makes a new loader, whose shuffling has a seed of its own.",
                stacklevel=2,
            )
        self._beginning = self._beginning or beginning

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        self._ahead = self._next = None
        self._kept, self._states, self._step = {}, [], 0

    def forget(self, step: int) -> None:
        self._kept = {number: batch for number, batch in self._kept.items() if number > step}
        past = [known for known in self._states if known.batches <= step]
        self._states = [*past[-1:], *(known for known in self._states if known.batches > step)]

    def state(self, step: int) -> LoaderState | None:
        return next((known for known in reversed(self._states) if known.batches <= step), None)

    def seek(self, step: int, state: LoaderState | None) -> None:
        if state is not None:
            self.close()
            self._step = state.batches
            self._read_from(state.state)
            self._states = [state]
        try:
            while self._step < step:
                self._take()
        except Exception as error:
            message = f"batch {self._step + 1} could not be read, to find the place where the run was"
            raise DataError(f"{message}: {type(error).__name__}: {error}") from error
        self._kept = {}

    def read(self, request: np.ndarray) -> Any:
        step = int(request.flat[0])
        if self._next is None:  # outside of a session, where nobody would end a thread
            self._next = self._endless(None).__next__
        while self._step < step:
            batch = self._take()
            self._kept[self._step] = batch
        batch = self._kept[step]
        return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*request.shape, *leaf.shape)), batch)

    def described(self, request: np.ndarray) -> tuple[str, int]:
        step = int(request.flat[0])
        return f"batch {step}", step

    def _read_from(self, state: Any) -> None:
        """Start to read ahead, from the beginning or from a state of the loader."""
        ahead = self._ahead = ReadAhead(self._endless(state), self._prefetch)
        self._next = lambda: ahead.next(lambda: self.stopped)

    def _take(self) -> Any:
        """The next batch."""
        assert self._next is not None
        batch, state = self._next()
        self._step += 1
        if state is not None:
            self._states.append(LoaderState(self._step, state))
        return batch

    def _loader(self) -> Iterable[Any]:
        batches: Any = self._batches
        return batches if hasattr(batches, "__iter__") and not isinstance(batches, type) else batches()

    def _endless(self, state: Any) -> Iterator[tuple[Any, Any]]:
        """Batches without end; with every 32nd, the state of the loader after it."""
        total = 0
        while True:
            unread, self._unread = self._unread, []
            count, loader = 0, self._loader()
            begun, iterator, state = state is not None, iterate_from(loader, state), None
            for count, batch in enumerate(chain(unread, iterator), start=1):
                known = state_of(loader, iterator) if (total + count) % EVERY == 0 else None
                yield self._checked(_arrays(batch)), known
            total += count
            ended = f"an iterator that ended after {total} batches"
            require(count > 0 or begun, "batches", ended, f"give {_READABLE_AGAIN}")

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


def _arrays(batch: Any) -> Any:
    """A batch as NumPy arrays; a list of them, as a PyTorch loader gives, becomes a tuple."""
    return jax.tree.map(np.asarray, tuple(batch) if isinstance(batch, list) else batch)
