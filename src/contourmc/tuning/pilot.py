"""The pilot: what a run must know about its target before it begins, learnt in a small part of its steps.

Walkers start where the chains start. At temperature 1 they find the scale of every coordinate and the step size
that a Metropolis test accepts as often as it should. Then they are heated, rung by rung, until they leave the basin
where they began; from every rung a copy of them is cooled again, to see which minima there are and how low
the energy gets. `conclusions.py` derives the energies worth flattening.

The pilot is a state machine: a `PilotPlan` says what each chunk of steps is for, and `advance` makes the next one.
"""

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from contourmc._core.checks import require
from contourmc._core.pytrees import Position
from contourmc.draws.basins import scaled_vectors
from contourmc.kernels.adjusted import Adjusted
from contourmc.kernels.dynamics import Dynamics
from contourmc.kernels.langevin import Langevin
from contourmc.kernels.scale import Factor
from contourmc.targets.base import NAN_GRADIENT_CURE, Target
from contourmc.tuning.covariance import MOST_DENSE, measure
from contourmc.tuning.walkers import Record, measured_scale, place, walk

MOMENTUM = 0.8
ACCEPTANCE = 0.85  # of the Metropolis test: between the best for one coordinate and the best for many
FIRST_STEP = 0.3  # in units of the scale squared
LARGEST_STEP = 0.5  # larger ones gain nothing
TEMPERATURES = (2.0, 4.0, 8.0, 16.0, 32.0)
COLD = 0.01
WALKERS = 32
CHUNKS = (2, 5, 10, 20, 50)  # steps
UNDEFINED = 1e-3  # the share of gradients that are NaN from which on it is more than a point, as the tip of √|x| is
UNITS = "in which they vary by about 1"
CORRELATED = 9.0  # the condition number, in units of the widths, from which on their covariance pays


class Chunk(NamedTuple):
    """What a chunk of steps is for, and its temperature.

    `settle`: find scale and step size.  `heat`: leave the basin.  `cool`, `typical`, `freeze`: with a copy, cool to
    temperature 1, stay there, and cool further to almost 0.
    """

    role: Literal["settle", "heat", "cool", "typical", "freeze"]
    temperature: float


class Visits(NamedTuple):
    """Points of walkers as vectors, and the gradients there, both (walker, point, coordinate)."""

    points: np.ndarray
    gradients: np.ndarray


class Rung(NamedTuple):
    """temperature: of the walkers.  hot: their energies there.  places: where they were, stacked.
    typical: energies of the cooled copy at temperature 1, (step, walker).
    visits: points and gradients of the cooled copy at temperature 1, now and then; None for large positions.
    minima: where the copy came to rest, stacked.  lowest: the energies there.
    sinking: by how much the energy fell from the first to the last quarter of the time at temperature 1.
    falling: by how much it still fell in the last chunk, near temperature 0.
    """

    temperature: float
    hot: np.ndarray
    places: Position
    typical: np.ndarray
    visits: Visits | None
    minima: Position
    lowest: np.ndarray
    sinking: float
    falling: float


class PilotState(NamedTuple):
    """number: chunks made so far.
    walkers: the states of the walkers.
    step_size: ε, in units of the scale squared.
    scale: σ of every coordinate; None for energies that are not exact.
    factor: L, with LLᵀ their covariance, where coordinates depend on one another; else None.
    acceptance: how often the Metropolis test accepted in the last chunk.
    settled_acceptance: the same at the end of settling.
    moving: chunks since the scale last changed in which walkers moved.
    log_steps: log ε after each chunk of settling.
    energies: of every chunk of this rung, (step, walker).
    visits: points and gradients of the chunks at temperature 1, of settling or this rung.
    places: where the walkers were before a copy of them was cooled; None while no copy is.
    rungs: the completed rungs.
    """

    number: int
    walkers: Any
    step_size: float
    scale: Position | None
    factor: np.ndarray | None
    acceptance: float
    settled_acceptance: float
    moving: int
    log_steps: tuple[float, ...]
    energies: tuple[np.ndarray, ...]
    visits: tuple[Visits, ...]
    places: Position | None
    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class PilotPlan:
    """The sizes of a pilot, and what each of its chunks is for.

    dynamics: of the walkers.
    chains: of the run that the pilot prepares.
    walkers: the number of walkers.
    chunk: steps in a chunk.
    settle, heat, cool: chunks of settling, of heating at each temperature, and of each stage of cooling.
    given_step: whether the step size is given.
    """

    dynamics: Dynamics
    chains: int
    walkers: int
    chunk: int
    settle: int
    heat: int
    cool: int
    given_step: bool

    @property
    def exact(self) -> bool:
        return isinstance(self.dynamics, Adjusted)

    def scaled_dynamics(self, state: PilotState) -> Dynamics:
        """The dynamics in the units that the walkers have found."""
        scale = state.scale if state.factor is None else Factor(jnp.asarray(state.factor, jnp.result_type(float)))
        return replace(self.dynamics, scale=scale) if isinstance(self.dynamics, Adjusted) else self.dynamics

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """All chunks in their order."""
        chunks = [Chunk("settle", 1.0)] * self.settle
        for temperature in (1.0, *TEMPERATURES):
            chunks += [Chunk("heat", temperature)] * (self.heat if temperature > 1 else 0)
            chunks += [Chunk("cool", float(t)) for t in np.geomspace(temperature, 1.0, self.cool + 1)[1:]]
            chunks += [Chunk("typical", 1.0)] * self.cool
            chunks += [Chunk("freeze", float(t)) for t in np.geomspace(1.0, COLD, self.cool + 1)[1:-1]]
            chunks += [Chunk("freeze", COLD)]
        return tuple(chunks)

    def steps_after(self, number: int) -> int:
        """The cost of this many chunks, in steps of each chain of the run."""
        return -(-number * self.chunk * self.walkers // self.chains)


def plan_pilot(target: Target, chains: int, steps: int, step_size: float | None) -> PilotPlan:
    """The pilot of a run with this many chains, in at most `steps` evaluations for each chain."""
    budget = steps * min(chains, WALKERS)  # more chains than walkers do not make them walk for longer
    # Few different sizes: runs of other lengths mostly find the program compiled.
    chunk = max(size for size in CHUNKS if size == CHUNKS[0] or 400 * size <= budget)
    count = 2 ** round(np.log2(np.clip(budget / (chunk * 100), 1, WALKERS)))
    chunks = budget // (chunk * count)
    settle = max(4, chunks // 4)
    cool = max(1, (chunks - settle) // (7 * len(TEMPERATURES)))
    heat = max(1, (chunks - settle - 3 * cool) // len(TEMPERATURES) - 3 * cool)
    given = step_size is not None
    dynamics = Adjusted(1.0, 1.0, MOMENTUM) if target.exact else Langevin(step_size if given else 1.0, 1.0, MOMENTUM)
    return PilotPlan(dynamics, chains, count, chunk, settle, heat, cool, given)


def start(plan: PilotPlan, positions: Position, step_size: float | None) -> PilotState:
    """The walkers at the stacked starting positions of the chains."""
    scale = jax.tree.map(lambda leaf: np.ones(leaf.shape[1:], leaf.dtype), positions) if plan.exact else None
    placed = jax.tree.map(lambda leaf: np.asarray(leaf)[np.arange(plan.walkers) % leaf.shape[0]], positions)
    first = FIRST_STEP if step_size is None else step_size
    return PilotState(0, place(plan.dynamics, placed), first, scale, None, 1.0, 1.0, 0, (), (), (), None, ())


def advance(plan: PilotPlan, target: Target, key: PRNGKeyArray, state: PilotState) -> tuple[PilotState, float]:
    """The state after the next chunk, and how long its call took, which for the first is mostly compilation."""
    chunk = plan.chunks[state.number]
    positions = jax.vmap(plan.dynamics.draw)(state.walkers)
    places = positions if chunk.role == "cool" and state.places is None else state.places
    began = time.perf_counter()
    dynamics, key = plan.scaled_dynamics(state), jax.random.fold_in(key, state.number)
    walkers, record = walk(target, dynamics, plan.chunk, state.walkers, key, state.step_size, chunk.temperature)
    energies = np.asarray(record.energies)
    seconds = time.perf_counter() - began
    if chunk.role == "settle":
        share = float(record.undefined)
        found = f"a gradient that is NaN where the energy is finite, in {share:.2g} of the pilot's first steps"
        require(share < UNDEFINED, "target", found, NAN_GRADIENT_CURE)
    remedy = "give a smaller step_size" if not plan.exact else "the energy seems to have no lowest value"
    require(bool(np.all(np.isfinite(energies))), "target", "an energy that is not finite in the pilot", remedy)
    state = state._replace(
        number=state.number + 1, walkers=walkers, acceptance=float(record.acceptance), places=places,
        energies=(*state.energies, energies), visits=(*state.visits, *_visits(plan, chunk, state, record)),
    )  # fmt: skip
    if chunk.role == "settle":
        return _settled(plan, state, record), seconds
    last = state.number == len(plan.chunks) or (chunk.role == "freeze" and plan.chunks[state.number].role == "heat")
    return (_rung_done(plan, state) if last else state), seconds


def _settled(plan: PilotPlan, state: PilotState, record: Record) -> PilotState:
    """After a chunk of settling: a better scale or step size; at the end, the mean of the last step sizes."""
    done = state.number
    if plan.exact:
        moving = state.acceptance > 0.05
        if done - 1 in {plan.settle // 6, plan.settle // 3, plan.settle // 2} - {0} and moving:
            state = _rescaled(plan, state, record)
        elif not plan.given_step:
            since = state.moving + moving
            grown = np.log(state.step_size) + 3 / (1 + since / 8) * (state.acceptance - ACCEPTANCE)
            size = float(np.exp(min(grown, np.log(LARGEST_STEP))))
            state = state._replace(moving=since, step_size=size, log_steps=(*state.log_steps, float(np.log(size))))
    if done < plan.settle:
        return state
    if state.log_steps:
        mean = np.mean(state.log_steps[-max(1, plan.settle // 4) :])
        state = state._replace(step_size=float(np.exp(mean)))
    _require_landscape(np.concatenate(state.energies), record)  # first: on energies too coarse no step may be accepted
    named, remedy = ("step_size", state.step_size), "every move was refused: give a smaller step size"
    if not plan.given_step:
        named = "target", f"an energy by which even steps of {(2 * state.step_size) ** 0.5:.0e} are all refused"
        remedy = f"check the energy; or, if positions vary by less than that, measure them in units {UNITS}"
    require(state.acceptance > 0, *named, remedy)
    return state._replace(settled_acceptance=state.acceptance, visits=())


def _visits(plan: PilotPlan, chunk: Chunk, state: PilotState, record: Record) -> tuple[Visits, ...]:
    """What a chunk adds to the visits."""
    settling = chunk.role == "settle" and state.number > plan.settle // 3
    if not plan.exact or not (settling or chunk.role == "typical"):
        return ()
    points, gradients = (scaled_vectors(tree, None, 2) for tree in (record.points, record.gradients))
    return (Visits(points, gradients),) if points.shape[-1] <= MOST_DENSE else ()


def _joined(visits: tuple[Visits, ...]) -> Visits | None:
    return Visits(*(np.concatenate(leaves, axis=1) for leaves in zip(*visits, strict=True))) if visits else None


def _rescaled(plan: PilotPlan, state: PilotState, record: Record) -> PilotState:
    """The state with the scale that a chunk of steps shows; a step size that is not given is searched for again."""
    scale, size, visits = measured_scale(state.scale, record), state.step_size, _joined(state.visits)
    shape = None if visits is None else measure(*visits)
    factor = shape.factor if shape is not None and shape.condition >= CORRELATED else None
    if plan.given_step:  # a given step size is in the user's own units
        largest = max(float(jnp.max(leaf)) for leaf in jax.tree.leaves(scale))
        scale = jax.tree.map(lambda leaf: leaf / largest, scale)
        factor = None if factor is None else factor / np.linalg.norm(factor, 2)
    else:
        size = FIRST_STEP
    walkers = place(plan.dynamics, jax.vmap(plan.dynamics.draw)(state.walkers))
    return state._replace(walkers=walkers, scale=scale, factor=factor, step_size=size, moving=0)


def _rung_done(plan: PilotPlan, state: PilotState) -> PilotState:
    """The state with one more rung, and the walkers back where they were before they were cooled."""
    energies, first = state.energies, not state.rungs
    hot_chunks = energies[: plan.settle if first else plan.heat]
    hot = np.concatenate(hot_chunks[plan.settle // 2 :] if first else hot_chunks)
    begin = len(hot_chunks) + plan.cool
    typical, last = np.concatenate(energies[begin : begin + plan.cool]), energies[-1]
    quarter = max(1, len(typical) // 4)
    rung = Rung(
        temperature=(1.0, *TEMPERATURES)[len(state.rungs)],
        hot=hot if first else hot[len(hot) // 2 :],
        places=state.places,
        typical=typical[len(typical) // 2 :],
        visits=_joined(state.visits),
        minima=jax.vmap(plan.dynamics.draw)(state.walkers),
        lowest=last[-1],
        sinking=float(np.median(typical[:quarter].mean(axis=0) - typical[-quarter:].mean(axis=0))),
        falling=float(np.median(last[0] - last[-1])),
    )
    walkers = place(plan.dynamics, state.places)
    return state._replace(walkers=walkers, energies=(), visits=(), places=None, rungs=(*state.rungs, rung))


def _require_landscape(energies: np.ndarray, record: Record) -> None:
    """Raise for energies that cannot be told apart."""
    flat = all(not np.any(leaf) for leaf in jax.tree.leaves(record.gradient_variance)) and np.ptp(energies) == 0
    if flat and float(record.acceptance) == 1:  # else it has walls
        slopes = [np.max(np.abs(leaf), initial=0.0) for leaf in jax.tree.leaves(record.gradients)]
        slope = float(max(slopes))
        remedy = f"it hardly changes in steps of about 1: measure positions in units of {1 / max(slope, 1e-38):.0e},"
        require(slope == 0, "target", f"an energy with gradients of {slope:.0e}", f"{remedy} {UNITS}")
        remedy = "there is nothing to sample: check the energy, give it walls (jnp.inf), or measure positions"
        require(False, "target", "an energy that is the same everywhere", f"{remedy} in units {UNITS}")
    size = float(np.max(np.abs(energies[-1])))
    grain = float(np.spacing(np.asarray(size, energies.dtype)))
    coarse = f"numbers of this size are {grain:.2g} apart in {energies.dtype}, too coarse for differences of 1"
    remedy = "start closer to where the mass is, subtract a constant inside the function, or turn on jax_enable_x64"
    require(grain < 0.1, "target", f"energies around {size:.3g}", f"{coarse}: {remedy}")
