"""Starts all over a box, for chains that are to find every mode in it."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from contourmc._core.checks import require
from contourmc._core.pytrees import Position, as_array


@dataclass(frozen=True, eq=False)
class Box:
    """Where chains may start, uniformly: `cm.sample(energy, init=cm.Box(low, high), …)`.

    low, high: its two corners, each shaped like a position.

    >>> cm.sample(energy, init=cm.Box(low=-1.5, high=1.5), steps=2_000, kernel=cm.sgld(0.002))
    Samples(4 chains × 1800 draws, SGLD)
    """

    low: Any
    high: Any

    def __post_init__(self):
        for argument in ("low", "high"):
            ends = [np.asarray(leaf) for leaf in jax.tree.leaves(getattr(self, argument))]
            fine = all(jnp.issubdtype(end.dtype, jnp.number) for end in ends)
            require(fine, argument, getattr(self, argument), "give a position made of numbers")
        same = jax.tree.structure(self.low) == jax.tree.structure(self.high)
        remedy = "give two positions of the same shapes, each number of low below that of high"
        require(same, "high", self.high, remedy)
        pairs = zip(jax.tree.leaves(self.low), jax.tree.leaves(self.high), strict=True)
        fine = all(np.shape(low) == np.shape(high) and bool(np.all(np.less(low, high))) for low, high in pairs)
        require(fine, "high", self.high, remedy)

    def __call__(self, key: PRNGKeyArray) -> Position:
        leaves, structure = jax.tree.flatten(self.low)
        keys = structure.unflatten(list(jax.random.split(key, len(leaves))))

        def inside(key: PRNGKeyArray, low: Any, high: Any) -> Any:
            low, high = (as_array(end).astype(jnp.result_type(float)) for end in (low, high))
            return jax.random.uniform(key, low.shape, low.dtype, low, high)

        return jax.tree.map(inside, keys, self.low, self.high)
