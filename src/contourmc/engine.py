"""The compiled loop: steps in blocks, noise a block at a time, estimates summed on the way.

A run is cut into segments, one call of the compiled program each; a segment into blocks, for which
noise and schedules are made at once; a block into steps. How a run is cut into segments does not
change a bit of it: the noise of a block depends on the chain's key and the block's number alone.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from contourmc.arrays import unstack
from contourmc.averages import Average
from contourmc.fusion import can_fuse, fused, must_unroll
from contourmc.kernels.base import CHAINS, Info, Kernel, Position
from contourmc.plan import Plan
from contourmc.targets import Target

LARGE = 2**14  # numbers in a position, from which on work that is not the step's own counts


class Totals(NamedTuple):
    """Weighted sums over the steps of a stretch, after burn-in; weights are relative to e^log_scale.

    log_scale: the largest log weight so far.
    weight: Σ w.
    first, second: Σ w·(x − centre) and Σ w·(x − centre)², for every coordinate; None for large positions.
    """

    log_scale: Float[Array, "..."]
    weight: Float[Array, "..."]
    first: Position
    second: Position


class Chain(NamedTuple):
    """All there is to a chain: from it, a run goes on as if it had never stopped.

    key: the root of the chain's randomness.
    state: the kernel's state.
    target_state: what the target carries beside the position, such as batch-norm statistics; None for most.
    average: the sums of the run's model average so far; None without one.
    centre: what the totals are taken about, for precision: the starting position; None for large ones.
    totals: sums over the current stretch of the path.
    finite: whether all numbers of the last block were finite.
    """

    key: PRNGKeyArray
    state: Any
    target_state: Any
    average: Any
    centre: Position
    totals: Totals
    finite: Bool[Array, "..."]


class Draws(NamedTuple):
    """Kept draws, stacked along an axis; position and state are None in a run that does not store them."""

    position: Position
    target_state: Any
    energy: Float[Array | np.ndarray, "..."]
    log_weight: Float[Array | np.ndarray, "..."]
    multiplier: Float[Array | np.ndarray, "..."]


class Segment(NamedTuple):
    """What came of a segment; every leaf but `next_step` has a leading chain axis.

    next_step: the first step that was not made; smaller than asked for if a number was not finite.
    draws: rows of kept draws. Row r belongs to draw r + (the draws complete before the segment).
    """

    next_step: Int[Array, ""]
    chains: Chain
    draws: Draws


def make_plan(
    target: Target,
    kernel: Kernel,
    position: Position,
    steps: int,
    thin: int,
    *,
    average: Average | None = None,
    store: bool = True,
    own: bool = False,
) -> Plan:
    """Sizes by the size of the position, so that noise, draws and path stay within a few MiB each.

    The target and the average are those of one chain.
    """
    size = position_size(position)
    state = kernel.init(position)
    prepare_one = partial(_prepare, target, kernel, position=state.position, block=1)
    one_step = jax.eval_shape(prepare_one, key=jax.random.key(0), first=jnp.int32(1))
    most = max(size, sum(leaf.size for leaf in jax.tree.leaves(one_step)))
    # The noise of a block is drawn in a few ms, or is that of up to 8 steps where 16 MiB hold it; of 16 on a GPU.
    few, room = (8, 2**22) if jax.default_backend() == "cpu" else (16, 2**25)
    block = min(1024, max(1, 2**16 // most, min(few, room // most)))
    inputs = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), one_step)
    # The evaluation alone: moves that learn from other chains do not work outside of the axis along which these lie.
    unroll = must_unroll(partial(kernel.evaluate, target), inputs[0], state.position, target.init())
    if unroll:
        block = 1
    blocks = -(-steps // block)
    # A call costs as much as about a thousand steps in one dimension: no shorter stretches in long runs.
    marks = min(max(25, blocks // 32), 100)
    large = size > LARGE
    stretch = -(-blocks // marks) * block
    if not large:
        stretch = min(stretch, 1024 * block)  # longer sums would lose precision in float32
    block_rows = (block - 1) // thin + 2
    rows = min(-(-stretch // thin) + block_rows, max(2 * block_rows, 2**22 // size))
    alone = average is None and not kernel.interacting and not own
    fuse = alone and can_fuse(partial(_step, target, kernel), inputs, state, target.init())
    return Plan(block, thin, stretch, rows, fuse, unroll, large, store, own)


def position_size(position: Position) -> int:
    """How many numbers a position has."""
    return sum(np.size(leaf) for leaf in jax.tree.leaves(position))


def start(
    target: Target, kernel: Kernel, plan: Plan, key: PRNGKeyArray, position: Position, average: Average | None = None
) -> Chain:
    """A chain before its first step."""
    centre = None if plan.large else position
    sums = None if average is None else average.init()
    return Chain(key, kernel.init(position), target.init(), sums, centre, _no_totals(centre), jnp.ones((), bool))


def compile_segment(
    target: Target, kernel: Kernel, plan: Plan, chains: Chain, average: Average | None = None
) -> Callable[[Target, Chain, Any, Any, Any, Average | None], Segment]:
    """`run_segment` for such chains, compiled here and now, or taken from an earlier run with equal settings.

    The result is called from other threads, which do not share this one's JAX configuration.
    """
    leaves, structure = jax.tree.flatten((target, chains, average))
    return _compile_segment(kernel, plan, structure, tuple(jax.typeof(leaf) for leaf in leaves))


@lru_cache(maxsize=16)
def _compile_segment(kernel: Kernel, plan: Plan, structure: Any, types: tuple[Any, ...]) -> Any:
    leaves = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in types]
    target, chains, average = structure.unflatten(leaves)
    number = jax.ShapeDtypeStruct((), jnp.int32)
    return run_segment.lower(target, kernel, plan, chains, number, number, number, average).compile()


@partial(jax.jit, static_argnames=("kernel", "plan"))
def run_segment(
    target: Target,
    kernel: Kernel,
    plan: Plan,
    chains: Chain,
    first: Array,
    last: Array,
    burn_in: Array,
    average: Average | None = None,
) -> Segment:
    """Steps `first` to `last` (both included, counted from 1) of a stack of chains.

    Ends early, after the block, if a number of any chain is not finite.
    """
    done_before = _draws_before(first, burn_in, plan.thin)
    no_draws = partial(_no_draws, target, kernel, plan)
    draws = jax.vmap(partial(no_draws, rows=plan.rows))(chains)

    def proceed(segment: Segment) -> Array:
        return (segment.next_step <= last) & jnp.all(segment.chains.finite)

    def advance(segment: Segment) -> Segment:
        step = segment.next_step
        end = jnp.minimum((step - 1) // plan.block * plan.block + plan.block, last)
        block = partial(_block, kernel, plan, first=step, last=end, burn_in=burn_in)
        if not plan.fuse:
            all_before = partial(block, done_before=done_before)
            chains, draws = _vectorised(kernel, plan, all_before, target, average, segment.chains, segment.draws)
            return Segment(end + 1, chains, draws)
        # One kernel takes the rows of its block alone: those of a segment would be copied for each.
        done = _draws_before(step, burn_in, plan.thin)
        chains, new = jax.lax.map(
            lambda chain: block(target, average, chain, no_draws(chain, rows=plan.block_rows), done_before=done),
            segment.chains,
        )
        draws = jax.tree.map(
            lambda rows, rows_new: jax.lax.dynamic_update_slice_in_dim(rows, rows_new, done - done_before, axis=1),
            segment.draws,
            new,
        )
        return Segment(end + 1, chains, draws)

    begin = Segment(first, chains, draws)
    return advance(begin) if plan.unroll else jax.lax.while_loop(proceed, advance, begin)


@partial(jax.jit, static_argnames=("kernel", "plan"))
def trace_block(target: Target, kernel: Kernel, plan: Plan, chain: Chain, first: Array) -> tuple[Info, Array]:
    """The block that begins with step `first` again: each step's info, and whether it left all finite."""

    def body(states, inputs):
        state, beside, info = _step(target, kernel, inputs, *states)
        return (state, beside), (info, _all_finite(state.position) & jnp.isfinite(info.energy))

    inputs = _prepare(target, kernel, chain.key, chain.state.position, first, plan.block)
    chain = _begin(kernel, plan, chain, first)
    _, traced = jax.lax.scan(body, (chain.state, chain.target_state), inputs)
    return traced


def _block(
    kernel: Kernel,
    plan: Plan,
    target: Target,
    average: Average | None,
    chain: Chain,
    draws: Draws,
    *,
    first: Array,
    last: Array,
    burn_in: Array,
    done_before: Array,
) -> tuple[Chain, Draws]:
    """Steps `first` to `last` of one chain, all in the same block; row r is draw r + `done_before`."""
    chain = _begin(kernel, plan, chain, first)
    inputs = _prepare(target, kernel, chain.key, chain.state.position, first, plan.block)
    before = (first - 1) // plan.block * plan.block  # the steps before this block

    def advance(inputs, carry, centre, begin, end, before, done_before, burn_in):
        def body(i, carry):
            state, beside, totals, draws, sums, energies = carry
            position, step = kernel.draw(state), before + i + 1
            state, beside, info = _step(target, kernel, _at(inputs, i), state, beside)
            totals = _add(totals, info.log_weight, None if plan.large else position, centre, step > burn_in)
            drawn = target.drawn(beside)
            stored = (position, drawn) if plan.store else (None, None)
            new = Draws(*stored, info.energy, info.log_weight, info.multiplier)
            row = _draws_before(step, burn_in, plan.thin) - done_before

            def keep(draws, sums):
                added = None if average is None else average.add(sums, info, position, drawn)
                return _write(draws, new, row) if plan.large else draws, added

            if not plan.large:
                # Each step writes over the row of its draw; the last of every `thin` steps stays.
                draws = _write(draws, new, row)
            if plan.large or average is not None:
                kept = _draws_before(step + 1, burn_in, plan.thin) > _draws_before(step, burn_in, plan.thin)
                draws, sums = jax.lax.cond(kept, keep, lambda *same: same, draws, sums)
            return state, beside, totals, draws, sums, energies + info.energy

        return body(begin, carry) if plan.unroll else jax.lax.fori_loop(begin, end, body, carry)

    loop: Callable[..., Any] = fused(advance) if plan.fuse else advance
    energies = jnp.zeros((), jnp.result_type(float))
    carry = chain.state, chain.target_state, chain.totals, draws, chain.average, energies
    state, beside, totals, draws, sums, energies = loop(
        inputs, carry, chain.centre, first - 1 - before, last - before, before, done_before, burn_in
    )
    # A number that was not finite leaves its mark on the sum of the energies, or on the last position.
    finite = jnp.isfinite(energies) & _all_finite(state.position)
    return Chain(chain.key, state, beside, sums, chain.centre, totals, finite), draws


def _begin(kernel: Kernel, plan: Plan, chain: Chain, first: Array) -> Chain:
    """At the beginning of a block the state is settled, at that of a stretch the totals are empty.

    Both depend on the step alone and not on where segments are cut.
    """
    new_block, new_stretch = (first - 1) % plan.block == 0, (first - 1) % plan.stretch == 0

    def choose(condition: Array, new: Any, old: Any) -> Any:
        return jax.tree.map(lambda a, b: b if a is b else jnp.where(condition, a, b), new, old)

    settled = choose(new_block, kernel.settle(chain.state), chain.state)
    return chain._replace(state=settled, totals=choose(new_stretch, _no_totals(chain.centre), chain.totals))


def _prepare(
    target: Target, kernel: Kernel, key: PRNGKeyArray, position: Position, first: Array, block: int
) -> tuple[Any, Any]:
    """Everything random or scheduled in the block that step `first` belongs to."""
    number = (first - 1) // block
    steps = number * block + 1 + jnp.arange(block, dtype=jnp.int32)
    kernel_key, _ = jax.random.split(jax.random.fold_in(key, number))
    target_key = jax.random.fold_in(key, 2**31 + 1)  # no block has this number
    return kernel.prepare_target(target, target_key, position, steps), kernel.prepare(kernel_key, position, steps)


def _step(target: Target, kernel: Kernel, inputs: tuple[Any, Any], state: Any, beside: Any) -> tuple[Any, Any, Info]:
    """One evaluation of the target, one move of the kernel."""
    target_inputs, kernel_inputs = inputs
    energy, gradient, beside = kernel.evaluate(target, target_inputs, state.position, beside)
    state, info = kernel.move(kernel_inputs, state, energy, gradient)
    return state, beside, info


def _draws_before(step: Array, burn_in: Array, thin: int) -> Array:
    """The number of draws complete before a step."""
    return jax.lax.div(jnp.maximum(step - 1 - burn_in, 0), jnp.asarray(thin, step.dtype))


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


def _no_totals(position: Position | None) -> Totals:
    zero = jnp.zeros((), jnp.result_type(float))
    zeros = jax.tree.map(jnp.zeros_like, position)
    return Totals(zero - 1e30, zero, zeros, zeros)  # a finite scale: the difference of two is a number


def _no_draws(target: Target, kernel: Kernel, plan: Plan, chain: Chain, rows: int) -> Draws:
    column = jnp.zeros(rows, jnp.result_type(float))
    stored = (kernel.draw(chain.state), target.drawn(chain.target_state)) if plan.store else (None, None)
    position, beside = jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), stored)
    return Draws(position, beside, column, column, column)


def _write(draws: Draws, new: Draws, row: Array) -> Draws:
    def write(rows: Array, leaf: Array) -> Array:
        return jax.lax.dynamic_update_index_in_dim(rows, leaf.astype(rows.dtype), row, axis=0)

    return jax.tree.map(write, draws, new)


def _at(tree: Any, i: Array) -> Any:
    return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, keepdims=False), tree)


def _vectorised(
    kernel: Kernel, plan: Plan, function: Callable[..., Any], target: Target, average: Average | None, *stacks: Any
) -> Any:
    """A function of one chain over a stack. One alone is spared the axis, for which networks pay in copies."""
    if kernel.interacting or jax.tree.leaves(stacks)[0].shape[0] > 1:
        axes = (plan.chain_axis, plan.chain_axis, *(0 for _ in stacks))
        return jax.vmap(function, axes, axis_name=CHAINS)(target, average, *stacks)
    given = unstack((target, average), 0) if plan.own else (target, average)
    return jax.tree.map(lambda leaf: leaf[None], function(*given, *unstack(stacks, 0)))


def _all_finite(tree: Any) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
