"""Data that stay on the host: a compiled program calls back for the batches that it needs."""

from abc import abstractmethod
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from contourmc.data.data_error import DataError
from contourmc.data.host_side import Handle, HostSide, side_of


class Reader(HostSide):
    """Gives data on the host to a compiled program.

    shapes: the shapes and types of the data for one requested number, a pytree.
    """

    def __init__(self, shapes: Any):
        super().__init__()
        self.shapes = shapes

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

    def expect(self, requests: np.ndarray) -> None:
        """Take note of coming requests, in the order of the last axis but one, so that they can be read ahead."""
        return None

    def state(self, step: int) -> Any:
        """What is needed to read on after a step in another session; None if that is the step alone."""
        return None

    def seek(self, step: int, state: Any) -> None:
        """Let the next data be those of the step after this one."""
        return None


@jax.tree_util.register_pytree_node_class
class HostData(Handle):
    """Data on the host, as a target holds them."""

    def __init__(self, reader: Reader):
        leaves, structure = jax.tree.flatten(reader.shapes)
        super().__init__(reader, (structure, tuple(leaves)))

    @property
    def reader(self) -> Reader:
        return self.side

    @property
    def shapes(self) -> Any:
        structure, leaves = self.kind
        return jax.tree.unflatten(structure, leaves)

    def fetch(self, request: Int[Array, "..."]) -> tuple[Any, Bool[Array, ""]]:
        """The data for the requested numbers, and whether they could be read."""
        result = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*request.shape, *leaf.shape), leaf.dtype), self.shapes)
        fine = jax.ShapeDtypeStruct((), jnp.bool_)
        return jax.pure_callback(_fetch, (result, fine), self.number, request, vmap_method="broadcast_all")

    def expect(self, requests: Int[Array, "steps numbers"]) -> Int[Array, ""]:
        """Announce requests to the reader. Returns 0; the caller must use it, or the compiler drops the call."""
        zero = jax.ShapeDtypeStruct((), jnp.int32)
        return jax.pure_callback(_expect, zero, self.number, requests, vmap_method="broadcast_all")

    def __reduce__(self) -> NoReturn:
        raise TypeError("data on the host, such as files and loaders, cannot be pickled")

    def __repr__(self) -> str:
        kinds = (f"{leaf.dtype}{list(leaf.shape)}" for leaf in self.kind[1])
        return f"on the host: {', '.join(kinds)}"


def _fetch(number: Any, request: Any) -> tuple[Any, np.ndarray]:
    number, request, reader = np.asarray(number), np.asarray(request), side_of(number)

    def nothing() -> tuple[Any, np.ndarray]:
        zeros = jax.tree.map(lambda leaf: np.zeros((*request.shape, *leaf.shape), leaf.dtype), reader.shapes)
        return zeros, np.zeros(number.shape, bool)

    return reader.answer(lambda: (reader.get(request), np.ones(number.shape, bool)), nothing)


def _expect(number: Any, requests: Any) -> np.ndarray:
    side_of(number).expect(np.asarray(requests))
    return np.zeros(np.shape(number), np.int32)
