"""The chains before their first step, in groups that one call of the compiled program advances."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from contourmc._core.checks import require_memory
from contourmc._core.compiling import call_compiled
from contourmc._core.cores import available_cores, available_memory
from contourmc._core.mesh import DEVICES, deal
from contourmc._core.processes import on_host
from contourmc._core.pytrees import Position, as_arguments, bytes_of, shape_of_one
from contourmc.engine.loop import empty_draws
from contourmc.engine.plan import Build, Plan
from contourmc.engine.state import Chain, Draws, start_chain
from contourmc.kernels.base import Kernel
from contourmc.predictions.average import Average
from contourmc.targets.base import Target

MOST_GROUPS = 32  # calls of the program in a segment


def start_chains(
    build: Build,
    target: Target,
    kernel: Kernel,
    keys: Array,
    positions: Position,
    average: Average | None,
    kernel_state: Any = None,
) -> Chain:
    """A stack of chains at stacked positions, with a key for each; `kernel_state` is None for `kernel.init` there."""
    return call_compiled(_start_chains, target, kernel, keys, positions, average, kernel_state, build=build)


def _start_chains(
    target: Target, kernel: Kernel, keys: Array, positions: Position, average: Any, kernel_state: Any, *, build: Build
) -> Chain:
    def start(target: Target, average: Average | None, key: Array, position: Position) -> Chain:
        return start_chain(target, kernel, key, position, average, large=build.large)

    chains = jax.vmap(start, (build.chain_axis, build.chain_axis, 0, 0))(target, average, keys, positions)
    return chains if kernel_state is None else chains._replace(state=kernel_state)


def require_room(
    plan: Plan, target: Target, kernel: Kernel, position: Any, average: Average | None, chains: int
) -> None:
    """Raise for so many chains that those, and the draws of one segment, are larger than the memory of their devices.

    The target, the average and the position are those of one chain, or their shapes.
    """
    build, key = plan.build, jax.eval_shape(lambda: jax.random.key(0))
    start = partial(start_chain, large=build.large)
    chain = jax.eval_shape(start, target, as_arguments(kernel), key, position, average)
    draws = jax.eval_shape(lambda chain: empty_draws(target, kernel, build, chain, build.capacity), chain)
    each, devices = bytes_of((chain, draws)), jax.local_devices()
    held, there = chains // jax.process_count(), available_memory()
    stats = devices[0].memory_stats() or {}  # a CPU has none
    if "bytes_limit" in stats:
        there = float(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
        held //= 1 if build.mesh is None else build.mesh.local_mesh.shape[DEVICES]
    what = f"their states, and the draws of one call of the compiled program, {each:,} bytes for each chain,"
    require_memory("chains", chains, each * held, there, what, f"give fewer; {int(there / each):,} would fit")


def grouped(build: Build, chains: Chain) -> tuple[Chain, ...]:
    """The chains in stacks that one call of the program advances.

    Chains that are one CPU kernel each run on separate threads, a few in each call if there are many; others are one
    vector. Chains on several devices are one stack.
    """
    if build.mesh is not None:
        return (deal(build.mesh, chains),)
    if not build.fuse:
        return (chains,)
    host = jax.tree.map(on_host, chains)  # to take parts of arrays on the device, a program would have to be compiled
    count = chains.health.bad_step.shape[0]
    size = -(-count // MOST_GROUPS)
    return tuple(
        jax.tree.map(lambda leaf, i=i: jax.device_put(leaf[i : i + size]), host) for i in range(0, count, size)
    )


def no_draws(target: Target, kernel: Kernel, build: Build, groups: tuple[Chain, ...]) -> Draws:
    """The draws of all chains before the first is kept."""
    one = jax.eval_shape(lambda chain: empty_draws(target, kernel, build, chain, 0), shape_of_one(groups[0]))
    count = sum(group.health.bad_step.shape[0] for group in groups)
    return jax.tree.map(lambda leaf: on_host(jnp.zeros((count, *leaf.shape), leaf.dtype)), one)


def threads(groups: tuple[Chain, ...]) -> int:
    """How many threads advance the groups: at most one for each core that this process may use."""
    return min(available_cores(), len(groups))
