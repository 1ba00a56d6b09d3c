"""Any kernel whose steps are increments of the position, as an Optax transformation.

A step is small next to a parameter: in bfloat16, with 8 bits, and in float16, with 11, its noise would be rounded away.
So such parameters x are kept in float32 too, as y in the state. The kernel moves y by Δ, and the update is
round(y + Δ) − x, which takes the parameter to the rounding of its copy.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from contourmc._core.checks import is_known, require, require_number
from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.kernels.dynamics import IncrementalDynamics
from contourmc.kernels.flattened import FlattenedKernel
from contourmc.kernels.schedules import Number


class SamplerState(NamedTuple):
    """A pytree of arrays, for checkpoints of any kind.

    key: the random key of the run, as plain numbers.
    kernel: the state of the kernel without its position; that of a contour kernel has `theta` and `visits`.
    info: of the last step: `energy`, `bin`, `multiplier` and `log_weight` at the parameters before it.
    copies: parameters of less than 32 bits in float32, None for each of the others.

    >>> import contourmc.optax as samplers
    >>> tx = samplers.sgld(0.1, data_size=100)
    >>> updates, state = tx.update({"w": jnp.ones(3)}, tx.init({"w": jnp.zeros(3)}), value=0.7)
    >>> print(state.kernel.steps, state.info.energy)
    1 70.0
    """

    key: Array
    kernel: Any
    info: Info
    copies: Any


def sampler(
    kernel: FlattenedKernel | IncrementalDynamics,
    *,
    data_size: Number,
    weight_decay: Number = 0.0,
    seed: int | Array = 0,
) -> optax.GradientTransformationExtraArgs:
    """A kernel as an Optax transformation, on a mean loss L(x) of N observations.

    Its energy and gradient, with a Gaussian prior of precision Nλ for a weight decay λ, are

        U(x) = N·L(x) + (Nλ/2)·‖x‖²,        ∇U(x) = N·∇L(x) + Nλ·x,

    and the kernel's step size is that of U: a learning rate η of L is a step size of η/N.

    kernel: SGLD, SGHMC or Langevin dynamics, or a contour kernel over one of them.
    data_size: N.
    weight_decay: λ.
    seed: of the noise.

    `update(gradients, state, params, value=loss)` needs the parameters for a weight decay, and if they have less than
    32 bits, as bfloat16 and float16: these are sampled through copies in float32. It needs the loss for a contour
    kernel. If the loss is not finite, neither are the updates.

    >>> import contourmc.optax as samplers
    >>> params, tx = {"w": jnp.zeros(3)}, samplers.sampler(cm.langevin(0.001), data_size=100)
    >>> updates, state = tx.update({"w": jnp.ones(3)}, tx.init(params), params, value=0.7)
    >>> updates["w"].shape
    (3,)
    """
    flattened = isinstance(kernel, FlattenedKernel)
    moved = kernel.dynamics if isinstance(kernel, FlattenedKernel) else kernel
    remedy = "its steps are not increments of the parameters; use sgld, sghmc, langevin, or contour over one of them"
    require(isinstance(moved, IncrementalDynamics), "kernel", kernel, remedy)
    require_number("data_size", data_size, "give the number of observations in the training set", positive=True)
    require_number("weight_decay", weight_decay, "a weight decay must be 0 or more", positive=False)
    decays = not is_known(weight_decay) or weight_decay > 0

    def init(params: Position) -> SamplerState:
        _check_floats(params)
        nothing = jnp.zeros((), jnp.result_type(float))
        info = Info(nothing, jnp.zeros((), jnp.int32), nothing, nothing)
        params = jax.tree.map(jnp.asarray, params)
        copies = jax.tree.map(lambda x: x.astype(jnp.float32) if _is_short(x) else None, params)
        state = kernel.init(jax.tree.map(_exact, params, copies)).at(None)
        return SamplerState(jax.random.key_data(jax.random.key(seed)), state, info, copies)

    def update(
        gradients: Position,
        state: SamplerState,
        params: Position | None = None,
        *,
        value: Any = None,
        **_: Any,
    ) -> tuple[Position, SamplerState]:
        require(not decays or params is not None, "params", None, "weight decay needs them: update(…, params)")
        copied = bool(jax.tree.leaves(state.copies))
        remedy = "those of less than 32 bits are sampled through copies in float32: update(…, params)"
        require(not copied or params is not None, "params", None, remedy)
        exact = None if params is None else jax.tree.map(_exact, params, state.copies)
        gradients = jax.tree.map(lambda g, y: g if y is None else g.astype(y.dtype), gradients, state.copies)
        loss = _as_loss(value, needed=flattened)
        energy, gradient = data_size * loss, jax.tree.map(lambda g: data_size * g, gradients)
        if decays and exact is not None:
            precision = data_size * weight_decay
            energy = energy + precision / 2 * optax.tree.norm(exact, squared=True)
            gradient = jax.tree.map(lambda g, x: g + precision * x, gradient, exact)
        # A loss that is not finite must not go unnoticed: its bin would be any, and its multiplier 1.
        sound = jnp.where(jnp.isfinite(energy), 1.0, jnp.nan)
        gradient = jax.tree.map(lambda g, given: (sound * g).astype(given.dtype), gradient, gradients)
        step = state.kernel.steps + 1
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), step)
        inputs = jax.tree.map(lambda leaf: leaf[0], kernel.prepare(key, gradients, step[None]))
        added, new, info = kernel.increment(inputs, state.kernel, energy, gradient)
        copies = state.copies
        if copied:
            copies = jax.tree.map(lambda a, y, old: None if old is None else y + a, added, exact, copies)
            added = jax.tree.map(_rounded, added, copies, params)
        return added, SamplerState(state.key, kernel.settle(new), info, copies)

    return optax.GradientTransformationExtraArgs(init, update)  # type: ignore[arg-type]  # `value` is an extra argument


def _is_short(parameter: Array) -> bool:
    """Whether the steps of a parameter would be lost in its rounding."""
    return jnp.finfo(parameter.dtype).bits < 32


def _exact(parameter: Array, copy: Array | None) -> Array:
    """The parameter as the kernel knows it: its copy, unless somebody else has changed the parameter since."""
    if copy is None:
        return parameter
    return jnp.where(copy.astype(parameter.dtype) == parameter, copy, parameter.astype(copy.dtype))


def _rounded(added: Array, copy: Array | None, parameter: Array) -> Array:
    """The update after which a parameter is its copy, rounded."""
    if copy is None:
        return added
    return (copy.astype(parameter.dtype).astype(copy.dtype) - parameter.astype(copy.dtype)).astype(parameter.dtype)


def _as_loss(value: Any, *, needed: bool) -> Float[Array, ""]:
    """The loss as one number; raises for anything else."""
    remedy = "a contour kernel needs the loss: tx.update(grads, state, params, value=loss)"
    require(value is not None or not needed, "value", None, remedy)
    loss = jnp.asarray(0.0 if value is None else value)
    one = loss.shape == () and jnp.issubdtype(loss.dtype, jnp.floating)
    require(one, "value", f"an array of {loss.dtype}{list(loss.shape)}", "give the mean loss of the batch, one float")
    if is_known(loss):  # also inside a program that is being traced for other reasons, where JAX computes no values
        require(math.isfinite(float(loss)), "value", float(loss), "the loss is not finite: lower the learning rate")
    return loss.astype(jnp.result_type(float))


def _check_floats(params: Position) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        floating = jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)
        remedy = "parameters must be floats; leave others out with optax.masked"
        require(floating, "params" + jax.tree_util.keystr(path), leaf, remedy)
