"""What is read off the chains at every mark, the trajectory that is made from it, and a note for who watches."""

import jax
import numpy as np

from contourmc._core.pytrees import Position
from contourmc.draws.estimates import kish, normalise
from contourmc.draws.trajectory import Stretch, Trajectory
from contourmc.engine.state import Chain, Draws, Mark, RunState, Totals, gather


def read_mark(step: int, groups: tuple[Chain, ...]) -> Mark:
    """The mark after a step, from the chains as they are then."""
    stretch = _stretch(*gather(groups, lambda chain: (chain.totals, chain.centre)))
    if not hasattr(groups[0].state, "theta"):
        return Mark(step, stretch, None, None)
    theta, visits = gather(groups, lambda chain: (chain.state.theta, chain.state.visits))
    return Mark(step, stretch, np.exp(theta.levels.astype(float) + theta.offset[:, None]), visits)


def trajectory_of(state: RunState, steps_before: int = 0) -> Trajectory:
    """The trajectory so far, with a last mark at the last step; `steps_before` is added to the number of each step."""
    marks = state.marks
    if not marks or marks[-1].step != state.step:
        marks = (*marks, read_mark(state.step, state.groups))
    stretches, theta, visits = jax.tree.map(
        lambda *leaves: np.stack(leaves, axis=1), *((mark.stretch, mark.theta, mark.visits) for mark in marks)
    )
    return Trajectory(
        steps=steps_before + np.array([mark.step for mark in marks]),
        log_weights=stretches.log_weight,
        means=stretches.mean,
        squares=stretches.square,
        centre=gather(state.groups, lambda chain: chain.centre),
        theta=theta,
        visits=visits,
    )


def note_on(draws: Draws, loss: float | None = None) -> str:
    """What is worth watching: the loss if there is one, else energies; how often the chains are driven uphill, how
    even the weights are.
    """
    shown = "" if loss is None else f"loss {loss:.4g}"
    if not draws.energy.size:
        return shown
    share = float(kish(normalise(np.ravel(draws.log_weight)))) / draws.log_weight.size
    uphill = float(np.mean(draws.multiplier < 0))
    shown = shown or f"energy {draws.energy.min():.4g} … {draws.energy.max():.4g}"
    return f"{shown} · uphill {uphill:.0%} · weight ESS {share:.0%}"


def _stretch(totals: Totals, centre: Position) -> Stretch:
    """Totals as means; 0 for a stretch without weight, as during burn-in."""
    weight = np.asarray(totals.weight, float)
    safe = np.where(weight > 0, weight, 1.0)
    with np.errstate(divide="ignore"):
        log_weight = np.asarray(totals.log_scale, float) + np.log(weight)

    def divide(leaf: np.ndarray) -> np.ndarray:
        return np.asarray(leaf, float) / safe.reshape(safe.shape + (1,) * (np.ndim(leaf) - 1))

    mean = jax.tree.map(lambda leaf, start: divide(leaf) + start, totals.first, centre)
    return Stretch(log_weight, mean, jax.tree.map(divide, totals.second))
