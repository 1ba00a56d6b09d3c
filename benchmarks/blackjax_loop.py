"""BlackJAX's CSGLD on the mixture, in the fastest loops that its interface allows.

Which loop is fastest depends on the random generator and on the machine, so `speed` times them all and
takes the best. All draw the gradient noise of a call at once, hand it over as the mini-batch, and split
the keys of all steps beforehand; drawing inside the loop takes two to three times as long. All do less than
ours: BlackJAX makes no weights and no weighted sums.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from benchmarks.problem import BINS, GRADIENT_VARIANCE, LOW, STEP_SIZE, THIN, WIDTH, ZETA, energy
from contourmc.kernels.contour import DEFAULT_OMEGA

# How many steps a kept position stands for, and how far the inner loop is unrolled.
LOOPS = {"every position kept": (1, 1), "every position kept, unrolled": (1, 8), "thinned": (THIN, 1)}


def blackjax_loop(loop: str, steps: int, generator: str, chains: int | None = None) -> Callable[[], Any]:
    """A function that runs `steps` steps of one chain, or of several as a vector, from x = 0."""
    import blackjax

    def log_density(x: Array, noise: Array) -> Array:
        return -energy(x)

    def log_density_gradient(x: Array, noise: Array) -> Array:
        return -jax.grad(energy)(x) - GRADIENT_VARIANCE**0.5 * noise

    sampler = blackjax.csgld(
        log_density, log_density_gradient, zeta=ZETA, num_partitions=BINS, energy_gap=WIDTH, min_energy=LOW
    )
    thin, unroll = LOOPS[loop]

    def step(state: Any, inputs: tuple[Array, Array, Array]) -> tuple[Any, None]:
        key, noise, omega = inputs
        return sampler.step(key, state, noise, STEP_SIZE, omega), None  # type: ignore[call-arg]

    def keep(state: Any, inputs: Any) -> tuple[Any, Array]:
        state = jax.lax.scan(step, state, inputs)[0] if thin > 1 else step(state, inputs)[0]
        return state, state.position

    def run(key: Array, position: Array) -> tuple[Any, Array]:
        shape = (steps // thin, thin) if thin > 1 else (steps,)
        step_key, noise_key = jax.random.split(key)
        omega = DEFAULT_OMEGA(jnp.arange(1, steps + 1)).reshape(shape)
        inputs = jax.random.split(step_key, shape), jax.random.normal(noise_key, shape), omega
        state: Any = sampler.init(position)
        state = state._replace(energy_idx=jnp.asarray(state.energy_idx))
        return jax.lax.scan(keep, state, inputs, unroll=unroll)

    key = jax.random.key(0, impl=generator)
    if chains is None:
        compiled, arguments = jax.jit(run), (key, jnp.zeros(()))
    else:
        compiled, arguments = jax.jit(jax.vmap(run)), (jax.random.split(key, chains), jnp.zeros(chains))
    return lambda: jax.block_until_ready(compiled(*arguments))
