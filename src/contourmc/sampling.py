"""`sample`: from an energy and a start to weighted draws; and `start`, the same step by step."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc._core.checks import require, require_count, require_number, require_seed
from contourmc._core.compilation_cache import use_compilation_cache
from contourmc._core.describe import describe
from contourmc._core.progress import Progress
from contourmc._core.pytrees import Position, position_size, shape_of_one, stack
from contourmc.draws.samples import Samples
from contourmc.engine.kernel_run import KernelRun, Length
from contourmc.engine.run import Run
from contourmc.flattening.partition import Partition
from contourmc.kernels.base import Kernel
from contourmc.kernels.traced import trace_schedules
from contourmc.predictions.average import Average
from contourmc.predictions.traced import trace_average
from contourmc.targets.base import Target, check_position, check_starts
from contourmc.targets.energies import Energy, as_target
from contourmc.targets.minibatch import MiniBatchTarget
from contourmc.targets.traced import trace_target
from contourmc.tuning.adaptive_run import AdaptiveRun


def sample(
    target: Target | Energy | Sequence[Target],
    *,
    init: Any,
    steps: int,
    kernel: Kernel | None = None,
    partition: Partition | Literal["auto"] = "auto",
    step_size: float | Literal["auto"] = "auto",
    chains: int | None = None,
    seed: int = 0,
    burn_in: int | None = None,
    thin: int | None = None,
    per_chain_init: bool = False,
    progress: bool | None = None,
    average: Average | Sequence[Average] | None = None,
    store: bool = True,
) -> Samples:
    """Run `chains` chains of `steps` steps each and return their weighted draws.

    target: a function from a position (any pytree of floats) to its energy, minus the log density up to a
        constant; or a `Target`. Or a list of targets, one for each chain, alike in all but the numbers in their
        arrays, such as posteriors on different splits of a data set. A list needs a kernel; look at its chains one by
        one, since estimates over all of them mix different targets.
    init: the position where all chains start; or a function from a JAX random key to one, such as `Box(low, high)`; or,
        with `per_chain_init`, positions stacked along a leading chain axis.
    kernel: how to move, for example `csgld(...)`. Without one the run tunes itself: a pilot of at most a tenth of
        the steps finds step size, scales and energy partition, the chains learn θ together, and then
        sample with all of it fixed. See docs/tuning.md.
    partition, step_size: for a run without a kernel; the pilot finds what is not given. Energies that are not exact
        need a step size.
    chains: 4 unless given, or as many as there are targets in a list.
    seed: the same seed gives the same draws on the same machine. With a kernel whose chains do not share θ, chain i
        does not depend on `chains`. A run that begins at the last draws of another needs another seed: with the same
        one it meets the same noise.
    burn_in: steps at the start that no draw or estimate uses; a tenth of the steps unless given. Without a
        kernel it is the length of pilot and learning together, three tenths unless given.
    thin: keep one draw in `thin` steps; about 10,000 draws a chain unless given, fewer of large positions, and 100
        with an `average`, which may have to predict a test set for each. Means and variances still use every step,
        unless a position has more than 16,384 numbers.
    progress: show a progress bar; by default only on a terminal.
    average: what to average over the kept draws while the run goes on, for example a
        `ClassificationAverage`; the result is `Samples.average`. For a list of targets a list, with an average for
        each chain; the result is then a list too.
    store: whether the positions of kept draws are stored; an `average` does not need them.

    Ctrl-C ends the run at any stage and returns the draws so far, marked `interrupted`. A number that is not finite
    raises a `DivergenceError`, and data that cannot be read a `DataError`; both carry the draws so far. `start` gives
    the same run step by step.
    """
    with start(
        target, init=init, steps=steps, kernel=kernel, partition=partition, step_size=step_size, chains=chains,
        seed=seed, burn_in=burn_in, thin=thin, per_chain_init=per_chain_init, average=average, store=store,
    ) as run:  # fmt: skip
        with Progress(run.steps, run.chains, progress) as bar, suppress(KeyboardInterrupt):
            run.advance(report=bar.update)
        return run.samples()


def start(
    target: Target | Energy | Sequence[Target],
    *,
    init: Any,
    steps: int,
    kernel: Kernel | None = None,
    partition: Partition | Literal["auto"] = "auto",
    step_size: float | Literal["auto"] = "auto",
    chains: int | None = None,
    seed: int = 0,
    burn_in: int | None = None,
    thin: int | None = None,
    per_chain_init: bool = False,
    average: Average | Sequence[Average] | None = None,
    store: bool = True,
) -> Run:
    """The run that `sample` makes, before its first step: advance it, and look at its samples in between.

        run = cm.start(energy, init=0.0, steps=100_000)
        run.advance(10_000)
        run.samples().mean()

    All arguments are those of `sample`.
    """
    use_compilation_cache()
    given_targets: Any = target
    per_chain = isinstance(given_targets, (list, tuple))
    if per_chain:
        _check_lists(len(given_targets), average, kernel, chains)
        chains = len(given_targets)
    targets = [as_target(one) for one in (given_targets if per_chain else [given_targets])]
    averages = _averages(average, per_chain)
    given = kernel is None or isinstance(kernel, Kernel)
    require(given, "kernel", kernel, "give a kernel, for example csgld(...) or sgld(...), or none")
    steps = require_count("steps", steps, 1, "a run needs at least 1 step")
    require(steps < 2**31, "steps", steps, "a chain can have at most 2,147,483,647 steps")
    chains = require_count("chains", 4 if chains is None else chains, 1, "a run needs at least 1 chain")
    share = 0.1 if kernel is not None else 0.3
    burn_in = require_count("burn_in", int(share * steps) if burn_in is None else burn_in, 0, "give 0 or more")
    require(burn_in < steps, "burn_in", burn_in, f"leave some of the {steps} steps after burn-in")
    if kernel is None:
        _check_automatic(targets[0], partition, step_size, steps, burn_in)
    else:
        for argument, value in (("partition", partition), ("step_size", step_size)):
            require(
                isinstance(value, str) and value == "auto",
                argument,
                value,
                "it belongs to the kernel: give it there, or give no kernel",
            )

    seed = require_seed(seed)
    keys = _fold_in_each(_root(seed), np.arange(chains))
    positions = _starts(init, keys, per_chain_init)
    thin = _choose_thin(thin, steps - burn_in, positions, bool(averages), store)
    length = Length(steps, burn_in, thin)
    settings = {
        "steps": steps, "chains": chains, "seed": seed, "burn_in": burn_in, "thin": thin,
        "target": describe(targets[0]),
    }  # fmt: skip
    one = shape_of_one(positions)
    traced = [trace_target(each, one) for each in targets]
    drawn = jax.eval_shape(lambda: traced[0].drawn(traced[0].init()))
    added = [trace_average(each, one, drawn) for each in averages]
    target = stack("target", traced) if per_chain else traced[0]
    average = stack("average", added) if per_chain and added else added[0] if added else None
    with ExitStack() as resources:
        resources.enter_context(target.session())
        check_starts(target, positions, per_chain=per_chain)
        if kernel is None:
            run = AdaptiveRun(
                target, positions, keys, length, average=average, store=store, settings=settings,
                partition=partition if isinstance(partition, Partition) else None,
                step_size=None if isinstance(step_size, str) else float(step_size),
            )  # fmt: skip
        else:
            run = KernelRun(
                target, trace_schedules(kernel), positions, keys, length, average=average, store=store,
                per_chain=per_chain, settings=settings | {"kernel": describe(kernel)},
            )  # fmt: skip
        run.hold(resources.pop_all())
    return run


def _choose_thin(thin: int | None, kept: int, positions: Position, averaged: bool, store: bool) -> int:
    """The steps for each kept draw: as given, or chosen so that the draws fit into memory."""
    if thin is None:
        room = 2**28 // position_size(positions) if store else 10_000
        thin = max(1, kept // min(100 if averaged else 10_000, max(1, room)))
    thin = require_count("thin", thin, 1, "give 1 or more")
    require(thin <= kept, "thin", thin, f"there are {kept} steps after burn-in, so that no draw would be kept")
    if store:
        leaves = jax.tree.leaves(positions)
        needed = kept // thin * sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
        there = _memory()
        remedy = f"the draws would take {needed / 2**30:,.1f} GiB, and there are {there / 2**30:,.1f} in this machine:"
        require(needed < there, "thin", thin, f"{remedy} give a larger thin, fewer chains, or store=False")
    return thin


def _memory() -> float:
    """The memory of this machine in bytes; infinite if it does not say."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return float("inf")
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _averages(average: Any, listed: bool) -> list[Average]:
    """The averages as a list, which they are given as if targets are."""
    given = [] if average is None else list(average) if isinstance(average, (list, tuple)) else [average]
    remedy = "give an Average, such as ClassificationAverage(...), or a list of them with a list of targets"
    right = all(isinstance(one, Average) for one in given) and (listed or not isinstance(average, (list, tuple)))
    require(right, "average", [type(one).__name__ for one in given], remedy)
    return given


def _check_lists(count: int, averages: Any, kernel: Kernel | None, chains: int | None) -> None:
    """Raise unless a list of `count` targets comes with a kernel, and with the same number of chains and averages."""
    require(count > 0, "target", [], "a list needs at least one target")
    require(kernel is not None, "kernel", kernel, "a list of targets needs a kernel, such as csgld(...)")
    remedy = f"there are {count} targets in the list, one for each chain"
    require(chains is None or chains == count, "chains", chains, f"{remedy}: give as many chains, or leave it out")
    given = len(averages) if isinstance(averages, Sequence) else type(averages).__name__
    require(averages is None or given == count, "average", given, f"{remedy}: give a list of as many averages, or none")


def _check_automatic(target: Target, partition: Any, step_size: Any, steps: int, burn_in: int) -> None:
    """Raise for settings with which a run cannot tune itself."""
    bins = isinstance(partition, Partition) or (isinstance(partition, str) and partition == "auto")
    require(bins, "partition", partition, 'give Partition(low=…, width=…, bins=…), or "auto"')
    given = not (isinstance(step_size, str) and step_size == "auto")
    if given:
        require_number("step_size", step_size, 'give a step size above 0, or "auto"', positive=True)
    remedy = "a target with a state needs a kernel, such as csghmc(...)"
    require(target.init() is None, "kernel", None, remedy)
    if isinstance(target, MiniBatchTarget) and not target.exact:
        remedy = "the noise of mini-batches hides the energies by which a run tunes itself. Give a kernel, such as"
        size = "η/N, for a learning rate η of the mean loss; see docs/networks.md"
        few = "Or put all data in one batch, which needs none"
        require(False, "kernel", None, f"{remedy} sgld({0.1 / target.size:.2g}) or csghmc: step size {size}. {few}")
    remedy = "energies with noise need a step_size: the automatic choice rests on a Metropolis test"
    require(target.exact or given, "step_size", step_size, remedy)
    remedy = "a run that tunes itself needs 1,000 steps or more; give a kernel for a shorter one"
    require(steps >= 1000, "steps", steps, remedy)
    remedy = f"a run that tunes itself needs at least a fifth of its {steps} steps for that"
    require(5 * burn_in >= steps, "burn_in", burn_in, remedy)


def _starts(init: Any, keys: Array, per_chain: bool) -> Position:
    """The starting positions, stacked along a leading chain axis."""
    chains = keys.shape[0]
    if callable(init):
        init = jax.vmap(init)(jax.vmap(jax.random.fold_in, (0, None))(keys, 2**31))
        check_position(init)
        return init
    check_position(init)
    # As NumPy arrays, whose types are definite: Python's floats would need a separate compilation.
    init = jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf)), init)
    if not per_chain:
        return jax.tree.map(lambda leaf: jnp.asarray(np.broadcast_to(leaf, (chains, *leaf.shape))), init)
    for leaf in jax.tree.leaves(init):
        remedy = f"with per_chain_init every leaf needs a leading axis of {chains}, one entry for each chain"
        require(leaf.ndim > 0 and leaf.shape[0] == chains, "init", f"a leaf of shape {leaf.shape}", remedy)
    return jax.tree.map(jnp.asarray, init)


def _root(seed: int) -> Array:
    """The key of a seed; JAX makes keys of 32 bits, and the others are folded in."""
    key = jax.random.key(np.uint32(seed % 2**32))
    return jax.random.fold_in(key, np.uint32(seed >> 32)) if seed >> 32 else key


_fold_in_each = jax.jit(jax.vmap(jax.random.fold_in, (None, 0)))
