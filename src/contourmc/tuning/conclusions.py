"""What a run takes from its pilot: step size, scales, starts, and the energies worth flattening.

The energies worth flattening reach from the middle of those in the deepest basin at temperature 1 up to what it takes
to leave a basin.
"""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from contourmc._core.checks import require
from contourmc._core.pytrees import Position, position_size, unstack
from contourmc.draws.basins import scaled_vectors
from contourmc.flattening.partition import Partition
from contourmc.tuning.pilot import PilotPlan, PilotState, Rung

RELEVANT = 10.0  # a basin this much above the deepest, in typical energy, has next to no mass
ESCAPED = 0.25  # the share of walkers outside their first basin, at a temperature that lets them out
# So few different numbers that other seeds mostly give the same, for which the program is compiled already.
INNER_BINS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


class Bins(NamedTuple):
    """The numbers of a `Partition`."""

    low: float
    width: float
    bins: int

    @property
    def partition(self) -> Partition:
        return Partition(*self)


class Conclusions(NamedTuple):
    """What the pilot found.

    step_size: ε, in units of the scale squared.
    scale: σ of every coordinate, shaped like a position; None for energies that are not exact.
    acceptance: how often the Metropolis test accepted at temperature 1.
    bins: the partition of the energies worth flattening.
    temperature: at which walkers leave the basin where they began; the energies there are the highest flattened.
    escaped: the share of walkers that were in another basin, at that temperature.
    minima: the relevant minima found, stacked, the lowest first.
    minimum_energies: their energies.
    starts: a position for each chain, from the walkers at that temperature.
    steps: what the pilot cost, in steps of each chain of the run.
    """

    step_size: float
    scale: Position | None
    acceptance: float
    bins: Bins
    temperature: float
    escaped: float
    minima: Position
    minimum_energies: Float[np.ndarray, " minima"]
    starts: Position
    steps: int


def conclude(plan: PilotPlan, state: PilotState) -> Conclusions:
    """The conclusions from a completed pilot."""
    rungs = state.rungs
    typical = np.concatenate([np.median(rung.typical, axis=0) for rung in rungs])
    lowest = np.concatenate([rung.lowest for rung in rungs])
    places = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(rung.minima for rung in rungs))
    _require_bottom(lowest, rungs[0])
    basins = _basins(places, state.scale, lowest)
    relevant = typical <= typical.min() + RELEVANT

    of_rung = basins.reshape(len(rungs), -1)
    home = np.bincount(of_rung[0]).argmax()
    escaped = np.where(relevant.reshape(of_rung.shape), of_rung != home, False).mean(axis=1)
    # One rung above the first at which many have escaped: a basin that one can leave is not yet easy to come back to.
    many = escaped >= ESCAPED
    chosen = min(int(np.argmax(many)) + 1, len(rungs) - 1) if np.any(many) else 2
    rung = rungs[chosen]

    at_one = np.concatenate([one.typical for one in rungs], axis=1)  # (step, walker)
    deepest = basins == basins[np.argmin(typical)]
    low = float(np.median(at_one[:, deepest]))
    spread = max(float(np.sqrt(np.mean(np.var(at_one[:, relevant], axis=0)))), 0.1)  # 0 on a flat landscape
    high = max(float(np.quantile(rung.hot, 0.99)), low + 4 * spread)
    inner = next(count for count in INNER_BINS if count == INNER_BINS[-1] or count * 1.5 * spread >= high - low)

    rows = [np.flatnonzero(basins == basin) for basin in np.unique(basins[relevant])]
    leaders = [int(members[np.argmin(lowest[members])]) for members in rows]
    leaders.sort(key=lambda row: lowest[row])
    return Conclusions(
        step_size=state.step_size,
        scale=state.scale,
        acceptance=state.settled_acceptance,
        bins=Bins(low, (high - low) / inner, 2 + inner),
        temperature=rung.temperature,
        escaped=float(escaped[chosen]),
        minima=jax.tree.map(lambda leaf: leaf[leaders], places),
        minimum_energies=lowest[leaders],
        starts=jax.tree.map(lambda leaf: np.asarray(leaf)[np.arange(plan.chains) % plan.walkers], rung.places),
        steps=plan.steps_after(state.number),
    )


def _basins(places: Position, scale: Position | None, lowest: np.ndarray) -> np.ndarray:
    """A number for each place; places within a scale of one another in every coordinate share it."""
    rows = scaled_vectors(places, scale, 1)
    leaders: list[int] = []
    found = np.zeros(len(rows), int)
    for row in np.argsort(lowest, kind="stable"):
        near = [i for i, leader in enumerate(leaders) if np.max(np.abs(rows[row] - rows[leader])) < 1.0]
        found[row] = near[0] if near else len(leaders)
        if not near:
            leaders.append(int(row))
    return found


def _require_bottom(lowest: np.ndarray, first: Rung) -> None:
    """Raise if the walkers fall for ever, at temperature 1 and when cooled.

    Cooled ones may: a density can grow without end where a scale shrinks to 0, and still have a finite mass there.
    """
    remedy = (
        "the energy seems to have no lowest value. Check its sign; add a prior or walls; keep scales that may shrink to"
        " 0 away from it by a prior, or sample a non-centred form; or start less far out"
    )
    bottom, size = float(np.min(lowest)), position_size(unstack(first.minima, 0))
    require(bottom > -1e30, "target", f"an energy of {bottom:.3g} in the pilot", remedy)
    endless = first.falling > 1 + 0.1 * size and first.sinking > 5 + size**0.5
    require(not endless, "target", f"an energy still falling, to {bottom:.3g}, at the end of the pilot", remedy)
