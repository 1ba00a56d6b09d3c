"""The basins of the energy that a pilot found, and how much mass the draws give to each."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from contourmc._core.pytrees import Position


@dataclass(frozen=True)
class Basins:
    """minima: the lowest point of each basin, a pytree like the position with a leading axis; the lowest first.
    energies: the energy there.
    scale: σ of every coordinate, the unit of distances; None for 1.
    factor: L, with LLᵀ their covariance, if distances are to be measured in units of that instead.
    seen: the minima as the user sees them; None if as they are sampled.
    """

    minima: Position
    energies: Float[np.ndarray, " basins"]
    scale: Position | None
    factor: Float[np.ndarray, "size size"] | None = None
    seen: Any = None

    def masses(self, draws: Position, weights: Float[np.ndarray, "chains draws"]) -> Float[np.ndarray, "chains basins"]:
        """The weight of the draws nearest to each minimum; the sum over all chains and basins is 1."""
        every = max(1, weights.shape[1] // 2000)  # 2,000 draws of a chain are enough
        minima = scaled_vectors(self.minima, self.scale, 1, self.factor)
        positions = scaled_vectors(jax.tree.map(lambda leaf: leaf[:, ::every], draws), self.scale, 2, self.factor)
        distances = np.stack([np.sum((positions - minimum) ** 2, axis=-1) for minimum in minima], axis=-1)
        pairs = zip(distances.argmin(axis=-1), weights[:, ::every], strict=True)
        masses = np.stack([np.bincount(nearest, chain, minlength=len(minima)) for nearest, chain in pairs])
        return masses / masses.sum()


def scaled_vectors(
    positions: Position, scale: Position | None, axes: int, factor: np.ndarray | None = None
) -> np.ndarray:
    """Positions as vectors of numbers, behind some leading axes, in units of the scale: x/σ, or L⁻¹x with a factor."""
    leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(positions)]
    scales = [1.0] * len(leaves) if scale is None or factor is not None else jax.tree.leaves(scale)
    flat = [np.reshape(a / np.asarray(s), (*a.shape[:axes], -1)) for a, s in zip(leaves, scales, strict=True)]
    vectors = np.concatenate(flat, axis=-1)
    return vectors if factor is None else vectors @ np.linalg.inv(factor).T
