"""A run around the compiled loop: chains, threads, collecting, failures."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc import engine
from contourmc.arrays import unstack
from contourmc.averages import Average
from contourmc.engine import Chain, Draws, Segment
from contourmc.kernels.base import Kernel, Position
from contourmc.path import PathRecorder, gather
from contourmc.plan import Plan
from contourmc.ravelling import Layout, RavelledAverage, RavelledTarget, layout_of
from contourmc.samples import Samples, has_one_theta
from contourmc.targets import Target

SEGMENT_SECONDS = 0.1  # how often the progress bar moves and Ctrl-C is heard; 5 times that on a GPU, which waits for it

# Told after every segment: the step, and the draws since the last.
Report = Callable[[int, Draws], None]


class DivergenceError(RuntimeError):
    """A chain met a number that is not finite.

    samples: what was drawn before, from all chains, up to the block in which it happened.
    """

    def __init__(self, message: str, samples: Samples):
        super().__init__(message)
        self.samples = samples


def start_run(
    target: Target,
    kernel: Kernel,
    positions: Position,
    keys: Array,
    *,
    steps: int,
    burn_in: int,
    thin: int,
    before: int = 0,
    average: Average | None = None,
    store: bool = True,
    state: Any = None,
    own: bool = False,
) -> "Run":
    """A run from stacked positions, a key for each chain.

    before: steps that were spent on the chains before the run's first, which count in what it reports.
    average: what to average over the kept draws.
    store: whether their positions are stored.
    state: the kernel's state of each chain, stacked, where it is more than the positions.
    own: whether target and average are stacks too, with one for each chain.
    """
    layout = None
    if kernel.elementwise and state is None and engine.position_size(unstack(positions, 0)) > engine.LARGE:
        layout = layout_of(unstack(positions, 0))
    if layout is not None:
        positions, target = jax.vmap(layout.ravel)(positions), RavelledTarget(target, layout)
        average = None if average is None else RavelledAverage(average, layout)
    one_target, one_average = unstack((target, average), 0) if own else (target, average)
    plan = engine.make_plan(
        one_target, kernel, unstack(positions, 0), steps, thin, average=one_average, store=store, own=own
    )

    def start(target: Target, average: Average | None, key: Array, position: Position) -> Chain:
        return engine.start(target, kernel, plan, key, position, average)

    axes = (plan.chain_axis, plan.chain_axis, 0, 0)
    chains: Chain = jax.vmap(start, axes)(target, average, keys, positions)
    if state is not None:
        chains = chains._replace(state=state)
    return Run(target, kernel, plan, chains, average, layout, steps=steps, burn_in=burn_in, before=before)


def _groups(chains: Chain, plan: Plan) -> list[Chain]:
    """Stacks of chains that are run by one call each.

    Chains that are one kernel each run on threads of their own; others are one vector.
    """
    if not plan.fuse:
        return [chains]
    return [jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], chains) for i in range(chains.finite.shape[0])]


class Run:
    """A run in progress: the chains, and what has been collected."""

    def __init__(
        self, target: Target, kernel: Kernel, plan: Plan, chains: Chain, average: Average | None,
        layout: Layout | None, *, steps: int, burn_in: int, before: int,
    ):  # fmt: skip
        groups = _groups(chains, plan)
        self.target, self.kernel, self.plan, self.average = target, kernel, plan, average
        self.layout = layout  # of positions that are vectors in here
        self.steps, self.burn_in, self.before = steps, burn_in, before
        self.groups = self.block_start = groups  # as they are, and as they were when the block began
        self.step = 0  # done so far
        self.failure = ""
        self.compile_seconds = 0.0
        self._count = min(64, plan.block)  # steps of the next segment, as far as time goes
        self.draws = [_no_draws(target, kernel, plan, groups)]
        self.recorder = PathRecorder(plan.stretch, groups)

    def advance(self, until: int, report: Report) -> None:
        """Run segment after segment up to a step; after each, everything here is consistent."""
        began = time.perf_counter()
        self.program = engine.compile_segment(self.target, self.kernel, self.plan, self.groups[0], self.average)
        self.compile_seconds += time.perf_counter() - began
        plan, count = self.plan, self._count
        with ThreadPoolExecutor(min(_cores(), len(self.groups))) as pool:
            while self.step < until:
                last = self.step + min(count, plan.segment_steps)
                if count >= plan.block:
                    last = last // plan.block * plan.block  # whole blocks: no noise is drawn twice
                mark = (self.step // plan.stretch + 1) * plan.stretch
                last = min(last, mark, until)
                whole = last // plan.block * plan.block
                last = whole if whole > self.step else last  # part of a block is a segment of its own
                began = time.perf_counter()
                parts = list(pool.map(lambda group, last=last: self._segment(group, last), self.groups))
                seconds = time.perf_counter() - began
                self.target.after(self.step // plan.block * plan.block)
                if not all(np.all(part.chains.finite) for part in parts):
                    return self._fail(parts)
                wanted = SEGMENT_SECONDS if jax.default_backend() == "cpu" else 5 * SEGMENT_SECONDS
                count = self._count = int(np.clip(wanted * (last - self.step) / seconds, 1, 8 * count))
                self._collect(parts, last)
                report(self.before + self.step, self.draws[-1])

    @property
    def chains(self) -> Chain:
        """All chains, stacked."""
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *self.groups)

    @property
    def positions(self) -> Position:
        """Where the chains are, stacked."""
        return self._unravelled(jax.vmap(self.kernel.draw)(self.chains.state))

    def energies_since(self, step: int) -> Float[np.ndarray, "chains draws"]:
        """The energies of the draws kept after a step."""
        kept = max(step - self.burn_in, 0) // self.plan.thin
        return np.concatenate([part.energy for part in self.draws], axis=1)[:, kept:]

    def samples(self, settings: dict[str, Any], seconds: float) -> Samples:
        """What has been collected so far."""
        draws = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *self.draws)
        return Samples(
            draws=self._unravelled(draws.position),
            target_states=draws.target_state,
            average=self._averaged(has_one_theta(settings)) if draws.energy.shape[1] else None,
            energies=draws.energy,
            log_weights=draws.log_weight,
            multipliers=draws.multiplier,
            steps=self.before + self.burn_in + self.plan.thin * (1 + np.arange(draws.energy.shape[1])),
            path=self.recorder.path(self.before),
            settings=settings,
            seconds=seconds - self.compile_seconds,
            compile_seconds=self.compile_seconds,
            interrupted=self.step < self.steps and not self.failure,
        )

    def _unravelled(self, positions: Any) -> Position:
        return positions if self.layout is None or positions is None else self.layout.unravel(positions)

    def _averaged(self, one_theta: bool) -> Any:
        """The result of the average; a list of them, one for each chain, where chains have averages of their own."""
        if self.average is None:
            return None
        sums = gather(self.groups, lambda chain: chain.average)
        if not self.plan.own:
            return self.average.finish(sums, one_theta)
        alone = [jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], sums) for i in range(len(self.chains.finite))]
        return [unstack(self.average, i).finish(own) for i, own in enumerate(alone)]

    def _segment(self, group: Chain, last: int) -> Segment:
        first, end, burn_in = np.array([self.step + 1, last, self.burn_in], np.int32)
        return jax.block_until_ready(self.program(self.target, group, first, end, burn_in, self.average))

    def _collect(self, parts: list[Segment], last: int) -> None:
        """Take over the chains, the complete draws and the sums of a segment."""
        before, after = (max(step - self.burn_in, 0) // self.plan.thin for step in (self.step, last))
        self.step, self.groups = last, [part.chains for part in parts]
        if last % self.plan.block == 0:
            self.block_start = self.groups
        new = self.draws[0]  # none
        if after > before:
            draws = [jax.tree.map(lambda leaf: np.asarray(leaf)[:, : after - before], part.draws) for part in parts]
            new = jax.tree.map(lambda *leaves: np.concatenate(leaves), *draws)
        self.draws.append(new)
        self.recorder.add(last, self.groups)

    def _fail(self, parts: list[Segment]) -> None:
        """Go back to the block in which a number was not finite, and find the step and its circumstances."""
        block = self.plan.block
        bad = [int(part.next_step) - 1 for part in parts if not np.all(part.chains.finite)]
        before = (min(bad) - 1) // block * block
        if before > self.step:
            parts = [self._segment(group, before) for group in self.groups]
            self._collect(parts, before)
        parts = [self._segment(group, min(before + block, self.steps)) for group in self.groups]
        culprit = int(np.argmin(np.concatenate([part.chains.finite for part in parts])))
        in_one = len(self.block_start) == 1
        group, row = (self.block_start[0], culprit) if in_one else (self.block_start[culprit], 0)
        target = unstack(self.target, culprit) if self.plan.own else self.target
        info, fine = engine.trace_block(target, self.kernel, self.plan, unstack(group, row), np.int32(before + 1))
        at = int(np.argmin(fine))
        before_it = f"; the last finite energy was {float(info.energy[at - 1]):.6g}, with gradient multiplier"
        before_it += f" {float(info.multiplier[at - 1]):.3g}"
        self.failure = (
            f"chain {culprit} met a number that is not finite at step {before + 1 + at}"
            f"{before_it if at else ''}. Try a smaller step_size; for a contour kernel also wider or fewer"
            " bins, or a partition that starts above the lowest energy. The draws so far are in this"
            " error's `samples`."
        )


def _no_draws(target: Target, kernel: Kernel, plan: Plan, groups: list[Chain]) -> Draws:
    """Draws of all chains, none of them yet."""

    def stored_of(chain: Chain) -> tuple[Any, Any]:
        return (kernel.draw(chain.state), target.drawn(chain.target_state)) if plan.store else (None, None)

    stored = gather(groups, stored_of)
    chains = sum(group.finite.shape[0] for group in groups)
    column = np.zeros((chains, 0), jnp.result_type(float))
    position, beside = jax.tree.map(lambda leaf: leaf[:, None][:, :0], stored)
    return Draws(position, beside, column, column, column)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
