"""Large positions of many arrays as one vector, while a run goes on.

What a kernel does to a position it does to each number. Sixty arrays, as a ResNet-20 has, would cost it sixty small
operations for each large one; a device that waits for their launch shows it.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc.averages import Average
from contourmc.kernels.base import Info, Position
from contourmc.targets import Target


@dataclass(frozen=True)
class Layout:
    """Where the arrays of a position lie in a vector.  structure: of the pytree.  shapes: of its leaves."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]

    def ravel(self, position: Position) -> Float[Array, " size"]:
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(position)])

    def unravel(self, vectors: Array | np.ndarray) -> Position:
        """The position of a vector, or a stack of positions of a stack of vectors."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)]).tolist()
        leaves = [
            vectors[..., begin:end].reshape(*vectors.shape[:-1], *shape)
            for (begin, end), shape in zip(pairwise(ends), self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)


def layout_of(position: Position) -> Layout | None:
    """The layout of a position; None for one that is a vector already, or of several types of number."""
    leaves, structure = jax.tree.flatten(position)
    alike = len({leaf.dtype for leaf in leaves}) == 1
    return Layout(structure, tuple(leaf.shape for leaf in leaves)) if alike and len(leaves) > 1 else None


@dataclass(frozen=True, eq=False)
class RavelledTarget(Target, arrays=("target",)):
    """A target as a function of a vector."""

    target: Target
    layout: Layout

    def init(self) -> Any:
        return self.target.init()

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        return self.target.prepare(key, self.layout.unravel(position), steps)

    def evaluate(self, inputs: Any, position: Position) -> tuple[Float[Array, ""], Position]:
        energy, gradient = self.target.evaluate(inputs, self.layout.unravel(position))
        return energy, self.layout.ravel(gradient)

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> tuple[Float[Array, ""], Position, Any]:
        energy, gradient, state = self.target.evaluate_from(inputs, self.layout.unravel(position), state)
        return energy, self.layout.ravel(gradient), state

    def drawn(self, state: Any) -> Any:
        return self.target.drawn(state)

    def after(self, step: int) -> None:
        self.target.after(step)


@dataclass(frozen=True, eq=False)
class RavelledAverage(Average, arrays=("average",)):
    """An average over vectors."""

    average: Average
    layout: Layout

    def init(self) -> Any:
        return self.average.init()

    def add(self, sums: Any, info: Info, position: Position, state: Any) -> Any:
        return self.average.add(sums, info, self.layout.unravel(position), state)

    def finish(self, sums: Any, one_theta: bool = False) -> Any:
        return self.average.finish(sums, one_theta)
