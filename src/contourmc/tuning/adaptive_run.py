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
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from contourmc._core.compiling import call_compiled
from contourmc._core.processes import as_in_first
from contourmc._core.pytrees import Position
from contourmc.draws.basins import Basins
from contourmc.draws.samples import Samples
from contourmc.engine.kernel_run import KernelRun, SavedRun
from contourmc.engine.length import Length
from contourmc.engine.no_samples import no_samples
from contourmc.engine.run import Run
from contourmc.engine.together import Report, raise_lost_interrupt
from contourmc.flattening.partition import Partition
from contourmc.kernels.contour import Contour, ContourState
from contourmc.predictions.average import Average
from contourmc.targets.base import Target
from contourmc.targets.view import TracedView
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
from contourmc.tuning.chosen_kernel import chosen_kernel
from contourmc.tuning.conclusions import Bins, conclude
from contourmc.tuning.rebinning import bins_to_add, rebin
from contourmc.tuning.shared_theta import met, with_mean_theta

RELEARN = 2  # how many times θ may be learnt again

# The state, and the run that advances its chains; None in the pilot.
Now = tuple[AdaptiveState, KernelRun | None]


class SavedAdaptiveRun(NamedTuple):
    """What a checkpoint holds: how many steps the whole run is to make, its state, the run that advances the chains and
    its thinning, and the seconds of sampling and of compilation before that run.
    """

    steps: int
    state: AdaptiveState
    run: SavedRun | None
    thin: int
    past: tuple[float, float]


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
        view: TracedView | None = None,
    ):
        """partition, step_size: None to let the pilot find them. The burn-in is the length of pilot and learning.
        view: how the user sees draws; None if as they are sampled.
        """
        super().__init__(length.steps, keys.shape[0])
        self.target, self.starts, self.keys, self.length = target, positions, keys, length
        self.given_step, self.follow, self.view = step_size, partition is None, view
        self.average, self.store, self.settings = average, store, {} if settings is None else settings
        self._past_seconds = self._past_compile_seconds = 0.0  # of the pilot and of finished stages
        self._folder: Path | None = None  # for draws on disk
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

    def figures(self) -> dict[str, float]:
        run = self._now[1]
        return {} if run is None else run.figures()

    def average_figures(self) -> dict[str, float]:
        run = self._now[1]
        return {} if run is None else run.average_figures()

    def advance_to(self, step: int, report: Report | None) -> None:
        while self.step < step and not self.failure:
            raise_lost_interrupt()
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

    def lengthen(self, steps: int) -> None:
        state, run = self._now
        self.steps += steps
        self.length = self.length.longer(steps)
        self.settings = self.settings | {"steps": self.steps}
        if run is not None and state.stage == SAMPLING:
            run.lengthen(steps)
            self._now = self._onward(state, run)

    @property
    def store_name(self) -> str:
        run = self._now[1]
        return "" if run is None else run.store_name

    def keep_in(self, folder: Path) -> None:
        self._folder = folder
        state, run = self._now
        if run is not None and state.stage == SAMPLING:
            run.keep_in(folder, state.relearnt)

    def flush(self) -> None:
        state, run = self._now
        if run is None:
            return
        # Not when sampling begins: the disk may be full then, and have room later.
        if self._folder is not None and state.stage == SAMPLING and not run.store_name:
            run.keep_in(self._folder, state.relearnt)
        run.flush()

    def saved(self) -> SavedAdaptiveRun:
        state, run = self._now
        past = self._past_seconds, self._past_compile_seconds
        if run is None:
            return SavedAdaptiveRun(self.steps, state, None, 0, past)
        return SavedAdaptiveRun(self.steps, state, run.saved(), run.plan.thin, past)

    def restore(self, saved: SavedAdaptiveRun) -> None:
        steps, state, inside, thin, (self._past_seconds, self._past_compile_seconds) = saved
        self.lengthen(steps - self.steps)
        if inside is None:
            self._now = state, None
            return
        average = self.average if state.stage == SAMPLING else None
        run = self._start(state, inside.state.chains.state, inside.steps, thin=thin, average=average)
        run.restore(inside)
        self._now = state, run

    @property
    def draws(self) -> int:
        run = self._now[1]
        return 0 if run is None else run.draws

    def samples(self, *, on_disk: bool = True) -> Samples:
        state, run = self._now
        settings: dict[str, Any] = self.settings | self.state.describe(None if run is None else self._kernel(state))
        settings["automatic"]["one_start"] = all(np.all(leaf == leaf[:1]) for leaf in jax.tree.leaves(self.starts))
        given = {"partition": not self.follow, "step_size": self.given_step is not None}
        settings["automatic"]["given"] = [name for name, was in given.items() if was]
        seconds, compile_seconds = self._past_seconds, self._past_compile_seconds
        stage, unfinished = STAGES[state.stage], self.step < self.steps and not self.failure
        if run is None:
            return no_samples(
                self.starts, self.step, store=self.store, settings=settings, seconds=seconds,
                compile_seconds=compile_seconds, interrupted=unfinished, stage=stage, view=self.view,
            )  # fmt: skip
        found = state.found
        minima = None
        if found is not None:
            seen = None if self.view is None else self.view.of(found.minima, 1)
            minima = Basins(found.minima, found.minimum_energies, found.scale, found.factor, seen)
        drawn = run.samples(on_disk=on_disk)
        assert drawn.flattening is not None
        settings = drawn.settings | settings  # with what the kernel has found
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
        found = as_in_first(conclude(self._plan, after))  # one conclusion for all processes
        bins = found.bins if state.bins is None else state.bins
        return self._begin_learning(state._replace(stage=LEARNING, found=found, bins=bins, spent=found.steps))

    def _at_goal(self, state: AdaptiveState, run: KernelRun) -> Now:
        """Let the chains meet or look at the energies; then go on, extend the partition, or change the stage."""
        sampling = state.stage == SAMPLING
        if not sampling:
            run.replace_states(met(run))
        if run.step < state.look:
            return self._onward(state, run)
        state = state._replace(looks=state.looks + 1)
        early = state.looks < LOOKS // 2 and state.relearnt < RELEARN if sampling else state.looks < ROUNDS
        if self.follow and early:
            assert state.bins is not None
            energies = run.energies_since(0 if sampling else run.step * 4 // 5)
            below, above = as_in_first(bins_to_add(energies, state.bins.partition))
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
        kernel_state = rebin(run.state.chains.state, energies, old, new)
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
        kernel_state = call_compiled(_start_chains, self._kernel(state), positions)
        return self._learn(state, kernel_state, self.length.burn_in - state.spent)

    def _learn(self, state: AdaptiveState, kernel_state: ContourState, steps: int) -> Now:
        """Learn θ from here on, for this many steps."""
        run = self._start(state, kernel_state, steps, thin=max(1, steps // 2000), average=None)
        return self._onward(state._replace(look=0), run)

    def _begin_sampling(self, state: AdaptiveState, run: KernelRun) -> Now:
        """Sample to the end, with θ fixed as it was learnt."""
        kernel_state = with_mean_theta(run)
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
            self.target, kernel, positions, keys, length, average=average, store=self.store, kernel_state=kernel_state,
            view=self.view,
        )  # fmt: skip

    def _kernel(self, state: AdaptiveState) -> Contour:
        return chosen_kernel(state, self.given_step, exact=self.target.exact)

    def _past(self, state: AdaptiveState, run: KernelRun) -> AdaptiveState:
        """Add up the time and steps of a run before the next one begins."""
        self._past_seconds += run.seconds
        self._past_compile_seconds += run.compile_seconds
        return state._replace(spent=state.spent + run.step)


def _start_chains(kernel: Contour, positions: Position) -> ContourState:
    """The states of chains at rest at stacked positions."""
    return jax.vmap(kernel.init)(positions)


_fold_in = jax.jit(jax.vmap(jax.random.fold_in, (0, None)))
