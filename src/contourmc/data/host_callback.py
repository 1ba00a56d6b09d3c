"""Data that stay on the host: a compiled program calls back for the batches that it needs.

A callback must not use JAX, which would wait for the program that waits for the callback; and it must not raise, since
the behaviour is then undefined. A reader therefore uses only NumPy. When something goes wrong, its first error is kept
and the program gets zeros, marked as unreadable; the run raises the error once the program has returned.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from contourmc._core.checks import require
from contourmc.data.data_error import DataError

_NUMBERS = itertools.count()
_READERS: "WeakValueDictionary[int, Reader]" = WeakValueDictionary()


class Reader(ABC):
    """Gives data on the host to a compiled program.

    shapes: the shapes and types of the data for one requested number, a pytree.
    error: what went wrong first, and has not been raised yet.
    stopped: whether nobody waits for data any more.
    """

    def __init__(self, shapes: Any):
        self.shapes = shapes
        self.error: BaseException | None = None
        self.stopped = False
        self.number = next(_NUMBERS)
        _READERS[self.number] = self

    @abstractmethod
    def read(self, request: np.ndarray) -> Any:
        """The data for an array of requested numbers, as NumPy arrays."""

    @abstractmethod
    def described(self, request: np.ndarray) -> tuple[str, int]:
        """What is requested, in words, and the step that needs it; 0 if that is not known."""

    def get(self, request: np.ndarray) -> Any:
        """The requested data; raises a `DataError` if they cannot be read."""
        try:
            return self.read(request)
        except Exception as error:
            what, step = self.described(request)
            message = f"{what} could not be read: {type(error).__name__}: {error}. The draws so far, if there are any,"
            raise DataError(f"{message} are in this error's `samples`.", step) from error

    @abstractmethod
    def open(self) -> None:
        """Start reading for a run."""

    @abstractmethod
    def close(self) -> None:
        """End all threads."""

    def expect(self, requests: np.ndarray) -> None:
        """Take note of coming requests, in the order of the last axis but one, so that they can be read ahead."""
        return None

    def forget(self, step: int) -> None:
        """Drop what was kept for the steps up to this one, which will not be requested again."""
        return None

    def state(self, step: int) -> Any:
        """What is needed to read on after a step in another session; None if that is the step alone."""
        return None

    def seek(self, step: int, state: Any) -> None:
        """Let the next data be those of the step after this one."""
        return None

    @contextmanager
    def session(self) -> Iterator[None]:
        """A context around a run."""
        self.error, self.stopped = None, False
        try:
            self.open()
            yield
        finally:
            self.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context around calls of the program. Once it is left, as by Ctrl-C, a program that waits gets no data."""
        self.error, self.stopped = None, False
        try:
            yield
        finally:
            self.stopped = True


@jax.tree_util.register_pytree_node_class
class HostData:
    """Data on the host, as a target holds them.

    A compiled program sees only the number of their reader: the program can be used again for other data of the same
    shapes, and does not keep the data alive.
    """

    def __init__(self, reader: Reader):
        self.reader = reader
        self._number = np.asarray(reader.number, np.int32)
        leaves, structure = jax.tree.flatten(reader.shapes)
        self._shapes = structure, tuple(leaves)

    @property
    def shapes(self) -> Any:
        structure, leaves = self._shapes
        return jax.tree.unflatten(structure, leaves)

    def fetch(self, request: Int[Array, "..."]) -> tuple[Any, Bool[Array, ""]]:
        """The data for the requested numbers, and whether they could be read."""
        result = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*request.shape, *leaf.shape), leaf.dtype), self.shapes)
        fine = jax.ShapeDtypeStruct((), jnp.bool_)
        return jax.pure_callback(_fetch, (result, fine), self._number, request, vmap_method="broadcast_all")

    def expect(self, requests: Int[Array, "steps numbers"]) -> Int[Array, ""]:
        """Announce requests to the reader. Returns 0; the caller must use it, or the compiler drops the call."""
        zero = jax.ShapeDtypeStruct((), jnp.int32)
        return jax.pure_callback(_expect, zero, self._number, requests, vmap_method="broadcast_all")

    def after(self, step: int) -> None:
        """After the program has run: raise the error if something went wrong, and forget the steps up to this one."""
        error, self.reader.error = self.reader.error, None
        if error is not None:
            raise error
        self.reader.forget(step)

    def tree_flatten(self) -> tuple[tuple[Any], Any]:
        return (self._number,), self._shapes

    @classmethod
    def tree_unflatten(cls, shapes: Any, leaves: Any) -> "HostData":
        made = object.__new__(cls)
        (made._number,), made._shapes = leaves, shapes
        return made

    def __reduce__(self) -> NoReturn:
        raise TypeError("data on the host, such as files and loaders, cannot be pickled")

    def __repr__(self) -> str:
        kinds = (f"{leaf.dtype}{list(leaf.shape)}" for leaf in self._shapes[1])
        return f"on the host: {', '.join(kinds)}"


def require_alone(data: Any) -> None:
    """Raise for a stack of data on the host, as a list of targets has."""
    alone = not isinstance(data, HostData) or hasattr(data, "reader")
    require(alone, "target", "a list of targets with data on the host", "chains with their own data need resident=True")


def _fetch(number: Any, request: Any) -> tuple[Any, np.ndarray]:
    number, request = np.asarray(number), np.asarray(request)
    reader = _READERS[int(number.flat[0])]
    try:
        return reader.get(request), np.ones(number.shape, bool)
    except BaseException as error:
        if reader.error is None:
            reader.error = error
    nothing = jax.tree.map(lambda leaf: np.zeros((*request.shape, *leaf.shape), leaf.dtype), reader.shapes)
    return nothing, np.zeros(number.shape, bool)


def _expect(number: Any, requests: Any) -> np.ndarray:
    number = np.asarray(number)
    _READERS[int(number.flat[0])].expect(np.asarray(requests))
    return np.zeros(number.shape, np.int32)
