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
from contourmc.tuning.covariance import Shape, measure
from contourmc.tuning.pilot import PilotPlan, PilotState, Rung

RELEVANT = 10.0  # a basin this much above the deepest, in typical energy, has next to no mass
MOST_BASINS = 64  # between which chains jump
ESCAPED = 0.25  # the share of walkers outside of their own first basin, at a temperature that lets them out
FREELY = 0.5  # the share at which they go back and forth
# So few different numbers that other seeds mostly give the same, for which the program is compiled already.
INNER_BINS = (8, 16, 32, 64, 128, 256, 512)


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
    factor: L, with LLᵀ their covariance, where coordinates depend on one another; else None.
    acceptance: how often the Metropolis test accepted at temperature 1.
    bins: the partition of the energies worth flattening.
    temperature: at which walkers leave the basin where they began; the energies there are the highest flattened.
    escaped: the share of walkers that were in another basin, at that temperature.
    minima: the relevant minima found, stacked, the lowest first.
    minimum_energies: their energies.
    means, factors: μ and L of the basins of these minima, (basin, …), if there are several; else None.
    starts: a position for each chain, from the walkers at that temperature.
    steps: what the pilot cost, in steps of each chain of the run.
    """

    step_size: float
    scale: Position | None
    factor: Float[np.ndarray, "size size"] | None
    acceptance: float
    bins: Bins
    temperature: float
    escaped: float
    minima: Position
    minimum_energies: Float[np.ndarray, " minima"]
    means: Float[np.ndarray, "basins size"] | None
    factors: Float[np.ndarray, "basins size size"] | None
    starts: Position
    steps: int


def conclude(plan: PilotPlan, state: PilotState) -> Conclusions:
    """The conclusions from a completed pilot."""
    rungs = state.rungs
    typical = np.concatenate([np.median(rung.typical, axis=0) for rung in rungs])
    lowest = np.concatenate([rung.lowest for rung in rungs])
    places = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(rung.minima for rung in rungs))
    _require_bottom(lowest, rungs[0])
    basins = _basins(places, state, lowest)
    basins = _merged(basins, _shapes(basins, rungs))
    shapes = _shapes(basins, rungs)
    relevant = _relevant(basins, typical, shapes)

    of_rung = basins.reshape(len(rungs), -1)
    escaped = (relevant.reshape(of_rung.shape) & (of_rung != of_rung[0])).mean(axis=1)
    # One rung above the first at which many have escaped: a basin that one can leave is not yet easy to come back to.
    many = escaped >= ESCAPED
    many[0] = escaped[1] >= FREELY  # at the lowest temperature they go back and forth: it will do
    chosen = min(int(np.argmax(many)) + 1, len(rungs) - 1) if np.any(many) else 2
    rung = rungs[chosen]

    at_one = np.concatenate([one.typical for one in rungs], axis=1)  # (step, walker)
    deepest = basins == basins[np.argmin(typical)]
    low = float(np.median(at_one[:, deepest]))
    spread = max(float(np.sqrt(np.mean(np.var(at_one[:, relevant], axis=0)))), 0.1)  # 0 on a flat landscape
    highest = max(low, float(np.max(typical[relevant])))
    high = max(float(np.quantile(rung.hot, 0.99)), highest + 4 * spread)
    inner = next(count for count in INNER_BINS if count == INNER_BINS[-1] or count * 1.5 * spread >= high - low)

    rows = [np.flatnonzero(basins == basin) for basin in np.unique(basins[relevant])]
    leaders = [int(members[np.argmin(lowest[members])]) for members in rows]
    leaders.sort(key=lambda row: lowest[row])
    known = [shapes[int(basins[row])] for row in leaders][:MOST_BASINS]
    known = [shape for shape in known if shape is not None]
    several = len(known) > 1
    return Conclusions(
        step_size=state.step_size,
        scale=state.scale,
        factor=state.factor,
        acceptance=state.settled_acceptance,
        bins=Bins(low, (high - low) / inner, 2 + inner),
        temperature=rung.temperature,
        escaped=float(escaped[chosen]),
        minima=jax.tree.map(lambda leaf: leaf[leaders], places),
        minimum_energies=lowest[leaders],
        means=np.stack([shape.mean for shape in known]) if several else None,
        factors=np.stack([shape.factor for shape in known]) if several else None,
        starts=jax.tree.map(lambda leaf: np.asarray(leaf)[np.arange(plan.chains) % plan.walkers], rung.places),
        steps=plan.steps_after(state.number),
    )


def _basins(places: Position, state: PilotState, lowest: np.ndarray) -> np.ndarray:
    """A number for each place; places within a scale of one another in every coordinate share it."""
    rows = scaled_vectors(places, state.scale, 1, state.factor)
    leaders: list[int] = []
    found = np.zeros(len(rows), int)
    for row in np.argsort(lowest, kind="stable"):
        near = [i for i, leader in enumerate(leaders) if np.max(np.abs(rows[row] - rows[leader])) < 1.0]
        found[row] = near[0] if near else len(leaders)
        if not near:
            leaders.append(int(row))
    return found


def _shapes(basins: np.ndarray, rungs: tuple[Rung, ...]) -> dict[int, Shape | None]:
    """The shape of every basin at temperature 1; None where there is none, or too little is known."""
    visits = [rung.visits for rung in rungs if rung.visits is not None]
    if not visits:
        return dict.fromkeys(basins.tolist())
    points, gradients = (np.concatenate(leaves) for leaves in zip(*visits, strict=True))
    return {basin: measure(points[basins == basin], gradients[basins == basin]) for basin in set(basins.tolist())}


def _merged(basins: np.ndarray, shapes: dict[int, Shape | None]) -> np.ndarray:
    """The same numbers, with one for all basins whose means agree to half of their widths.

    A wide basin may be found more than once: walkers come to rest around its minimum, not at it.
    """
    known = [(basin, shape, np.linalg.inv(shape.factor)) for basin, shape in shapes.items() if shape is not None]
    number = {basin: basin for basin in shapes}
    for i, (basin, shape, inverse) in enumerate(known):
        for other, other_shape, other_inverse in known[:i]:
            apart = shape.mean - other_shape.mean
            if max(np.max(np.abs(inverse @ apart)), np.max(np.abs(other_inverse @ apart))) < 0.5:
                number[basin] = number[other]
                break
    return np.array([number[basin] for basin in basins.tolist()])


def _relevant(basins: np.ndarray, typical: np.ndarray, shapes: dict[int, Shape | None]) -> np.ndarray:
    """Which places are in basins that may have mass: by their energy, or with their volume taken into account.

    As for a Gaussian, the mass of a basin is about e^−U √det Σ, up to a common factor, with U its typical energy.
    """
    relevant = typical <= typical.min() + RELEVANT
    volumes = {basin: shape.log_volume for basin, shape in shapes.items() if shape is not None}
    known = np.array([volumes.get(basin, -np.inf) for basin in basins.tolist()])
    free = typical - known
    return relevant | (free <= free.min() + RELEVANT)


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
