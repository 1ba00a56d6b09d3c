"""A run of a given kernel, around the compiled loop: threads, segments, collecting, failures."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc._core import mesh
from contourmc._core.layout import Layout, layout_of
from contourmc._core.processes import joined_rows, own, own_rows, whole
from contourmc._core.progress import COMPILING
from contourmc._core.pytrees import Position, as_arguments, shape_of_one, unstack
from contourmc.data.data_error import HostError
from contourmc.draws.samples import Samples
from contourmc.engine.groups import grouped, no_draws, require_room, start_chains, threads
from contourmc.engine.kept_draws import KeptDraws
from contourmc.engine.length import Length
from contourmc.engine.loop import Segment, Span
from contourmc.engine.pace import Pace
from contourmc.engine.plan import is_large, make_plan
from contourmc.engine.programs import Programs
from contourmc.engine.recorder import note_on, read_mark, trajectory_of
from contourmc.engine.run import Run
from contourmc.engine.state import Draws, RunState, first_failure, gather, joined
from contourmc.engine.together import Report, raise_lost_interrupt
from contourmc.engine.vector_position import VectorAverage, VectorTarget
from contourmc.kernels.base import Kernel
from contourmc.predictions.average import Average
from contourmc.predictions.prediction import Prediction, warn_about
from contourmc.targets.base import Target
from contourmc.targets.view import Labels, TracedView


class SavedRun(NamedTuple):
    """What a checkpoint of a run holds: its state, how many steps it is to make, and the time that it took."""

    state: RunState
    steps: int
    seconds: float
    compile_seconds: float


class KernelRun(Run):
    """A run of one kernel with fixed settings."""

    def __init__(
        self,
        target: Target,
        kernel: Kernel,
        positions: Position,
        keys: Array,
        length: Length,
        *,
        average: Average | None = None,
        store: bool = True,
        per_chain: bool = False,
        kernel_state: Any = None,
        settings: dict[str, Any] | None = None,
        view: TracedView | None = None,
    ):
        """A run from stacked positions, with a key for each chain.

        average: what to average over the kept draws.
        store: whether their positions are stored.
        per_chain: whether target and average are stacks too, with one for each chain.
        kernel_state: the kernel's first state of each chain, stacked; None for `kernel.init` at the positions.
        settings: what `Samples.settings` will hold.
        view: how the user sees draws; None if as they are sampled.
        """
        super().__init__(length.steps, keys.shape[0])
        one, layout = shape_of_one(positions), None
        if kernel.elementwise and kernel_state is None and is_large(one):
            layout = layout_of(one)
        if layout is not None:
            positions, target = jax.jit(jax.vmap(layout.to_vector))(positions), VectorTarget(target, layout)
            average = None if average is None else VectorAverage(average, layout)
        plan = make_plan(
            shape_of_one(target) if per_chain else target, kernel, shape_of_one(positions), length.steps, length.thin,
            averaged=average is not None, store=store, per_chain=per_chain,
            mesh=mesh.make_mesh(self.chains, target.batch_parts, calls_host=target.calls_host),
        )  # fmt: skip
        if kernel_state is None:  # else a run that tunes itself has begun, whose chains were seen to fit
            one_target, one_average = shape_of_one((target, average)) if per_chain else (target, average)
            require_room(plan, one_target, kernel, shape_of_one(positions), one_average, self.chains)
        self.target, self.kernel, self.plan, self.average = target, kernel, plan, average
        self.layout: Layout | None = layout  # of positions that are vectors inside the run
        self.length, self.settings, self.view = length, {} if settings is None else settings, view
        self.compile_seconds = self.seconds = 0.0
        self._pace = Pace(plan)
        self._programs = Programs(target, kernel, average, plan)
        self._kept = KeptDraws(length, self._as_positions, view)
        chains = start_chains(plan.build, target, as_arguments(kernel), keys, positions, average, kernel_state)
        groups = grouped(plan.build, chains)
        none = jax.tree.map(own_rows, no_draws(target, kernel, plan.build, groups))
        self._state = RunState(0, groups, (none,), (), None)

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def step(self) -> int:
        return self._state.step

    @property
    def failure(self) -> str:
        failure = self._state.failure
        return "" if failure is None else failure.message(self.length.steps_before)

    @property
    def positions(self) -> Position:
        positions = jax.vmap(self.kernel.draw)(self._state.chains.state)
        if self.plan.build.mesh is not None:
            positions = jax.tree.map(jnp.asarray, whole(positions))
        return self._as_positions(positions)

    @property
    def target_states(self) -> Any:
        states = self.kernel.drawn(self.target, self._state.chains.target_state)
        return states if self.plan.build.mesh is None else whole(states)

    def energies_since(self, step: int) -> Float[np.ndarray, "chains draws"]:
        """The energies of the draws kept after a step."""
        return self._kept.energies(self._state)[:, self.length.draws_after(step) :]

    def replace_states(self, states: Sequence[Any]) -> None:
        """Go on from other states of the kernel, stacked as in each group of chains."""
        dealt = (mesh.deal(self.plan.build.mesh, state) for state in states)
        groups = zip(self._state.groups, dealt, strict=True)
        self._state = self._state._replace(groups=tuple(group._replace(state=state) for group, state in groups))

    def advance_to(self, step: int, report: Report | None) -> None:
        began, compiled_before = time.perf_counter(), self.compile_seconds
        if report is not None and not self._programs.ready:
            report("sampling", self.length.steps_before + self._state.step, COMPILING)
        try:
            self._compile()
            self.compile_seconds += time.perf_counter() - began
            with ThreadPoolExecutor(threads(self._state.groups)) as pool, self.target.reading():
                while self._state.step < step and self._state.failure is None:
                    raise_lost_interrupt()
                    self._advance(pool, self._pace.segment_end(self._state.step, step))
                    if report is not None:
                        count = self.length.steps_before + self._state.step
                        loss = None if self.target.exact else self.figures().get("loss")
                        report("sampling", count, note_on(self._state.draws[-1], loss))
        finally:
            self.seconds += time.perf_counter() - began - (self.compile_seconds - compiled_before)

    def figures(self) -> dict[str, float]:
        health, observations = gather(self._state.groups, lambda chain: chain.health), self.target.observations
        energy, multiplier = (float(np.mean(values, dtype=float)) for values in (health.energy, health.multiplier))
        loss = {} if observations is None else {"loss": energy / observations}
        return {"energy": energy, "multiplier": multiplier} | loss

    def average_figures(self) -> dict[str, float]:
        found = self._averaged(self._comparable_weights) if self.draws else None
        results = [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, Prediction)]
        each = [one.figures() for one in results]
        return {name: float(np.mean([figures[name] for figures in each])) for name in (each[0] if each else ())}

    @property
    def draws(self) -> int:
        return self.length.draws_after(self._state.step)

    def samples(self, *, on_disk: bool = True) -> Samples:
        state, flattening = self._state, self.kernel.flattening
        columns = self._kept.columns(state, on_disk=on_disk)
        first = 0 if on_disk else state.stored
        trajectory, view = trajectory_of(state, self.length.steps_before), None if self.view is None else self.view.view
        average = self._averaged(self._comparable_weights) if self.draws else None
        if on_disk:  # not for a checkpoint, which nobody reads now
            warn_about(average, self.settings)
        return Samples(
            draws=columns["draws"],
            unconstrained=columns["unconstrained"],
            target_states=columns["target_states"],
            average=average,
            **columns["/"],
            steps=self._kept.steps(first, self.draws - first),
            trajectory=trajectory if view is None else trajectory.without_moments(),
            settings=self.settings | self.kernel.found(lambda part: gather(state.groups, lambda c: part(c.state))),
            seconds=self.seconds,
            compile_seconds=self.compile_seconds,
            interrupted=state.step < self.steps and state.failure is None,
            flattening=flattening,
            exact=self.target.exact,
            target=self._target_of_draws(),
            labels=Labels() if view is None else view.labels,
            view=view,
        )

    @property
    def store_name(self) -> str:
        return self._kept.store_name

    def keep_in(self, folder: Path, number: int = 0) -> None:
        self._kept.open(folder / f"draws-{number}.zarr", self._state)

    def flush(self) -> None:
        self._state = self._kept.flushed(self._state)

    def saved(self) -> SavedRun:
        state = self._state
        if self.plan.build.mesh is not None:  # all of it, so that it can be dealt to other devices
            draws = joined_rows(state.draws)
            state = state._replace(groups=(gather(state.groups, lambda chains: chains),), draws=draws)
        return SavedRun(state, self.steps, self.seconds, self.compile_seconds)

    def restore(self, saved: SavedRun) -> None:
        state, steps, self.seconds, self.compile_seconds = saved
        self.lengthen(steps - self.steps)
        chains = jax.tree.map(jnp.asarray, state.chains)
        draws = jax.tree.map(own_rows, state.draws)
        self._state = state._replace(groups=grouped(self.plan.build, chains), draws=draws)

    def lengthen(self, steps: int) -> None:
        self.length = self.length.longer(steps)
        self.steps += steps
        self.settings = self.settings | {"steps": self.steps}

    def _target_of_draws(self) -> Target | None:
        """The target as a function of a draw, if it is exact and the same for all chains."""
        if self.plan.build.per_chain or not self.target.exact:
            return None
        return self.target.target if isinstance(self.target, VectorTarget) else self.target

    def _compile(self) -> None:
        plan, self._state = self._programs.compile(self.plan, self._state)
        if plan is not self.plan:
            self.plan, self._pace = plan, Pace(plan)

    def _advance(self, pool: ThreadPoolExecutor, last: int) -> None:
        """Make the segment that ends with step `last`; if the host cannot give what a step needs, up to that step."""
        try:
            self._state = self._advanced(pool, last)
        except HostError as error:
            if self._state.step < error.step - 1:
                self._state = self._advanced(pool, error.step - 1)
            if self._state.failure is None:
                raise

    def _advanced(self, pool: ThreadPoolExecutor, last: int) -> RunState:
        """The state after the segment that ends with step `last`; or, if a number is not finite on the way, the state
        just before that step, marked as failed.
        """
        state, began = self._state, time.perf_counter()
        parts = self._segments(pool, last)
        bad_steps = gather(tuple(part.chains for part in parts), lambda chain: chain.health.bad_step)
        bad = bool(np.any(bad_steps))
        if bad:
            last = int(np.min(bad_steps[bad_steps > 0])) - 1
            if last <= state.step:
                return state._replace(failure=first_failure(self.kernel, bad_steps, state.groups))
            parts = self._segments(pool, last)
        self._pace.measured(last - state.step, time.perf_counter() - began)
        groups = tuple(part.chains for part in parts)
        marks = (*state.marks, read_mark(last, groups)) if last % self.plan.stretch == 0 else state.marks
        failure = first_failure(self.kernel, bad_steps, groups) if bad else None
        return RunState(last, groups, (*state.draws, *self._new_draws(parts, last)), marks, failure, state.stored)

    def _segments(self, pool: ThreadPoolExecutor, last: int) -> list[Segment]:
        """One call of the compiled program for each group of chains."""
        numbers = self._state.step + 1, last, self.length.burn_in, self.plan.thin, self.plan.stretch
        return self._programs.call(pool, self.plan, self._state.groups, Span(*np.array(numbers, np.int32)))

    def _new_draws(self, parts: list[Segment], last: int) -> list[Draws]:
        """The complete draws of a segment, of the chains of this process, on the host; empty if there are none."""
        count = self.length.draws_after(last) - self.length.draws_after(self._state.step)
        if count == 0:
            return []
        draws = [jax.tree.map(lambda leaf: own(leaf)[:, :count], part.draws) for part in parts]
        return [jax.tree.map(lambda *leaves: joined(leaves), *draws)]

    def _as_positions(self, positions: Any) -> Position:
        return positions if self.layout is None or positions is None else self.layout.to_position(positions)

    @property
    def _comparable_weights(self) -> bool:
        flattening = self.kernel.flattening
        return flattening is not None and flattening.fixed

    def _averaged(self, comparable_weights: bool) -> Any:
        """The result of the average; a list of them, one for each chain, where each chain has its own."""
        if self.average is None:
            return None
        sums = gather(self._state.groups, lambda chain: chain.average)
        if not self.plan.build.per_chain:
            return self.average.finish(sums, comparable_weights)
        count = jax.tree.leaves(sums)[0].shape[0]
        one_by_one = [jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], sums) for i in range(count)]
        return [unstack(self.average, i).finish(one) for i, one in enumerate(one_by_one)]
