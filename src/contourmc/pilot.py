"""The pilot: what a run must know of its target before it begins, learnt in a small part of its steps.

Walkers start where the chains start. At temperature 1 they find the scale of every coordinate and the step size
that a Metropolis test accepts as often as it should. Then they are heated, rung by rung, until they leave the basin
where they began; from every rung a copy of them is cooled again, to see which minima there are and how low
the energy gets. From this follow the energies worth flattening: from the middle of those that the deepest
basin has at temperature 1, up to what it takes to leave a basin.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from contourmc.checks import require
from contourmc.kernels.adjusted import Adjusted, AdjustedInputs
from contourmc.kernels.base import Dynamics, Position
from contourmc.kernels.langevin import Langevin
from contourmc.partition import Partition
from contourmc.targets import Target

MOMENTUM = 0.8
ACCEPTANCE = 0.85  # of the Metropolis test: between the best for one coordinate and the best for many
LARGEST_STEP = 0.5  # in units of the scale squared; larger ones gain nothing
TEMPERATURES = (2.0, 4.0, 8.0, 16.0, 32.0)
RELEVANT = 10.0  # a basin this much above the deepest, in typical energy, has next to no mass
LEFT = 0.25  # the share of walkers that have left their basin at a temperature that lets them
COLD = 0.01
WALKERS = 32


@dataclass(frozen=True)
class Pilot:
    """What the pilot found.

    step_size: ε, in units of the scale squared.
    scale: σ of every coordinate, shaped like a position; None for energies that are not exact.
    acceptance: how often the Metropolis test accepted at temperature 1.
    partition: the energies worth flattening.
    temperature: the one at which walkers left the basin where they began; its energies are the highest flattened.
    left: the share of walkers that had left, at that temperature.
    minima: the relevant minima found, stacked, the lowest first.
    minimum_energies: their energies.
    starts: a position for each chain, from the walkers at that temperature.
    steps: evaluations spent, for each chain of the run.
    compile_seconds: how long the first call of the compiled program took.
    """

    step_size: float
    scale: Position | None
    acceptance: float
    partition: Partition
    temperature: float
    left: float
    minima: Position
    minimum_energies: Float[np.ndarray, " minima"]
    starts: Position
    steps: int
    compile_seconds: float


class Record(NamedTuple):
    """A chunk of steps: energies (step, walker), the share of accepted proposals, moments of x and ∇U."""

    energies: Float[Array, "steps walkers"]
    acceptance: Float[Array, ""]
    position_variance: Position
    gradient_variance: Position


def explore(
    target: Target, positions: Position, key: PRNGKeyArray, steps: int, step_size: float | None, exact: bool
) -> Pilot:
    """The pilot of a run whose chains start at the stacked positions, in at most `steps` evaluations a chain.

    step_size: ε if it is given; it must be, unless energies are exact.
    """
    chains = jax.tree.leaves(positions)[0].shape[0]
    budget = steps * chains
    chunk = int(np.clip(budget // 400, 2, 50))
    count = int(np.clip(budget // (chunk * 100), 1, WALKERS))
    chunks = budget // (chunk * count)
    walkers = Walkers(target, positions, key, count, chunk, step_size, exact)

    local = max(4, chunks // 4)
    energies = walkers.settle(local, fixed=step_size is not None)
    acceptance = walkers.acceptance
    cool = max(1, (chunks - local) // (7 * len(TEMPERATURES)))
    heat = max(1, (chunks - local - 3 * cool) // len(TEMPERATURES) - 3 * cool)
    rungs = [_look(walkers, 1.0, cool, energies)]
    for temperature in TEMPERATURES:
        hot = np.concatenate([walkers.walk(temperature) for _ in range(heat)])
        rungs.append(_look(walkers, temperature, cool, hot[len(hot) // 2 :]))
    return _conclude(walkers, rungs, acceptance, chains)


class Walkers:
    """A crowd of chains that moves a chunk of steps at a time, at a temperature chosen by the way."""

    def __init__(
        self, target: Target, positions: Position, key: PRNGKeyArray, count: int, chunk: int,
        step_size: float | None, exact: bool,
    ):  # fmt: skip
        self.target, self.chunk, self.count, self.exact = target, chunk, count, exact
        self.step_size = 0.3 if step_size is None else step_size
        self.dynamics: Dynamics = Adjusted(1.0, 1.0, MOMENTUM) if exact else Langevin(self.step_size, 1.0, MOMENTUM)
        self.scale = jax.tree.map(lambda leaf: jnp.ones(leaf.shape[1:], leaf.dtype), positions) if exact else None
        self.acceptance = 1.0
        self.evaluations = 0
        self.compile_seconds = 0.0
        self._key, self._number = key, 0
        self.place(jax.tree.map(lambda leaf: leaf[jnp.arange(count) % leaf.shape[0]], positions))

    @property
    def positions(self) -> Position:
        return jax.vmap(self.dynamics.draw)(self._states)

    def place(self, positions: Position) -> None:
        """Go on from these positions."""
        states = jax.vmap(self.dynamics.init)(positions)
        if self.scale is not None:
            spread = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.count, *leaf.shape)), self.scale)
            states = states._replace(scale=spread)
        self._states = states

    def settle(self, chunks: int, *, fixed: bool) -> np.ndarray:
        """Find scale and step size at temperature 1; returns the energies of the last half, (step, walker)."""
        energies, log_steps = [], []
        windows = {chunks // 6, chunks // 3, chunks // 2} - {0} if self.exact else set()
        since = 0
        for number in range(chunks):
            energies.append(self.walk(1.0))
            if not self.exact:
                continue
            moving = self.acceptance > 0.05
            if number in windows and moving:
                self._rescale(fixed)
                since = 0
            elif not fixed:
                since += moving
                gain = 3 / (1 + since / 8)
                grown = np.log(self.step_size) + gain * (self.acceptance - ACCEPTANCE)
                self.step_size = float(np.exp(min(grown, np.log(LARGEST_STEP))))
                log_steps.append(np.log(self.step_size))
        if log_steps and not fixed:
            self.step_size = float(np.exp(np.mean(log_steps[-max(1, chunks // 4) :])))
        remedy = (
            "every move was refused: give a smaller step size" if fixed else "check the energy: no step is small enough"
        )
        require(self.acceptance > 0, "step_size", self.step_size, remedy)
        _require_landscape(np.concatenate(energies), self.record)
        return np.concatenate(energies[chunks // 2 :])

    def walk(self, temperature: float) -> np.ndarray:
        """A chunk of steps; returns the energies, (step, walker)."""
        key = jax.random.fold_in(self._key, self._number)
        began = time.perf_counter()
        self._states, self.record = _walk(
            self.target, self.dynamics, self.chunk, self._states, key, self.step_size, temperature
        )
        if self._number == 0:
            self.compile_seconds = time.perf_counter() - began
        self._number += 1
        self.evaluations += self.chunk * self.count
        self.acceptance = float(self.record.acceptance)
        energies = np.asarray(self.record.energies)
        self.target.after(0)
        remedy = "give a smaller step_size" if not self.exact else "the energy seems to have no lowest value"
        require(bool(np.all(np.isfinite(energies))), "target", "an energy that is not finite in the pilot", remedy)
        return energies

    def _rescale(self, fixed: bool) -> None:
        """σ⁴ = Var x / Var ∇U, which holds for a Gaussian even when it has not been crossed yet (Seyboldt 2024)."""

        def measure(scale: Array, x: Array, g: Array) -> Array:
            moved = (x > 0) & (g > 0) & jnp.isfinite(x) & jnp.isfinite(g)
            return jnp.where(moved, (x / jnp.where(moved, g, 1.0)) ** 0.25, scale)

        record = self.record
        self.scale = jax.tree.map(measure, self.scale, record.position_variance, record.gradient_variance)
        if fixed:  # a given step size is in the user's own units
            largest = max(float(jnp.max(leaf)) for leaf in jax.tree.leaves(self.scale))
            self.scale = jax.tree.map(lambda leaf: leaf / largest, self.scale)
        else:
            self.step_size = 0.3
        self.place(self.positions)


@partial(jax.jit, static_argnames=("dynamics", "chunk"))
def _walk(
    target: Target, dynamics: Dynamics, chunk: int, states: Any, key: PRNGKeyArray, step_size: Array, temperature: Array
) -> tuple[Any, Record]:
    """`chunk` steps of every walker."""

    def walker(key: PRNGKeyArray, state: Any) -> tuple[Any, Any]:
        own, other = jax.random.split(key)
        steps = jnp.arange(1, chunk + 1)
        inputs = dynamics.prepare(own, state.position, steps)
        full = partial(jnp.full, steps.shape)
        if isinstance(inputs, AdjustedInputs):
            inputs = inputs._replace(step_size=full(step_size), temperature=full(temperature))
        else:
            noise = jax.tree.map(lambda leaf: leaf * jnp.sqrt(temperature).astype(leaf.dtype), inputs.noise)
            inputs = inputs._replace(noise=noise, temperature=full(temperature))
        noise = target.prepare(other, state.position, steps)

        def step(state: Any, given: Any) -> tuple[Any, Any]:
            move_inputs, target_inputs = given
            energy, gradient = target.evaluate(target_inputs, state.position)
            new, info = dynamics.move(move_inputs, state, energy, gradient)
            here = state.gradient if isinstance(inputs, AdjustedInputs) else gradient
            return new, (info.energy, dynamics.draw(state), here)

        state, (energies, xs, gs) = jax.lax.scan(step, state, (inputs, noise))
        return state, (energies, jax.tree.map(_variance, xs), jax.tree.map(_variance, gs))

    before = getattr(states, "accepted", jnp.zeros(1))
    states, (energies, x, g) = jax.vmap(walker)(jax.random.split(key, states.steps.shape[0]), states)
    accepted = getattr(states, "accepted", jnp.full(1, chunk)) - before
    middle = partial(jax.tree.map, partial(jnp.median, axis=0))
    return states, Record(energies.T, jnp.mean(accepted) / chunk, middle(x), middle(g))


def _variance(rows: Array) -> Array:
    """Along the second half of a walker's chunk."""
    return jnp.var(rows[rows.shape[0] // 2 :], axis=0)


class Rung(NamedTuple):
    """temperature: of the walkers.  hot: their energies there.  places: where they were, stacked.
    typical: energies of the cooled copy at temperature 1, (step, walker).
    minima: where the copy came to rest, a row for each walker.  lowest: the energies there.
    falling: by how much the energy still fell in the last chunk, next to temperature 0.
    """

    temperature: float
    hot: np.ndarray
    places: Position
    typical: np.ndarray
    minima: Position
    lowest: np.ndarray
    falling: float


def _look(walkers: Walkers, temperature: float, chunks: int, hot: np.ndarray) -> Rung:
    """Cool a copy of the walkers to temperature 1 and stay there, then to next to 0; then put them back."""
    places = walkers.positions
    for cooler in np.geomspace(temperature, 1.0, chunks + 1)[1:]:
        walkers.walk(float(cooler))
    typical = np.concatenate([walkers.walk(1.0) for _ in range(chunks)])
    for cooler in np.geomspace(1.0, COLD, chunks + 1)[1:-1]:
        walkers.walk(float(cooler))
    last = walkers.walk(COLD)
    falling = float(np.median(last[0] - last[-1]))
    rung = Rung(temperature, hot, places, typical[len(typical) // 2 :], walkers.positions, last[-1], falling)
    walkers.place(places)
    return rung


def _conclude(walkers: Walkers, rungs: list[Rung], acceptance: float, chains: int) -> Pilot:
    """The partition, from the basins and the temperature at which walkers leave theirs."""
    typical = np.concatenate([np.median(rung.typical, axis=0) for rung in rungs])
    lowest = np.concatenate([rung.lowest for rung in rungs])
    places = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(rung.minima for rung in rungs))
    _require_bottom(lowest, rungs[0])
    basins = _basins(places, walkers.scale, lowest)
    relevant = typical <= typical.min() + RELEVANT

    of_rung = basins.reshape(len(rungs), -1)
    home = np.bincount(of_rung[0]).argmax()
    left = np.where(relevant.reshape(of_rung.shape), of_rung != home, False).mean(axis=1)
    # One rung above the first at which many have left: to leave is not yet to come and go.
    free = min(int(np.argmax(left >= LEFT)) + 1, len(rungs) - 1) if np.any(left >= LEFT) else 2
    rung = rungs[free]

    at_one = np.concatenate([one.typical for one in rungs], axis=1)  # (step, walker)
    deepest = basins == basins[np.argmin(typical)]
    low = float(np.median(at_one[:, deepest]))
    spread = float(np.sqrt(np.mean(np.var(at_one[:, relevant], axis=0))))
    high = max(float(np.quantile(rung.hot, 0.99)), low + 4 * spread)
    width = max(min(1.5 * spread, (high - low) / 8), (high - low) / 500)
    partition = Partition(low, width, 2 + int(np.ceil((high - low) / width)))

    leaders = [int(np.flatnonzero(basins == basin)[0]) for basin in np.unique(basins[relevant])]
    leaders.sort(key=lambda row: lowest[row])
    return Pilot(
        step_size=walkers.step_size,
        scale=walkers.scale,
        acceptance=acceptance,
        partition=partition,
        temperature=rung.temperature,
        left=float(left[free]),
        minima=jax.tree.map(lambda leaf: leaf[leaders], places),
        minimum_energies=lowest[leaders],
        starts=jax.tree.map(lambda leaf: leaf[jnp.arange(chains) % walkers.count], rung.places),
        steps=-(-walkers.evaluations // chains),
        compile_seconds=walkers.compile_seconds,
    )


def _basins(places: Position, scale: Position | None, lowest: np.ndarray) -> np.ndarray:
    """A number for each place; places within a scale of one another in every coordinate share it."""
    leaves = jax.tree.leaves(places)
    scales = [1.0] * len(leaves) if scale is None else [np.asarray(leaf) for leaf in jax.tree.leaves(scale)]
    rows = np.concatenate(
        [np.reshape(leaf / own, (len(leaf), -1)) for leaf, own in zip(leaves, scales, strict=True)], axis=1
    )
    leaders: list[int] = []
    found = np.zeros(len(rows), int)
    for row in np.argsort(lowest, kind="stable"):
        near = [i for i, leader in enumerate(leaders) if np.max(np.abs(rows[row] - rows[leader])) < 1.0]
        found[row] = near[0] if near else len(leaders)
        if not near:
            leaders.append(int(row))
    return found


def _require_landscape(energies: np.ndarray, record: Record) -> None:
    """Raise for energies among which nothing can be told apart."""
    flat = all(not np.any(leaf) for leaf in jax.tree.leaves(record.gradient_variance)) and np.ptp(energies) == 0
    require(not flat, "target", "an energy that is the same everywhere", "there is nothing to sample: check the energy")
    size = float(np.max(np.abs(energies)))
    grain = float(np.spacing(np.asarray(size, energies.dtype)))
    remedy = (
        f"numbers of this size are {grain:.2g} apart in {energies.dtype}, too coarse for differences of 1:"
        " subtract a constant from the energy, or turn on jax_enable_x64"
    )
    require(grain < 0.1, "target", f"energies around {size:.3g}", remedy)


def _require_bottom(lowest: np.ndarray, first: Rung) -> None:
    """Raise if the cooled walkers are still falling."""
    remedy = "the energy seems to have no lowest value: check its sign, add a prior or walls, or start less far out"
    bottom = float(np.min(lowest))
    require(bottom > -1e30, "target", f"an energy of {bottom:.3g} in the pilot", remedy)
    numbers = sum(np.size(leaf[0]) for leaf in jax.tree.leaves(first.minima))
    settled = first.falling < 1 + 0.1 * numbers
    require(settled, "target", f"an energy still falling, to {bottom:.3g}, at the end of the pilot", remedy)
