"""Where the arrays of a position lie in one vector of all its numbers."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc._core.pytrees import Position


@dataclass(frozen=True)
class Layout:
    """structure: of the position as a pytree.  shapes: of its leaves."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]

    def to_vector(self, position: Position) -> Float[Array, " size"]:
        """All numbers of a position, one array after the other."""
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(position)])

    def to_position(self, vectors: Array | np.ndarray) -> Position:
        """The position of a vector, or a stack of positions of a stack of vectors."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)]).tolist()
        leaves = [
            vectors[..., begin:end].reshape(*vectors.shape[:-1], *shape)
            for (begin, end), shape in zip(pairwise(ends), self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)


def layout_of(position: Any) -> Layout | None:
    """The layout of a position, from its shapes; None if it is a single array, or its arrays differ in type."""
    leaves, structure = jax.tree.flatten(position)
    one_type = len({leaf.dtype for leaf in leaves}) == 1
    return Layout(structure, tuple(leaf.shape for leaf in leaves)) if one_type and len(leaves) > 1 else None
