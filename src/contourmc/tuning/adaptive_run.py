"""A run that tunes itself: pilot, learning, sampling.

The pilot chooses step size, scales and energy partition. The chains then learn θ: each for itself for a while, until
they meet and go on with the mean. The partition follows the energies that they find. Then everything is fixed and they
sample: from here on the flattened distribution does not change, and the weights are exact. If sampling finds energies
far below the partition, in a basin deeper than any known before, the partition is extended and θ is learnt again.

The run is a state machine. At each goal, a step that its state names, it decides how to go on:

    pilot      after each chunk of steps              → learning, after the last chunk
    learning   MEETINGS of the chains; ROUNDS looks at the partition  → learning with more bins, or sampling
    sampling   LOOKS looks for energies far below it  → learning again, or the end
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc._core.pytrees import Position, shape_of_one
from contourmc.draws.basins import Basins
from contourmc.draws.samples import Samples
from contourmc.draws.trajectory import Trajectory
from contourmc.engine.kernel_run import KernelRun, Length
from contourmc.engine.plan import is_large
from contourmc.engine.recorder import trajectory_of
from contourmc.engine.run import Report, Run
from contourmc.engine.state import gather
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import LogTheta
from contourmc.kernels.adjusted import Adjusted
from contourmc.kernels.basin_shapes import basin_shapes
from contourmc.kernels.contour import Contour, ContourState
from contourmc.kernels.dynamics import Flattenable
from contourmc.kernels.jumps import Jumps
from contourmc.kernels.langevin import Langevin
from contourmc.kernels.scale import Factor
from contourmc.kernels.schedules import Polynomial
from contourmc.predictions.average import Average
from contourmc.targets.base import Target
from contourmc.tuning import pilot
from contourmc.tuning.adaptive_state import (
    LEARNING,
    LOOKS,
    PILOT,
    ROUNDS,
    SAMPLING,
    STAGES,
    AdaptiveState,
    Extension,
)
from contourmc.tuning.conclusions import Bins, Conclusions, conclude
from contourmc.tuning.rebinning import bins_to_add, rebin
from contourmc.tuning.varied_step import VariedStep

OMEGA = Polynomial(scale=10.0, power=0.6, offset=100.0)
RELEARN = 2  # how many times θ may be learnt again

# The state, and the run that advances its chains; None in the pilot.
Now = tuple[AdaptiveState, KernelRun | None]


class AdaptiveRun(Run):
    """A run without a kernel, from stacked positions and a key for each chain."""

    def __init__(
        self,
        target: Target,
        positions: Position,
        keys: Array,
        length: Length,
        *,
        partition: Partition | None,
        step_size: float | None,
        average: Average | None = None,
        store: bool = True,
        settings: dict[str, Any] | None = None,
    ):
        """partition, step_size: None to let the pilot find them. The burn-in is the length of pilot and learning."""
        super().__init__(length.steps, keys.shape[0])
        self.target, self.starts, self.keys, self.length = target, positions, keys, length
        self.given_step, self.follow = step_size, partition is None
        self.average, self.store, self.settings = average, store, {} if settings is None else settings
        self._past_seconds = self._past_compile_seconds = 0.0  # of the pilot and of finished stages
        self._plan = pilot.plan_pilot(target, self.chains, length.steps // 10, step_size)
        bins = None if partition is None else Bins(partition.low, partition.width, partition.bins)
        # Everything that changes is one pair, replaced as a whole: an interruption finds it before or after a change.
        if target.exact or partition is None:
            begin = pilot.start(self._plan, positions, step_size)
            self._now: Now = AdaptiveState(PILOT, pilot=begin, bins=bins), None
        else:
            self._now = self._begin_learning(AdaptiveState(LEARNING, bins=bins))

    @property
    def state(self) -> AdaptiveState:
        state, run = self._now
        return state if run is None else state._replace(run=run.state)

    @property
    def step(self) -> int:
        state, run = self._now
        if run is not None:
            return state.spent + run.step
        assert state.pilot is not None
        return self._plan.steps_after(state.pilot.number)

    @property
    def positions(self) -> Position:
        run = self._now[1]
        return self.starts if run is None else run.positions

    @property
    def target_states(self) -> Any:
        return None  # a target with a state needs a kernel

    @property
    def failure(self) -> str:
        run = self._now[1]
        return "" if run is None else run.failure

    def advance_to(self, step: int, report: Report | None) -> None:
        while self.step < step and not self.failure:
            state, run = self._now
            stage = STAGES[state.stage]
            if run is None:
                self._now = self._after_chunk(state)
                if report is not None:
                    report(stage, self.step, "")
                continue
            named = None if report is None else lambda _, at, note, stage=stage: report(stage, at, note)
            run.advance_to(min(state.goal, step - state.spent), named)
            if run.step == state.goal and not run.failure:
                self._now = self._at_goal(state, run)

    def samples(self) -> Samples:
        state, run = self._now
        settings = self.settings | self.state.describe(None if run is None else self._kernel(state))
        settings["automatic"]["one_start"] = all(np.all(leaf == leaf[:1]) for leaf in jax.tree.leaves(self.starts))
        seconds, compile_seconds = self._past_seconds, self._past_compile_seconds
        stage, unfinished = STAGES[state.stage], self.step < self.steps and not self.failure
        if run is None:
            return _no_samples(
                self.starts if self.store else None, self.starts, self.step, settings=settings, seconds=seconds,
                compile_seconds=compile_seconds, interrupted=unfinished, stage=stage,
            )  # fmt: skip
        found = state.found
        minima = None if found is None else Basins(found.minima, found.minimum_energies, found.scale, found.factor)
        drawn = run.samples()
        assert drawn.flattening is not None
        return replace(
            drawn, flattening=replace(drawn.flattening, automatic=self.follow), settings=settings, stage=stage,
            interrupted=unfinished, seconds=seconds + run.seconds, basins=minima,
            compile_seconds=compile_seconds + run.compile_seconds,
        )  # fmt: skip

    def _after_chunk(self, state: AdaptiveState) -> Now:
        """The pair after the next chunk of the pilot; after the last one, learning begins."""
        assert state.pilot is not None
        key = jax.random.fold_in(self.keys[0], 2**30)
        after, seconds = pilot.advance(self._plan, self.target, key, state.pilot)
        if after.number == 1:
            self._past_compile_seconds += seconds
        else:
            self._past_seconds += seconds
        state = state._replace(pilot=after)
        if after.number < len(self._plan.chunks):
            return state, None
        found = conclude(self._plan, after)
        bins = found.bins if state.bins is None else state.bins
        return self._begin_learning(state._replace(stage=LEARNING, found=found, bins=bins, spent=found.steps))

    def _at_goal(self, state: AdaptiveState, run: KernelRun) -> Now:
        """Let the chains meet or look at the energies; then go on, extend the partition, or change the stage."""
        sampling = state.stage == SAMPLING
        if not sampling:
            run.replace_states(_met(run))
        if run.step < state.look:
            return self._onward(state, run)
        state = state._replace(looks=state.looks + 1)
        early = state.looks < LOOKS // 2 and state.relearnt < RELEARN if sampling else state.looks < ROUNDS
        if self.follow and early:
            assert state.bins is not None
            energies = run.energies_since(0 if sampling else run.step * 4 // 5)
            below, above = bins_to_add(energies, state.bins.partition)
            if below or (above and not sampling):
                return self._extend(state, run, energies, below, above)
        if run.step < run.steps:
            return self._onward(state, run)
        return (state, run) if sampling else self._begin_sampling(state, run)

    def _onward(self, state: AdaptiveState, run: KernelRun) -> Now:
        """To the next goal."""
        return state.with_goal(run.step, run.steps, run.plan.build.block), run

    def _extend(self, state: AdaptiveState, run: KernelRun, energies: np.ndarray, below: int, above: int) -> Now:
        """Go on learning with more bins; if sampling had begun, for a third of the remaining steps."""
        assert state.bins is not None
        old = state.bins.partition
        new = old.extended(below, above)
        kernel_state = jax.vmap(lambda one: rebin(one, energies, old, new))(run.state.chains.state)
        extension = Extension(state.spent + run.step, (old.low, old.high), (new.low, new.high))
        remaining = run.steps - run.step
        state = self._past(state, run)._replace(
            bins=Bins(new.low, new.width, new.bins), extensions=(*state.extensions, extension)
        )
        if state.stage == SAMPLING:
            state = state._replace(stage=LEARNING, looks=0, relearnt=state.relearnt + 1)
            remaining = (self.steps - state.spent) // 3
        return self._learn(state, kernel_state, remaining)

    def _begin_learning(self, state: AdaptiveState) -> Now:
        """Start the chains where the pilot found it good to."""
        positions = self.starts if state.found is None else state.found.starts
        kernel_state = _start_chains(self._kernel(state), positions)
        return self._learn(state, kernel_state, self.length.burn_in - state.spent)

    def _learn(self, state: AdaptiveState, kernel_state: ContourState, steps: int) -> Now:
        """Learn θ from here on, for this many steps."""
        run = self._start(state, kernel_state, steps, thin=max(1, steps // 2000), average=None)
        return self._onward(state._replace(look=0), run)

    def _begin_sampling(self, state: AdaptiveState, run: KernelRun) -> Now:
        """Sample to the end, with θ fixed as it was learnt."""
        kernel_state = _with_mean_theta(run)
        state = self._past(state, run)._replace(stage=SAMPLING, looks=0)
        steps = self.steps - state.spent
        new = self._start(state, kernel_state, steps, thin=self.length.thin, average=self.average)
        return self._onward(state._replace(look=0), new)

    def _start(
        self, state: AdaptiveState, kernel_state: ContourState, steps: int, *, thin: int, average: Average | None
    ) -> KernelRun:
        """A run of the chains as they are, with its own randomness."""
        kernel, length = self._kernel(state), Length(steps, 0, thin, state.spent)
        keys = _fold_in(self.keys, state.spent)
        positions = jax.vmap(kernel.draw)(kernel_state)
        return KernelRun(
            self.target, kernel, positions, keys, length, average=average, store=self.store, kernel_state=kernel_state
        )

    def _kernel(self, state: AdaptiveState) -> Contour:
        """The kernel of a stage: chains learn θ, or sample with θ fixed."""
        assert state.bins is not None
        omega = OMEGA if state.stage == LEARNING else None
        return Contour(self._dynamics(state.found), state.bins.partition, omega=omega)

    def _dynamics(self, found: Conclusions | None) -> Flattenable:
        """How the chains move; if there are several basins and energies are exact, they also jump."""
        size = self.given_step if found is None else found.step_size
        assert size is not None
        if found is None or not self.target.exact:
            return Langevin(size, 1.0, pilot.MOMENTUM)
        scale = found.scale if found.factor is None else Factor(jnp.asarray(found.factor, jnp.result_type(float)))
        adjusted = Adjusted(VariedStep(size), 1.0, pilot.MOMENTUM, scale)
        return adjusted if found.means is None else Jumps(adjusted, basin_shapes(found.means, found.factors))

    def _past(self, state: AdaptiveState, run: KernelRun) -> AdaptiveState:
        """Add up the time and steps of a run before the next one begins."""
        self._past_seconds += run.seconds
        self._past_compile_seconds += run.compile_seconds
        return state._replace(spent=state.spent + run.step)


@jax.jit
def _start_chains(kernel: Contour, positions: Position) -> ContourState:
    """The states of chains at rest at stacked positions."""
    return jax.vmap(kernel.init)(positions)


def _met(run: KernelRun) -> list[ContourState]:
    """The chains, in their groups, with the mean of what they have learnt: θ ← Σ_c θ_c / C."""
    groups = run.state.groups
    levels, offset = gather(groups, lambda chain: chain.state.theta)
    together = np.logaddexp.reduce(levels + offset[:, None])
    together = (together - np.logaddexp.reduce(together)).astype(levels.dtype)

    def meet(state: ContourState) -> ContourState:
        theta = state.theta
        levels = jnp.asarray(np.broadcast_to(together, theta.levels.shape))
        return state._replace(theta=LogTheta(levels, jnp.asarray(np.zeros(theta.offset.shape, levels.dtype))))

    return [meet(group.state) for group in groups]


def _with_mean_theta(run: KernelRun) -> ContourState:
    """The chains, with the mean of log θ over the second half of learning, which has less noise than the last."""
    kernel_state: ContourState = run.state.chains.state
    trajectory = trajectory_of(run.state)
    assert trajectory.theta is not None
    late = np.log(np.maximum(trajectory.theta[:, trajectory.steps > trajectory.steps[-1] // 2], 1e-300))
    levels, offset = kernel_state.theta
    mean = late.mean(axis=(0, 1))
    mean = (mean - np.logaddexp.reduce(mean)).astype(levels.dtype)
    theta = LogTheta(jnp.asarray(np.broadcast_to(mean, levels.shape)), jnp.asarray(np.zeros_like(offset)))
    return kernel_state._replace(theta=theta, visits=jnp.asarray(np.zeros_like(kernel_state.visits)))


_fold_in = jax.jit(jax.vmap(jax.random.fold_in, (0, None)))


def _no_samples(stored: Position | None, positions: Position, step: int, **fields: Any) -> Samples:
    """The samples of a run that has drawn nothing yet."""
    column = np.zeros((jax.tree.leaves(positions)[0].shape[0], 0), jnp.result_type(float))
    centre = None if is_large(shape_of_one(positions)) else jax.tree.map(np.asarray, positions)
    means = jax.tree.map(lambda leaf: leaf[:, None], centre)
    log_weights = np.full((len(column), 1), -np.inf)
    squares = jax.tree.map(np.zeros_like, means)
    return Samples(
        draws=jax.tree.map(lambda leaf: np.asarray(leaf)[:, None][:, :0], stored),
        energies=column,
        log_weights=column,
        multipliers=column,
        steps=np.zeros(0, int),
        trajectory=Trajectory(np.array([step]), log_weights, means, squares, centre, None, None),
        **fields,
    )
