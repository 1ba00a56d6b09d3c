"""Batches from any iterable, read ahead by a thread."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import jax
import numpy as np

from contourmc._core.checks import require, require_finite
from contourmc.data.host_callback import Reader
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
        iterator = self._iterate()
        first = next(iterator, None)
        require(first is not None, "batches", batches, "it holds no batch")
        self._only_once = iterator is batches
        self._unread = [first] if self._only_once else []
        first = _arrays(first)
        require(bool(jax.tree.leaves(first)), "batches", first, "a batch needs at least one array")
        super().__init__(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, canonical(leaf)), first))
        self._checked(first)
        self._kept: dict[int, Any] = {}
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
        ahead = self._ahead = ReadAhead(self._endless(), self._prefetch)
        self._next = lambda: ahead.next(lambda: self.stopped)
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
        self._kept, self._step = {}, 0

    def forget(self, step: int) -> None:
        self._kept = {number: batch for number, batch in self._kept.items() if number > step}

    def read(self, request: np.ndarray) -> Any:
        step = int(request.flat[0])
        if self._next is None:  # outside of a session, where nobody would end a thread
            self._next = self._endless().__next__
        while self._step < step:
            self._kept[self._step + 1] = self._next()
            self._step += 1
        batch = self._kept[step]
        return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*request.shape, *leaf.shape)), batch)

    def described(self, request: np.ndarray) -> tuple[str, int]:
        step = int(request.flat[0])
        return f"batch {step}", step

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
            require(count > 0, "batches", f"an iterator that ended after {total} batches", f"give {_READABLE_AGAIN}")

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
