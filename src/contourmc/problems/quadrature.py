"""Quadrature on regular grids, in float64: cells, their probabilities, integrals, and draws from them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def midpoints(low: float, high: float, count: int) -> Float[np.ndarray, " count"]:
    """The centres of `count` equal cells between two ends."""
    return low + (high - low) * (np.arange(count) + 0.5) / count


def normalise(energy: Float[np.ndarray, "*grid"]) -> Float[np.ndarray, "*grid"]:
    """p = exp(−U) / Σ exp(−U)."""
    probability = np.exp(energy.min() - energy)
    return probability / probability.sum()


def log_integral(energy: Float[np.ndarray, "*grid"], cell: float) -> float:
    """log ∫ e^{−U(x)} dx ≈ log(v·Σ e^{−U}), where every point of the grid stands for a cell of volume v."""
    lowest = float(energy.min())
    return float(np.log(cell * np.exp(lowest - energy).sum())) - lowest


def moments(
    x: Float[np.ndarray, "*grid dimension"], probability: Float[np.ndarray, "*grid"]
) -> tuple[Float[np.ndarray, " dimension"], Float[np.ndarray, " dimension"]]:
    """The mean and variance of every coordinate under the probabilities of the grid's points."""
    points, weights = x.reshape(-1, x.shape[-1]), probability.ravel()
    mean = weights @ points
    return mean, weights @ (points - mean) ** 2


def draw_from_grid(
    axes: Sequence[Float[np.ndarray, " _"]],
    probability: Float[np.ndarray, "*grid"],
    count: int,
    random: np.random.Generator,
) -> Float[np.ndarray, "count dimension"]:
    """Draws from the density that is constant on each cell; a cell of width h adds h²/12 to a variance."""
    heights = np.cumsum(probability.ravel())
    chosen = np.searchsorted(heights, random.uniform(0, heights[-1], count), side="right")
    indices = np.unravel_index(np.minimum(chosen, probability.size - 1), probability.shape)
    return np.stack(
        [
            axis[index] + (axis[1] - axis[0]) * random.uniform(-0.5, 0.5, count)
            for axis, index in zip(axes, indices, strict=True)
        ],
        axis=-1,
    )
