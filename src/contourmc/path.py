"""The path of a run: what every chain had estimated and learnt, at up to 100 marks along it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from contourmc.engine import Chain, Totals
from contourmc.kernels.base import Position


@dataclass(frozen=True)
class Path:
    """Estimates over each stretch between two marks; leading axes are chain and mark.

    steps: the step of each mark.
    log_weights: log Σ w over the stretch that ends at the mark; −∞ during burn-in.
    means, squares: weighted means over the stretch of x and of (x − centre)²; None for large positions.
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


class Stretch(NamedTuple):
    """Weighted estimates of each chain over some steps: log Σ w, and the means of x and (x − centre)²."""

    log_weight: Float[np.ndarray, " chains"]
    mean: Position
    square: Position


class Mark(NamedTuple):
    """What is read at a step: the estimates over the stretch that ends there, θ, and the visits of the bins."""

    step: int
    stretch: Stretch
    theta: Float[np.ndarray, "chains bins"] | None
    visits: Int[np.ndarray, "chains bins"] | None


class PathRecorder:
    """Reads the chains at every mark: their totals over the stretch that ends there, and θ."""

    def __init__(self, every: int, groups: list[Chain]):
        self._every = every
        self._step, self._groups = 0, groups
        self._marks: list[Mark] = []

    def add(self, step: int, groups: list[Chain]) -> None:
        """The chains as they are after a step."""
        self._step, self._groups = step, groups
        if step % self._every == 0:
            self._marks.append(_mark(step, groups))

    def path(self, before: int = 0) -> Path:
        """The path so far, with a last mark at the last step; `before` is added to the number of each step."""
        marks = self._marks
        if not marks or marks[-1].step != self._step:
            marks = [*marks, _mark(self._step, self._groups)]
        stretches, theta, visits = jax.tree.map(
            lambda *leaves: np.stack(leaves, axis=1), *((mark.stretch, mark.theta, mark.visits) for mark in marks)
        )
        return Path(
            steps=before + np.array([mark.step for mark in marks]),
            log_weights=stretches.log_weight,
            means=stretches.mean,
            squares=stretches.square,
            centre=gather(self._groups, lambda chain: chain.centre),
            theta=theta,
            visits=visits,
        )


def _mark(step: int, groups: list[Chain]) -> "Mark":
    stretch = _stretch(*gather(groups, lambda chain: (chain.totals, chain.centre)))
    if not hasattr(groups[0].state, "theta"):
        return Mark(step, stretch, None, None)
    theta, visits = gather(groups, lambda chain: (chain.state.theta, chain.state.visits))
    return Mark(step, stretch, np.exp(theta.levels.astype(float) + theta.offset[:, None]), visits)


def _stretch(totals: Totals, centre: Position) -> Stretch:
    weight = np.asarray(totals.weight, float)
    safe = np.where(weight > 0, weight, 1.0)
    with np.errstate(divide="ignore"):
        log_weight = np.asarray(totals.log_scale, float) + np.log(weight)

    def divide(leaf: np.ndarray) -> np.ndarray:
        return np.asarray(leaf, float) / _like(safe, leaf)

    mean = jax.tree.map(lambda leaf, start: divide(leaf) + start, totals.first, centre)
    return Stretch(log_weight, mean, jax.tree.map(divide, totals.second))


def merge_path(path: Path) -> Stretch:
    """The estimates over a whole path."""
    total = np.logaddexp.reduce(path.log_weights, axis=1, keepdims=True)
    shares = np.exp(path.log_weights - np.where(np.isfinite(total), total, 0.0))

    def average(leaf: np.ndarray) -> np.ndarray:
        return np.einsum("cm,cm...->c...", shares, leaf)

    return Stretch(total[:, 0], jax.tree.map(average, path.means), jax.tree.map(average, path.squares))


def gather(groups: list[Chain], part: Callable[[Chain], Any]) -> Any:
    """A part of every chain, stacked, on the host."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *(part(group) for group in groups))


def _like(per_chain: np.ndarray, leaf: Any) -> np.ndarray:
    """A number for each chain, shaped to be multiplied with a leaf."""
    return per_chain.reshape(per_chain.shape + (1,) * (np.ndim(leaf) - 1))
