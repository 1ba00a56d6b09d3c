"""The sizes and choices that the compiled loop of a run is made for."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from contourmc._core.pytrees import Position, position_size, shape_of_one
from contourmc.engine.cpu_single_kernel import can_fuse, has_convolutions
from contourmc.engine.step import make_step, prepare_block
from contourmc.kernels.base import Kernel
from contourmc.targets.base import Target

LARGE = 2**14  # in positions with more numbers than this, only kept draws are written or summed

SHORT = 100_000  # steps of a run that is compiled quickly; on a 60-dimensional one they then took 1.3 times as long


def is_large(position: Any) -> bool:
    """Whether a position, given itself or by its shapes, is so large that only kept draws are written or summed."""
    return position_size(position) > LARGE


@dataclass(frozen=True)
class Build:
    """What the program is compiled for; the number of steps and of kept draws is no part of it.

    block: steps whose noise is drawn at once.
    rows: the most draws that a block can touch.
    capacity: the most draws that a segment can touch.
    fuse: whether the steps of a block are one CPU kernel for each chain; else chains are vectorised.
    unroll: whether the program makes a single step, and the loop is in Python; else the loop is compiled. XLA uses its
        fast routines for convolutions on a CPU only outside loops; inside, the gradients of a small ResNet took 34
        times as long (JAX issue 12868).
    apart: whether chains are evaluated one after the other; else together, as a vector.
    large: whether only kept draws are written or summed, since positions are large; else every step is.
    store: whether the positions of kept draws are stored.
    per_chain: whether each chain has its own target and average, stacked along a leading axis.
    mesh: the devices that chains are dealt to; None for one device.
    """

    block: int
    rows: int
    capacity: int
    fuse: bool
    unroll: bool
    apart: bool
    large: bool
    store: bool
    per_chain: bool
    mesh: Mesh | None

    @property
    def chain_axis(self) -> int | None:
        """The axis of the target and the average along which chains lie, as `jax.vmap` takes it."""
        return 0 if self.per_chain else None


@dataclass(frozen=True)
class Plan:
    """build: what the program is compiled for.
    thin: steps for each kept draw.
    stretch: steps between two marks of the trajectory, a multiple of the block; no segment goes beyond a mark.
    short: whether the run is so short that compiling counts more than running.
    """

    build: Build
    thin: int
    stretch: int
    short: bool

    @property
    def segment_steps(self) -> int:
        """The most steps whose draws fit into a segment."""
        build = self.build
        return 1 if build.unroll else max(build.block, (build.capacity - build.rows) * self.thin)


def make_plan(
    target: Target,
    kernel: Kernel,
    position: Any,
    steps: int,
    thin: int,
    *,
    averaged: bool = False,
    store: bool = True,
    per_chain: bool = False,
    mesh: Mesh | None = None,
) -> Plan:
    """Sizes by the size of the position, so that noise, draws and trajectory stay within a few MiB each.

    The target and the position are those of one chain. Only their shapes matter: nothing is computed with them.
    """
    size = position_size(position)
    state, target_state = jax.eval_shape(
        lambda target, position: (kernel.init(position), kernel.init_target(target)), target, position
    )

    def prepare_one(target: Target, position: Position) -> Any:
        return prepare_block(target, kernel, jax.random.key(0), position, jnp.int32(1), 1)

    one_step = jax.eval_shape(prepare_one, target, state.position)
    most = max(size, sum(leaf.size for leaf in jax.tree.leaves(one_step)))
    # A block is as long as its noise takes a few ms to draw, or 8 steps if 16 MiB hold it (GPU: 16 steps, 128 MiB).
    few, room = (8, 2**22) if jax.default_backend() == "cpu" else (16, 2**25)
    block = min(1024, max(1, 2**16 // most, min(few, room // most)))
    inputs = shape_of_one(one_step)
    # Only the evaluation: a move that learns from other chains works only along the axis on which they lie.
    apart = has_convolutions(kernel.evaluate, target, inputs[0], state.position, target_state)
    unroll = apart and jax.default_backend() == "cpu"
    if unroll:
        block = 1
    blocks = -(-steps // block)
    # A call costs as much as about a thousand steps in one dimension, so long runs have no shorter stretches.
    marks = min(max(25, blocks // 32), 100)
    large = is_large(position)
    stretch = -(-blocks // marks) * block
    if not large:
        stretch = min(stretch, 1024 * block)  # longer sums would lose precision in float32
    if large:
        rows = _draws_of_block(block, thin)
        capacity = min(-(-stretch // thin) + rows, max(2 * rows, 2**22 // size))
    else:  # room for any number of draws, so that a run of another length needs no other program
        rows = _draws_of_block(block, 1)
        capacity = rows + min(2**14, max(rows, 2**20 // size))
    independent = not averaged and not kernel.interacting and not per_chain

    def one_step_of(target: Target, inputs: Any, state: Any, target_state: Any, centre: Any) -> Any:
        return make_step(target, kernel, inputs, state, target_state, centre)

    centre = None if large else kernel.draw(state)
    fuse = independent and can_fuse(one_step_of, target, inputs, state, target_state, centre)
    build = Build(block, rows, capacity, fuse, unroll, apart, large, store, per_chain, mesh)
    return Plan(build, thin, stretch, steps <= SHORT)


def _draws_of_block(block: int, thin: int) -> int:
    return (block - 1) // thin + 2
