"""A run that has been asked for: its arguments checked, what was not given chosen, its functions traced."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from contourmc._core.checks import naming, require, require_count, require_seed
from contourmc._core.describe import describe
from contourmc._core.mesh import make_mesh
from contourmc._core.pytrees import Position, shape_of_one, stack, unstack
from contourmc.engine.groups import require_room
from contourmc.engine.kernel_run import KernelRun
from contourmc.engine.length import Length
from contourmc.engine.plan import make_plan
from contourmc.engine.run import Run
from contourmc.flattening.partition import Partition
from contourmc.kernels.adjusted import Adjusted
from contourmc.kernels.base import Kernel
from contourmc.kernels.langevin import Langevin
from contourmc.kernels.traced import trace_schedules
from contourmc.predictions.average import Average
from contourmc.predictions.traced import trace_average
from contourmc.predictions.viewed import ViewedAverage
from contourmc.sampling.arguments import (
    as_averages,
    check_automatic,
    check_chains,
    check_lists,
    choose_thin,
    starting_positions,
)
from contourmc.sampling.training import (
    check_learning_rate,
    choose_length,
    training_kernel,
    training_target,
)
from contourmc.targets.base import Target, at_init
from contourmc.targets.energies import as_target
from contourmc.targets.traced import trace_target
from contourmc.targets.view import TracedView
from contourmc.tuning.adaptive_run import AdaptiveRun

FEW = 100  # chains fit into any memory, and their plan need not be made twice


@dataclass(frozen=True)
class Prepared:
    """target, average: as the run evaluates them; stacks if each chain has its own.
    averages: as they were given, with their functions.
    view: how the user sees positions; None if as they are sampled.
    kernel: None for a run that tunes itself.
    partition, step_size: what the user gave to such a run.
    positions, keys: of each chain, stacked.
    store: whether positions are stored.
    per_chain: whether each chain has its own target and average.
    settings: what `Samples.settings` will hold.
    told: what it will hold besides, that says how the run was asked for, and not what it is.
    described: the target and the average as plain data.
    """

    target: Target
    view: TracedView | None
    average: Average | None
    averages: list[Average]
    kernel: Kernel | None
    partition: Partition | None
    step_size: float | None
    positions: Position
    keys: Array
    length: Length
    store: bool
    per_chain: bool
    settings: dict[str, Any]
    told: dict[str, Any]
    described: dict[str, Any]

    def run(self) -> Run:
        """Before its first step."""
        if self.kernel is None:
            if self.keys.shape[0] > FEW:
                self._check_room()
            return AdaptiveRun(
                self.target, self.positions, self.keys, self.length, average=self.average, store=self.store,
                settings=self.settings | self.told, partition=self.partition, step_size=self.step_size, view=self.view,
            )  # fmt: skip
        return KernelRun(
            self.target, trace_schedules(self.kernel), self.positions, self.keys, self.length, average=self.average,
            store=self.store, per_chain=self.per_chain, view=self.view,
            settings=self.settings | self.told | {"kernel": describe(self.kernel)},
        )  # fmt: skip

    def _check_room(self) -> None:
        """Raise if the chains of a run that tunes itself would not fit into memory, before its pilot begins."""
        kernel, one = Adjusted(1.0) if self.target.exact else Langevin(1.0), shape_of_one(self.positions)
        chains = self.keys.shape[0]
        mesh = make_mesh(chains, self.target.batch_parts, calls_host=self.target.calls_host)
        plan = make_plan(
            self.target, kernel, one, self.length.steps, self.length.thin, averaged=self.average is not None,
            store=self.store, mesh=mesh,
        )  # fmt: skip
        require_room(plan, self.target, kernel, one, self.average, chains)


def prepare(
    *,
    target: Any,
    init: Any,
    steps: int,
    kernel: Kernel | None,
    partition: Any,
    step_size: Any,
    learning_rate: Any,
    temperature: Any,
    chains: int | None,
    seed: int,
    burn_in: int | None,
    thin: int | None,
    per_chain_init: bool,
    average: Any,
    store: bool,
    on_disk: bool,
) -> Prepared:
    """Of the arguments of `sample`, whose draws may be kept on disk; raises if they are not possible."""
    energy_as_init = init is not None and (init is target or isinstance(init, Target))
    require(not energy_as_init, "init", init, "this is the target: give the position where the chains start")
    per_chain = isinstance(target, (list, tuple))
    if per_chain:
        check_lists(len(target), average, kernel, learning_rate, chains)
        chains = len(target)
    targets = [as_target(one) for one in (target if per_chain else [target])]
    averages = as_averages(average, per_chain)
    fits = kernel is None or isinstance(kernel, Kernel)
    require(fits, "kernel", kernel, "give a kernel, for example csgld(...) or sgld(...), or none")
    steps = require_count("steps", steps, 1, "a run needs at least 1 step")
    require(steps < 2**31, "steps", steps, "a chain can have at most 2,147,483,647 steps")
    trained = learning_rate is not None
    if trained:
        check_learning_rate(targets[0], learning_rate, kernel, partition, step_size)
        burn_in, thin = choose_length(learning_rate, steps, burn_in, thin)
        targets = [*map(training_target, targets)]
    remedy = "it belongs to the kernel: give it there, or give a learning_rate and no kernel"
    require(trained or temperature is None, "temperature", temperature, remedy)
    usual = 1 if trained else 4
    chains = require_count("chains", usual if chains is None else chains, 1, "a run needs at least 1 chain")
    check_chains(chains)
    share = 0.1 if kernel is not None else 0.3
    burn_in = require_count("burn_in", int(share * steps) if burn_in is None else burn_in, 0, "give 0 or more")
    require(burn_in < steps, "burn_in", burn_in, f"leave some of the {steps} steps after burn-in")
    if trained:
        observations = targets[0].observations
        assert observations is not None
        shared = chains > 1 and not per_chain
        kernel = training_kernel(learning_rate, temperature, partition, observations, steps, burn_in, shared)
    elif kernel is None:
        check_automatic(targets[0], partition, step_size, steps, burn_in)
    else:
        for argument, value in (("partition", partition), ("step_size", step_size)):
            remedy = "it belongs to the kernel: give it there, or give no kernel"
            require(isinstance(value, str) and value == "auto", argument, value, remedy)

    seed = require_seed(seed)
    keys = _fold_in_each(_root(seed), np.arange(chains))
    seen = targets[0].view
    alike = all(one.view == seen for one in targets)
    require(alike, "target", [*map(type, targets)], "a list of targets needs the same coordinates for all of them")
    positions = starting_positions(targets[0], init, keys, per_chain_init)
    one = shape_of_one(positions)
    view = None if seen is None else TracedView(seen, one)
    kept = positions if view is None else _of_chains((one, view.shapes), chains)
    thin = choose_thin(thin, steps - burn_in, kept, bool(averages), store=store, on_disk=on_disk)
    settings = {
        "steps": steps, "chains": chains, "seed": seed, "burn_in": burn_in, "thin": thin,
        "target": describe(targets[0]),
    }  # fmt: skip
    told = {"learning_rate": describe(learning_rate)} if trained else {}
    told |= {"per_chain_init": True} if per_chain_init else {}
    traced = [trace_target(each, one) for each in targets]
    drawn = jax.eval_shape(lambda: traced[0].drawn(traced[0].init()))
    added = []
    for i, each in enumerate(averages):
        seen_start = unstack(positions, i) if seen is None else seen.constrain(unstack(positions, i))
        with naming("average", getattr(each, "predict", each), at_init(one if view is None else view.shapes)):
            added.append(trace_average(each if seen is None else ViewedAverage(each, seen), one, drawn))
            each.check_start(seen_start, traced[i].drawn(traced[i].init()))
    return Prepared(
        target=stack("target", traced) if per_chain else traced[0],
        view=view,
        average=stack("average", added) if per_chain and added else added[0] if added else None,
        averages=averages,
        kernel=kernel,
        partition=partition if isinstance(partition, Partition) else None,
        step_size=None if isinstance(step_size, str) else float(step_size),
        positions=positions,
        keys=keys,
        length=Length(steps, burn_in, thin),
        store=store,
        per_chain=per_chain,
        settings=settings,
        told=told,
        described={"target": [*map(describe, targets)], "average": [*map(describe, averages)]},
    )


def _of_chains(shapes: Any, chains: int) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((chains, *leaf.shape), leaf.dtype), shapes)


def _root(seed: int) -> Array:
    """The key of a seed; JAX makes keys of 32 bits, and the others are folded in."""
    key = jax.random.key(np.uint32(seed % 2**32))
    return jax.random.fold_in(key, np.uint32(seed >> 32)) if seed >> 32 else key


_fold_in_each = jax.jit(jax.vmap(jax.random.fold_in, (None, 0)))
