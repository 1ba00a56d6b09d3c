"""The trajectory of a run: what every chain had estimated and learnt, at up to 100 marks along it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from contourmc._core.pytrees import Position


@dataclass(frozen=True)
class Trajectory:
    """Estimates over each stretch between two marks; leading axes are chain and mark.

    steps: the step of each mark.
    log_weights: log Σ w over the stretch that ends at the mark; −∞ during burn-in.
    means, squares: weighted means over the stretch of x and of (x − centre)²; None for large positions, and for
        those that the user sees in other coordinates.
    centre: the starting positions; None for large positions.
    theta: θ at the mark, or None for a kernel that learns none.
    visits: how many steps began in each bin up to the mark, or None.
    """

    steps: Int[np.ndarray, " marks"]
    log_weights: Float[np.ndarray, "chains marks"]
    means: Position
    squares: Position
    centre: Position
    theta: Float[np.ndarray, "chains marks bins"] | None
    visits: Int[np.ndarray, "chains marks bins"] | None

    def without_moments(self) -> "Trajectory":
        """The same, without means and squares: these belong to other coordinates, or to another temperature."""
        return replace(self, means=None, squares=None, centre=None)


class Stretch(NamedTuple):
    """Weighted estimates of each chain over some steps: log Σ w, and the means of x and (x − centre)²."""

    log_weight: Float[np.ndarray, " chains"]
    mean: Position
    square: Position


def merge(trajectory: Trajectory) -> Stretch:
    """The estimates over the whole trajectory."""
    total = np.logaddexp.reduce(trajectory.log_weights, axis=1, keepdims=True)
    shares = np.exp(trajectory.log_weights - np.where(np.isfinite(total), total, 0.0))

    def average(leaf: np.ndarray) -> np.ndarray:
        return np.einsum("cm,cm...->c...", shares, leaf)

    return Stretch(total[:, 0], jax.tree.map(average, trajectory.means), jax.tree.map(average, trajectory.squares))
