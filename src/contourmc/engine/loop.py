"""The compiled loop: steps in blocks, noise a block at a time, estimates summed on the way.

A run is cut into segments, one call of the compiled program each; a segment into blocks, for which noise and
schedules are made at once; a block into steps. How a run is cut into segments does not change a single bit of the
result: the noise of a block depends only on the chain's key and the block's number.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array, Int

from contourmc._core.compiling import compile_for
from contourmc._core.info import Info
from contourmc._core.mesh import DEVICES, is_mapped
from contourmc._core.pytrees import Position, unstack
from contourmc.engine.cpu_single_kernel import fused
from contourmc.engine.one_by_one import one_by_one
from contourmc.engine.plan import Build, Plan
from contourmc.engine.state import Chain, Draws, Health, Totals, no_totals
from contourmc.engine.step import make_step, prepare_block
from contourmc.kernels.base import CHAINS, Kernel
from contourmc.predictions.average import Average
from contourmc.targets.base import Target


class Span(NamedTuple):
    """Steps `first` to `last`, both included and counted from 1, of a run with so many steps of burn-in, which keeps a
    draw in `thin` steps and sets a mark after each `stretch`.
    """

    first: Any
    last: Any
    burn_in: Any
    thin: Any
    stretch: Any

    def draws_before(self, step: Array) -> Array:
        """The number of draws complete before a step."""
        return jax.lax.div(jnp.maximum(step - 1 - self.burn_in, 0), self.thin)


class Segment(NamedTuple):
    """What came of a segment; every leaf but `next_step` has a leading chain axis.

    next_step: the first step that was not made; smaller than asked for if a number was not finite. Devices whose chains
        do not interact may differ.
    draws: room for kept draws. Entry i is draw i + (the draws complete before the segment).
    """

    next_step: Int[Array, ""]
    chains: Chain
    draws: Draws


def compile_segment(
    target: Target, kernel: Kernel, plan: Plan, chains: Chain, average: Average | None = None
) -> Callable[[Target, Kernel, Chain, Span, Average | None], Segment] | None:
    """`run_segment` for such chains; None if the compiler refuses to make a single kernel of a block."""
    span = Span(*[jax.ShapeDtypeStruct((), jnp.int32)] * len(Span._fields))
    effort = "kernel" if plan.build.fuse else "short" if plan.short else "full"
    return compile_for(run_segment, effort, target, kernel, chains, span, average, build=plan.build)


def run_segment(
    target: Target,
    kernel: Kernel,
    chains: Chain,
    span: Span,
    average: Average | None = None,
    *,
    build: Build,
) -> Segment:
    """The steps of a span, of a stack of chains.

    Ends early, after the block, if a number of any chain is not finite. On several devices each makes the steps of the
    chains that it has.
    """
    make = partial(_make_steps, build=build)
    if build.mesh is None:
        return make(target, kernel, chains, span, average)
    dealt, copied = PartitionSpec(DEVICES), PartitionSpec()
    given = dealt if build.per_chain else copied
    results: Any = Segment(*(copied, dealt, dealt))  # type: ignore[arg-type]  # where each lies
    on_devices = jax.shard_map(
        make, mesh=build.mesh, in_specs=(given, copied, dealt, copied, given), out_specs=results, check_vma=False
    )
    return on_devices(target, kernel, chains, span, average)


def _make_steps(
    target: Target, kernel: Kernel, chains: Chain, span: Span, average: Average | None, *, build: Build
) -> Segment:
    """`run_segment` on one device."""
    done_before = span.draws_before(span.first)
    no_draws = partial(empty_draws, target, kernel, build)
    draws = jax.vmap(partial(no_draws, capacity=build.capacity))(chains)

    def proceed(segment: Segment) -> Array:
        bad = jnp.any(segment.chains.health.bad_step > 0)
        if kernel.interacting and is_mapped(DEVICES):  # or some devices would wait for others that have stopped
            bad = jax.lax.pmax(bad.astype(jnp.int32), DEVICES) > 0
        return (segment.next_step <= span.last) & ~bad

    def advance(segment: Segment) -> Segment:
        step = segment.next_step
        end = jnp.minimum((step - 1) // build.block * build.block + build.block, span.last)
        block = partial(_block, kernel, build, span=span._replace(first=step, last=end))
        if not build.fuse:
            all_before = partial(block, done_before=done_before)
            chains, draws = _over_chains(kernel, build, all_before, target, average, segment.chains, segment.draws)
            return Segment(end + 1, chains, draws)
        # The single kernel gets room for the draws of a block only: that for a segment would be copied for each block.
        done = span.draws_before(step)
        chains, new = jax.lax.map(
            lambda chain: block(target, average, chain, no_draws(chain, capacity=build.rows), done_before=done),
            segment.chains,
        )
        draws = jax.tree.map(
            lambda all_draws, some: jax.lax.dynamic_update_slice_in_dim(all_draws, some, done - done_before, axis=1),
            segment.draws,
            new,
        )
        return Segment(end + 1, chains, draws)

    begin = Segment(span.first, chains, draws)
    return advance(begin) if build.unroll else jax.lax.while_loop(proceed, advance, begin)


def _block(
    kernel: Kernel,
    build: Build,
    target: Target,
    average: Average | None,
    chain: Chain,
    draws: Draws,
    *,
    span: Span,
    done_before: Array,
) -> tuple[Chain, Draws]:
    """The steps of a span of one chain, all in the same block; entry i of the draws is draw i + `done_before`."""
    first, last = span.first, span.last
    chain = _begin(kernel, build, chain, span)
    inputs = prepare_block(target, kernel, chain.key, chain.state.position, first, build.block)
    before = (first - 1) // build.block * build.block  # the steps before this block
    # Divided here, for all steps at once: in the loop, a division would be a tenth of a cheap step.
    entries = span.draws_before(before + 1 + jnp.arange(build.block, dtype=jnp.int32)) - done_before

    def advance(target, kernel, inputs, carry, centre, begin, end, before, entries, span):
        def body(i, carry):
            state, target_state, totals, draws, sums, health = carry
            position, watched, step = kernel.draw(state), kernel.watched(state), before + i + 1
            now = _at(inputs, i)
            state, target_state, drawn, info, virial = make_step(
                target, kernel, now, state, target_state, centre, apart=build.apart
            )
            health = _examined(health, step, info, None if build.large else watched)
            totals = _add(totals, info.log_weight, None if build.large else position, centre, step > span.burn_in)
            stored = (position, drawn) if build.store else (None, None)
            new = Draws(*stored, info.energy, info.log_weight, info.multiplier, virial)
            index = _at(entries, i)

            def keep(draws, sums):
                add = None if average is None else one_by_one(average, "add") if build.apart else average.add
                added = None if add is None else add(sums, info, position, drawn)
                return _write(draws, new, index) if build.large else draws, added

            if not build.large:
                # Each step overwrites the entry of its draw; the last of every `thin` steps stays.
                draws = _write(draws, new, index)
            if build.large or average is not None:
                kept = span.draws_before(step + 1) > span.draws_before(step)
                draws, sums = jax.lax.cond(kept, keep, lambda *same: same, draws, sums)
            return state, target_state, totals, draws, sums, health

        return body(begin, carry) if build.unroll else jax.lax.fori_loop(begin, end, body, carry)

    loop: Callable[..., Any] = fused(advance) if build.fuse else advance
    carry = chain.state, chain.target_state, chain.totals, draws, chain.average, chain.health
    state, target_state, totals, draws, sums, health = loop(
        target, kernel, inputs, carry, chain.centre, first - 1 - before, last - before, before, entries, span
    )
    if build.large:
        # Checking all numbers in every step would cost too much; after a block they are where the next step begins.
        fine = _all_finite(kernel.watched(state)) | (health.bad_step > 0) | (last % build.block > 0)
        health = health._replace(bad_step=jnp.where(fine, health.bad_step, last + 1))
    return Chain(chain.key, state, target_state, sums, chain.centre, totals, health), draws


def _begin(kernel: Kernel, build: Build, chain: Chain, span: Span) -> Chain:
    """At the beginning of a block the state is settled; at the beginning of a stretch the totals are reset.

    Both depend only on the step, not on where segments are cut.
    """
    new_block, new_stretch = ((span.first - 1) % steps == 0 for steps in (build.block, span.stretch))

    def choose(condition: Array, new: Any, old: Any) -> Any:
        return jax.tree.map(lambda a, b: b if a is b else jnp.where(condition, a, b), new, old)

    settled = choose(new_block, kernel.settle(chain.state), chain.state)
    return chain._replace(state=settled, totals=choose(new_stretch, no_totals(chain.centre), chain.totals))


def _examined(health: Health, step: Array, info: Info, watched: Position | None) -> Health:
    """The health after a step, which is bad if its point or energy was not finite."""
    fine = jnp.isfinite(info.energy) & _all_finite(watched)
    bad_step = jnp.where(fine | (health.bad_step > 0), health.bad_step, step)
    return Health(bad_step, info.energy.astype(health.energy.dtype), info.multiplier.astype(health.multiplier.dtype))


def _all_finite(tree: Any) -> Array | bool:
    return reduce(jnp.logical_and, (jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)), True)


def _add(totals: Totals, log_weight: Array, position: Position | None, centre: Position | None, kept: Array) -> Totals:
    """Add a weighted point; e^log_scale follows the largest weight, so that nothing over- or underflows."""
    log_weight = jnp.where(kept, log_weight, -jnp.inf)
    smaller = jnp.exp(-jnp.abs(log_weight - totals.log_scale))
    larger = log_weight > totals.log_scale
    old, new = jnp.where(larger, smaller, 1.0), jnp.where(larger, 1.0, smaller)

    def add(total: Array, term: Array) -> Array:
        return old.astype(total.dtype) * total + new.astype(total.dtype) * term

    away = jax.tree.map(jnp.subtract, position, centre)
    return Totals(
        jnp.maximum(totals.log_scale, log_weight),
        add(totals.weight, jnp.ones_like(totals.weight)),
        jax.tree.map(add, totals.first, away),
        jax.tree.map(lambda total, term: add(total, term * term), totals.second, away),
    )


def empty_draws(target: Target, kernel: Kernel, build: Build, chain: Chain, capacity: int) -> Draws:
    """Room for `capacity` draws of one chain."""
    column = jnp.zeros(capacity, jnp.result_type(float))
    stored = (kernel.draw(chain.state), kernel.drawn(target, chain.target_state)) if build.store else (None, None)
    position, target_state = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), stored)
    virial = jax.eval_shape(partial(_virial_at, kernel), chain)
    return Draws(position, target_state, column, column, column, None if virial is None else column)


def _virial_at(kernel: Kernel, chain: Chain) -> Array | None:
    """The virial that a step of a chain gives, for its type only."""
    inputs = jax.tree.map(
        lambda leaf: leaf[0], kernel.prepare(jax.random.key(0), chain.state.position, jnp.arange(1, 2, dtype=jnp.int32))
    )
    return kernel.virial(inputs, chain.state, chain.state.position, chain.centre)


def _write(draws: Draws, new: Draws, index: Array) -> Draws:
    def write(all_draws: Array, leaf: Array) -> Array:
        return jax.lax.dynamic_update_index_in_dim(all_draws, leaf.astype(all_draws.dtype), index, axis=0)

    return jax.tree.map(write, draws, new)


def _at(tree: Any, i: Array) -> Any:
    return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, keepdims=False), tree)


def _over_chains(
    kernel: Kernel, build: Build, function: Callable[..., Any], target: Target, average: Average | None, *stacks: Any
) -> Any:
    """Map a function over a stack of chains. A single chain gets no mapped axis, which would cost networks copies."""
    if kernel.interacting or jax.tree.leaves(stacks)[0].shape[0] > 1:
        axes = (build.chain_axis, build.chain_axis, *(0 for _ in stacks))
        return jax.vmap(function, axes, axis_name=CHAINS)(target, average, *stacks)
    given = unstack((target, average), 0) if build.per_chain else (target, average)
    return jax.tree.map(lambda leaf: leaf[None], function(*given, *unstack(stacks, 0)))
