"""`sample`: the run around the compiled loop — chains, progress, interruption, failures."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc import engine
from contourmc.averages import Average
from contourmc.checks import require, require_count
from contourmc.engine import Chain, Draws, Plan, Segment
from contourmc.kernels.base import Kernel, Position
from contourmc.path import PathRecorder, gather
from contourmc.progress import Progress
from contourmc.samples import Samples
from contourmc.settings import describe
from contourmc.targets import Energy, Target, as_target, check_position, check_target

SEGMENT_SECONDS = 0.1  # how often the progress bar moves and Ctrl-C is heard


class DivergenceError(RuntimeError):
    """A chain met a number that is not finite.

    samples: what was drawn before, from all chains, up to the block in which it happened.
    """

    def __init__(self, message: str, samples: Samples):
        super().__init__(message)
        self.samples = samples


def sample(
    target: Target | Energy,
    *,
    init: Any,
    steps: int,
    kernel: Kernel,
    chains: int = 4,
    seed: int = 0,
    burn_in: int | None = None,
    thin: int | None = None,
    per_chain_init: bool = False,
    progress: bool | None = None,
    average: Average | None = None,
    store: bool = True,
) -> Samples:
    """Run `chains` independent chains of `steps` steps each and return their weighted draws.

    target: a function from a position (any pytree of floats) to its energy, minus the log density up to a
        constant; or a `Target`.
    init: the position where all chains start; or a function from a JAX random key to one; or, with
        `per_chain_init`, positions stacked along a leading chain axis.
    kernel: how to move, for example `csgld(...)`.
    seed: the same seed gives the same draws on the same machine; chain i does not depend on `chains`.
    burn_in: steps at the start that no draw or estimate uses; a tenth of the steps unless given.
    thin: keep one draw in `thin` steps; about 10,000 draws a chain unless given, fewer of large positions.
        Means and variances use every step all the same, unless a position has more than 16,384 numbers.
    progress: show a progress bar; by default only on a terminal.
    average: what to average over the kept draws while the run goes on, for example a
        `ClassificationAverage`; the result is `Samples.average`.
    store: whether the positions of kept draws are stored; an `average` does not need them.

    Ctrl-C ends the run and returns what there is, marked `interrupted`. A number that is not finite
    raises a `DivergenceError`, which carries the draws so far.
    """
    target = as_target(target)
    require(isinstance(kernel, Kernel), "kernel", kernel, "give a kernel, for example csgld(...) or sgld(...)")
    steps = require_count("steps", steps, 1, "a run needs at least 1 step")
    require(steps < 2**31, "steps", steps, "a chain can have at most 2,147,483,647 steps")
    chains = require_count("chains", chains, 1, "a run needs at least 1 chain")
    burn_in = require_count("burn_in", steps // 10 if burn_in is None else burn_in, 0, "give 0 or more")
    require(burn_in < steps, "burn_in", burn_in, f"leave some of the {steps} steps after burn-in")
    kept = steps - burn_in

    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(seed), jnp.arange(chains))
    positions = _starts(init, keys, per_chain_init)
    check_target(target, positions)
    one = jax.tree.map(lambda leaf: leaf[0], positions)
    if thin is None:
        room = 2**28 // engine.position_size(positions) if store else 10_000
        thin = max(1, kept // min(10_000, max(1, room)))
    thin = require_count("thin", thin, 1, "give 1 or more")
    require(thin <= kept, "thin", thin, f"there are {kept} steps after burn-in, and not one draw would be kept")
    plan = engine.make_plan(target, kernel, one, steps, thin, average=average, store=store)

    def start(key: Array, position: Position) -> Chain:
        return engine.start(target, kernel, plan, key, position, average)

    groups = _groups(jax.vmap(start)(keys, positions), plan)
    run = _Run(target, kernel, plan, steps, burn_in, groups, average)
    settings = {
        "steps": steps, "chains": chains, "seed": seed, "burn_in": burn_in, "thin": thin,
        "kernel": describe(kernel), "target": describe(target),
    }  # fmt: skip

    began = time.perf_counter()
    with Progress(steps, chains, progress) as bar, suppress(KeyboardInterrupt):
        run.to_the_end(bar.update)
    result = run.samples(settings, time.perf_counter() - began)
    if run.failure:
        raise DivergenceError(run.failure, result)
    return result


def _starts(init: Any, keys: Array, per_chain: bool) -> Position:
    """The starting positions, stacked along a leading chain axis."""
    chains = keys.shape[0]
    if callable(init):
        init = jax.vmap(init)(jax.vmap(jax.random.fold_in, (0, None))(keys, 2**31))
        check_position(init)
        return init
    check_position(init)
    init = jax.tree.map(jnp.asarray, init)
    if not per_chain:
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (chains, *leaf.shape)), init)
    for leaf in jax.tree.leaves(init):
        remedy = f"with per_chain_init every leaf needs a leading axis of {chains}, one entry for each chain"
        require(leaf.ndim > 0 and leaf.shape[0] == chains, "init", f"a leaf of shape {leaf.shape}", remedy)
    return init


def _groups(chains: Chain, plan: Plan) -> list[Chain]:
    """Stacks of chains that are run by one call each.

    Chains that are one kernel each run on threads of their own; others are one vector.
    """
    if not plan.fuse:
        return [chains]
    return [jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], chains) for i in range(chains.finite.shape[0])]


class _Run:
    """A run in progress: the chains, and what has been collected."""

    def __init__(
        self,
        target: Target,
        kernel: Kernel,
        plan: Plan,
        steps: int,
        burn_in: int,
        groups: list[Chain],
        average: Average | None,
    ):
        self.target, self.kernel, self.plan, self.average = target, kernel, plan, average
        self.steps, self.burn_in = steps, burn_in
        self.groups = self.block_start = groups  # as they are, and as they were when the block began
        self.step = 0  # done so far
        self.failure = ""
        self.compile_seconds = 0.0
        self.draws = [_no_draws(kernel, plan, groups)]
        self.recorder = PathRecorder(plan.stretch, groups)

    def to_the_end(self, report: Callable[[int, Draws], None]) -> None:
        """Run segment after segment; after each, everything here is consistent."""
        began = time.perf_counter()
        self.program = engine.compile_segment(self.target, self.kernel, self.plan, self.groups[0], self.average)
        self.compile_seconds = time.perf_counter() - began
        plan, count = self.plan, min(64, self.plan.block)
        with ThreadPoolExecutor(min(_cores(), len(self.groups))) as pool:
            while self.step < self.steps:
                last = self.step + min(count, plan.segment_steps)
                if count >= plan.block:
                    last = last // plan.block * plan.block  # whole blocks: no noise is drawn twice
                mark = (self.step // plan.stretch + 1) * plan.stretch
                last = min(last, mark, self.steps)
                began = time.perf_counter()
                parts = list(pool.map(lambda group, last=last: self._segment(group, last), self.groups))
                seconds = time.perf_counter() - began
                if not all(np.all(part.chains.finite) for part in parts):
                    return self._fail(parts)
                pace = SEGMENT_SECONDS * (last - self.step) / seconds
                count = int(np.clip(pace, 1, 8 * count))
                self._collect(parts, last)
                report(self.step, self.draws[-1])

    def samples(self, settings: dict[str, Any], seconds: float) -> Samples:
        """What has been collected so far."""
        draws = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *self.draws)
        average = self.average if draws.energy.shape[1] else None
        return Samples(
            draws=draws.position,
            target_states=draws.target_state,
            average=None if average is None else average.finish(gather(self.groups, lambda chain: chain.average)),
            energies=draws.energy,
            log_weights=draws.log_weight,
            multipliers=draws.multiplier,
            steps=self.burn_in + self.plan.thin * (1 + np.arange(draws.energy.shape[1])),
            path=self.recorder.path(),
            settings=settings,
            seconds=seconds - self.compile_seconds,
            compile_seconds=self.compile_seconds,
            interrupted=self.step < self.steps and not self.failure,
        )

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
        chain = jax.tree.map(lambda leaf: leaf[row], group)
        info, fine = engine.trace_block(self.target, self.kernel, self.plan, chain, np.int32(before + 1))
        at = int(np.argmin(fine))
        before_it = f"; the last finite energy was {float(info.energy[at - 1]):.6g}, with gradient multiplier"
        before_it += f" {float(info.multiplier[at - 1]):.3g}"
        self.failure = (
            f"chain {culprit} met a number that is not finite at step {before + 1 + at}"
            f"{before_it if at else ''}. Try a smaller step_size; for a contour kernel also wider or fewer"
            " bins, or a partition that starts above the lowest energy. The draws so far are in this"
            " error's `samples`."
        )


def _no_draws(kernel: Kernel, plan: Plan, groups: list[Chain]) -> Draws:
    """Draws of all chains, none of them yet."""
    stored = gather(
        groups, lambda chain: (kernel.draw(chain.state), chain.target_state) if plan.store else (None, None)
    )
    chains = sum(group.finite.shape[0] for group in groups)
    column = np.zeros((chains, 0), jnp.result_type(float))
    position, beside = jax.tree.map(lambda leaf: leaf[:, None][:, :0], stored)
    return Draws(position, beside, column, column, column)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
