"""The compiled loop: steps in blocks, noise a block at a time, estimates summed on the way.

A run is cut into segments, one call of the compiled program each; a segment into blocks, for which
noise and schedules are made at once; a block into steps. How a run is cut into segments does not
change a bit of it: the noise of a block depends on the chain's key and the block's number alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from contourmc.fusion import can_fuse, fused
from contourmc.kernels.base import CHAINS, Info, Kernel, Position
from contourmc.targets import Target


class Totals(NamedTuple):
    """Weighted sums over the steps of a stretch, after burn-in; weights are relative to e^log_scale.

    log_scale: the largest log weight so far.
    weight: Σ w.
    first, second: Σ w·(x − centre) and Σ w·(x − centre)², for every coordinate.
    """

    log_scale: Float[Array, "..."]
    weight: Float[Array, "..."]
    first: Position
    second: Position


class Chain(NamedTuple):
    """All there is to a chain: from it, a run goes on as if it had never stopped.

    key: the root of the chain's randomness.
    state: the kernel's state.
    centre: what the totals are taken about, for precision: the starting position.
    totals: sums over the current stretch of the path.
    finite: whether all numbers of the last block were finite.
    """

    key: PRNGKeyArray
    state: Any
    centre: Position
    totals: Totals
    finite: Bool[Array, "..."]


class Draws(NamedTuple):
    """Kept draws, stacked along an axis."""

    position: Position
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


@dataclass(frozen=True)
class Plan:
    """What the program is compiled for.

    block: steps whose noise is drawn at once.
    thin: steps for each kept draw.
    stretch: steps between two marks of the path, a multiple of the block; no segment goes beyond one.
    rows: room for kept draws in a segment.
    fuse: whether the steps of a block are one kernel, a chain at a time; else chains are a vector.
    """

    block: int
    thin: int
    stretch: int
    rows: int
    fuse: bool

    @property
    def block_rows(self) -> int:
        """The most draws that a block can touch."""
        return (self.block - 1) // self.thin + 2

    @property
    def segment_steps(self) -> int:
        """The most steps whose draws fit into a segment."""
        return max(self.block, (self.rows - self.block_rows) * self.thin)


def make_plan(target: Target, kernel: Kernel, position: Position, steps: int, thin: int) -> Plan:
    """Sizes by the size of the position, so that noise, draws and path stay within a few MiB each."""
    size = sum(leaf.size for leaf in jax.tree.leaves(position))
    block = max(1, min(1024, 2**20 // size))
    blocks = -(-steps // block)
    # A call costs as much as about a thousand steps in one dimension: no shorter stretches in long runs.
    marks = min(max(25, blocks // 32), 100, max(2, 2**22 // size))
    stretch = min(-(-blocks // marks), 1024) * block  # longer sums would lose precision in float32
    block_rows = (block - 1) // thin + 2
    rows = min(-(-stretch // thin) + block_rows, max(2 * block_rows, 2**22 // size))
    chain = start(kernel, jax.random.key(0), position)
    inputs = jax.tree.map(lambda leaf: leaf[0], _prepare(target, kernel, chain, jnp.int32(1), 1))
    fuse = not kernel.interacting and can_fuse(partial(_step, target, kernel), inputs, chain.state)
    return Plan(block, thin, stretch, rows, fuse)


def start(kernel: Kernel, key: PRNGKeyArray, position: Position) -> Chain:
    """A chain before its first step."""
    return Chain(key, kernel.init(position), position, _no_totals(position), jnp.ones((), bool))


def compile_segment(
    target: Target, kernel: Kernel, plan: Plan, chains: Chain
) -> Callable[[Chain, Any, Any, Any], Segment]:
    """`run_segment` for such chains, compiled here and now, or taken from an earlier run with equal settings.

    The result is called from other threads, which do not share this one's JAX configuration.
    """
    leaves, structure = jax.tree.flatten(chains)
    return _compile_segment(target, kernel, plan, structure, tuple(jax.typeof(leaf) for leaf in leaves))


@lru_cache(maxsize=16)
def _compile_segment(target: Target, kernel: Kernel, plan: Plan, structure: Any, types: tuple[Any, ...]) -> Any:
    chains = structure.unflatten([jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in types])
    number = jax.ShapeDtypeStruct((), jnp.int32)
    return run_segment.lower(target, kernel, plan, chains, number, number, number).compile()


@partial(jax.jit, static_argnames=("target", "kernel", "plan"))
def run_segment(
    target: Target, kernel: Kernel, plan: Plan, chains: Chain, first: Array, last: Array, burn_in: Array
) -> Segment:
    """Steps `first` to `last` (both included, counted from 1) of a stack of chains.

    Ends early, after the block, if a number of any chain is not finite.
    """
    one = jax.tree.map(lambda leaf: leaf[0], chains.centre)
    count = chains.finite.shape[0]
    draws = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), _no_draws(one, plan.rows))
    done_before = _draws_before(first, burn_in, plan.thin)

    def proceed(segment: Segment) -> Array:
        return (segment.next_step <= last) & jnp.all(segment.chains.finite)

    def advance(segment: Segment) -> Segment:
        step = segment.next_step
        end = jnp.minimum((step - 1) // plan.block * plan.block + plan.block, last)
        block = partial(_block, target, kernel, plan, first=step, last=end, burn_in=burn_in)
        over_chains = jax.lax.map if plan.fuse else _vectorised
        chains, new = over_chains(block, segment.chains)
        row = _draws_before(step, burn_in, plan.thin) - done_before
        draws = jax.tree.map(
            lambda rows, rows_new: jax.lax.dynamic_update_slice_in_dim(rows, rows_new, row, axis=1),
            segment.draws,
            new,
        )
        return Segment(end + 1, chains, draws)

    return jax.lax.while_loop(proceed, advance, Segment(first, chains, draws))


@partial(jax.jit, static_argnames=("target", "kernel", "plan"))
def trace_block(target: Target, kernel: Kernel, plan: Plan, chain: Chain, first: Array) -> tuple[Info, Array]:
    """The block that begins with step `first` again: each step's info, and whether it left all finite."""

    def body(state, inputs):
        state, info = _step(target, kernel, inputs, state)
        return state, (info, _all_finite(state.position) & jnp.isfinite(info.energy))

    inputs = _prepare(target, kernel, chain, first, plan.block)
    _, traced = jax.lax.scan(body, _begin(kernel, plan, chain, first).state, inputs)
    return traced


def _block(
    target: Target, kernel: Kernel, plan: Plan, chain: Chain, *, first: Array, last: Array, burn_in: Array
) -> tuple[Chain, Draws]:
    """Steps `first` to `last` of one chain, all in the same block."""
    chain = _begin(kernel, plan, chain, first)
    inputs = _prepare(target, kernel, chain, first, plan.block)
    before = (first - 1) // plan.block * plan.block  # the steps before this block
    done_before = _draws_before(first, burn_in, plan.thin)

    def advance(inputs, state, totals, draws, centre, begin, end, before, done_before, burn_in):
        def body(i, carry):
            state, totals, draws, energies = carry
            position, step = kernel.draw(state), before + i + 1
            state, info = _step(target, kernel, _at(inputs, i), state)
            totals = _add(totals, info.log_weight, position, centre, step > burn_in)
            # Each step writes over the row of its draw; the last of every `thin` steps stays.
            row = _draws_before(step, burn_in, plan.thin) - done_before
            new = Draws(position, info.energy, info.log_weight, info.multiplier)
            return state, totals, _write(draws, new, row), energies + info.energy

        energies = jnp.zeros((), jnp.result_type(float))
        return jax.lax.fori_loop(begin, end, body, (state, totals, draws, energies))

    loop: Callable[..., Any] = fused(advance) if plan.fuse else advance
    draws = _no_draws(chain.centre, plan.block_rows)
    state, totals, draws, energies = loop(
        inputs, chain.state, chain.totals, draws, chain.centre,
        first - 1 - before, last - before, before, done_before, burn_in,
    )  # fmt: skip
    # A number that was not finite leaves its mark on the sum of the energies, or on the last position.
    finite = jnp.isfinite(energies) & _all_finite(state.position)
    return Chain(chain.key, state, chain.centre, totals, finite), draws


def _begin(kernel: Kernel, plan: Plan, chain: Chain, first: Array) -> Chain:
    """At the beginning of a block the state is settled, at that of a stretch the totals are empty.

    Both depend on the step alone and not on where segments are cut.
    """
    settled = jax.lax.cond((first - 1) % plan.block == 0, kernel.settle, lambda same: same, chain.state)
    fresh = (first - 1) % plan.stretch == 0
    totals = jax.tree.map(partial(jnp.where, fresh), _no_totals(chain.centre), chain.totals)
    return chain._replace(state=settled, totals=totals)


def _prepare(target: Target, kernel: Kernel, chain: Chain, first: Array, block: int) -> tuple[Any, Any]:
    """Everything random or scheduled in the block that step `first` belongs to."""
    number = (first - 1) // block
    kernel_key, target_key = jax.random.split(jax.random.fold_in(chain.key, number))
    steps = number * block + 1 + jnp.arange(block, dtype=jnp.int32)
    position = chain.state.position
    target_inputs = kernel.prepare_target(target, target_key, position, block)
    return target_inputs, kernel.prepare(kernel_key, position, steps)


def _step(target: Target, kernel: Kernel, inputs: tuple[Any, Any], state: Any) -> tuple[Any, Info]:
    """One evaluation of the target, one move of the kernel."""
    target_inputs, kernel_inputs = inputs
    energy, gradient = kernel.evaluate(target, target_inputs, state.position)
    return kernel.move(kernel_inputs, state, energy, gradient)


def _draws_before(step: Array, burn_in: Array, thin: int) -> Array:
    """The number of draws complete before a step."""
    return jax.lax.div(jnp.maximum(step - 1 - burn_in, 0), jnp.asarray(thin, step.dtype))


def _add(totals: Totals, log_weight: Array, position: Position, centre: Position, kept: Array) -> Totals:
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


def _no_totals(position: Position) -> Totals:
    zero = jnp.zeros((), jnp.result_type(float))
    zeros = jax.tree.map(jnp.zeros_like, position)
    return Totals(zero - 1e30, zero, zeros, zeros)  # a finite scale: the difference of two is a number


def _no_draws(position: Position, rows: int) -> Draws:
    column = jnp.zeros(rows, jnp.result_type(float))
    positions = jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), position)
    return Draws(positions, column, column, column)


def _write(draws: Draws, new: Draws, row: Array) -> Draws:
    def write(rows: Array, leaf: Array) -> Array:
        return jax.lax.dynamic_update_index_in_dim(rows, leaf.astype(rows.dtype), row, axis=0)

    return jax.tree.map(write, draws, new)


def _at(tree: Any, i: Array) -> Any:
    return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, keepdims=False), tree)


def _vectorised(function: Callable[[Any], Any], tree: Any) -> Any:
    return jax.vmap(function, axis_name=CHAINS)(tree)


def _all_finite(tree: Any) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
