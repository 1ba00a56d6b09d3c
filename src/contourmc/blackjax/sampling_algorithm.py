"""A kernel and a target as what BlackJAX calls a sampling algorithm: `init(position)` and `step(key, state)`."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from contourmc._core.checks import require
from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.engine.step import make_step, prepare_steps
from contourmc.kernels.base import Kernel
from contourmc.targets.base import Target, check_position
from contourmc.targets.energies import Energy, as_target

if TYPE_CHECKING:
    from blackjax.base import SamplingAlgorithm


class AlgorithmState(NamedTuple):
    """position: the draw of the last step, which that step's `info` describes; at first, where the chain starts.
    kernel: the kernel's state, whose position is the one to be evaluated next.
    target: the target's state, such as batch-norm statistics; None for most targets.
    key: of the target's randomness, such as the order of mini-batches; the same in all steps of a chain.

    >>> import contourmc.blackjax
    >>> state = contourmc.blackjax.algorithm(cm.sgld(0.002), energy).init(1.0)
    >>> print(state.position, state.kernel.steps)
    1.0 0
    """

    position: Position
    kernel: Any
    target: Any
    key: Any


def algorithm(kernel: Kernel, target: Target | Energy) -> "SamplingAlgorithm":
    """A kernel on a target as BlackJAX's `SamplingAlgorithm`, for `blackjax.util.run_inference_algorithm` and others.

    target: an energy, a `Target`, or a log density by `cm.from_log_density`.

    `state.position` is a draw, and `info.log_weight` the logarithm of **its** importance weight; for an unweighted
    kernel that is 0. A step evaluates the target once, or as often as the kernel needs. The key of `init` orders the
    mini-batches of a chain: chains with the same one see the same batches.

    >>> import contourmc.blackjax
    >>> sampler = contourmc.blackjax.algorithm(cm.sgld(0.002), cm.from_log_density(lambda x: -energy(x)))
    >>> state = sampler.init(1.0, jax.random.key(0))
    >>> state, info = sampler.step(jax.random.key(1), state)
    >>> print(state.position, info.energy, info.log_weight)
    1.0 0.5 0.0
    """
    require(isinstance(kernel, Kernel), "kernel", kernel, "give a kernel, for example csgld(...) or sgld(...)")
    remedy = "its chains learn together, which only `cm.sample` lets them: give shared=False"
    require(not kernel.interacting, "kernel", kernel, remedy)
    if find_spec("blackjax") is None:
        raise ImportError("BlackJAX is not installed: pip install 'contourmc[blackjax]'")
    from blackjax.base import SamplingAlgorithm

    sampled = as_target(target)

    def init(position: Any, rng_key: PRNGKeyArray | None = None) -> AlgorithmState:
        check_position(position)
        position = jax.tree.map(jnp.asarray, position)
        sampled.check(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), position))
        key = jax.random.key(0) if rng_key is None else rng_key
        return AlgorithmState(position, kernel.init(position), kernel.init_target(sampled), key)

    def step(rng_key: PRNGKeyArray, state: Any) -> tuple[AlgorithmState, Info]:
        before = state.kernel
        number = jnp.reshape(before.steps + 1, (1,)).astype(jnp.int32)
        inputs = prepare_steps(sampled, kernel, state.key, rng_key, before.position, number)
        inputs = jax.tree.map(lambda leaf: leaf[0], inputs)
        after, target_state, _, info, _ = make_step(sampled, kernel, inputs, before, state.target, None)
        return AlgorithmState(kernel.draw(before), kernel.settle(after), target_state, state.key), info

    return SamplingAlgorithm(init, step)
