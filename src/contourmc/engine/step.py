"""One step of one chain: the target's evaluation and the kernel's move, with everything random prepared beforehand."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.engine.one_by_one import one_by_one
from contourmc.kernels.base import Kernel
from contourmc.targets.base import Target


def prepare_block(
    target: Target, kernel: Kernel, key: PRNGKeyArray, position: Position, first: Array, block: int
) -> tuple[Any, Any]:
    """Everything random or scheduled in the block that step `first` belongs to, for the target and the kernel.

    It depends only on the chain's key and the number of the block.
    """
    number = (first - 1) // block
    steps = number * block + 1 + jnp.arange(block, dtype=jnp.int32)
    kernel_key, _ = jax.random.split(jax.random.fold_in(key, number))
    target_key = jax.random.fold_in(key, 2**31 + 1)  # no block has this number
    return prepare_steps(target, kernel, target_key, kernel_key, position, steps)


def prepare_steps(
    target: Target,
    kernel: Kernel,
    target_key: PRNGKeyArray,
    kernel_key: PRNGKeyArray,
    position: Position,
    steps: Int[Array, " steps"],
) -> tuple[Any, Any]:
    """Everything random or scheduled in some steps. The target's key is the same for all steps of a chain."""
    return kernel.prepare_target(target, target_key, position, steps), kernel.prepare(kernel_key, position, steps)


def make_step(
    target: Target,
    kernel: Kernel,
    inputs: tuple[Any, Any],
    state: Any,
    target_state: Any,
    centre: Position | None,
    *,
    apart: bool = False,
) -> tuple[Any, Any, Any, Info, Array | None]:
    """One evaluation of the target and one move of the kernel: the new states of both, the part of the target's that
    belongs to the draw, the info and the virial.

    apart: whether the target is evaluated for one chain after the other, if the step is mapped over chains.
    """
    target_inputs, kernel_inputs = inputs
    evaluate = one_by_one(kernel, "evaluate") if apart else kernel.evaluate
    energy, gradient, target_state = evaluate(target, target_inputs, state.position, target_state)
    virial = kernel.virial(kernel_inputs, state, gradient, centre)
    drawn = kernel.drawn(target, target_state)
    state, info = kernel.move(kernel_inputs, state, energy, gradient)
    return state, kernel.follow(state, target_state), drawn, info, virial
