"""Positions as vectors of all their numbers, and back."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from contourmc._core.layout import Layout
from contourmc._core.pytrees import Position


@dataclass(frozen=True)
class Vectors:
    """layout: where the arrays of a position lie in a vector.  types: of these arrays."""

    layout: Layout
    types: tuple[Any, ...]

    @property
    def size(self) -> int:
        """How many numbers a position has."""
        return sum(math.prod(shape) for shape in self.layout.shapes)

    def of(self, positions: Position, axes: int) -> Float[np.ndarray, "*batch size"]:
        """Vectors of positions that are stacked along some leading axes."""
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(positions)]
        return np.concatenate([leaf.reshape(*leaf.shape[:axes], -1) for leaf in leaves], axis=-1)

    def positions(self, vectors: Float[np.ndarray | Array, "*batch size"]) -> Position:
        """The positions of vectors, rounded to the types of a position's arrays."""
        leaves, structure = jax.tree.flatten(self.layout.to_position(vectors))
        return structure.unflatten([leaf.astype(kind) for leaf, kind in zip(leaves, self.types, strict=True)])


def vectors_like(positions: Position, axes: int) -> Vectors:
    """For positions like those that are stacked here along some leading axes."""
    leaves, structure = jax.tree.flatten(positions)
    shapes = tuple(np.shape(leaf)[axes:] for leaf in leaves)
    return Vectors(Layout(structure, shapes), tuple(np.asarray(leaf).dtype for leaf in leaves))
