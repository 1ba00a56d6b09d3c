"""BlackJAX's CSGLD on the mixture, in the fastest loops that its interface allows.

Both loops split the keys of all steps and draw all gradient noise beforehand, and hand the noise over as
the mini-batch; drawing it inside takes two to three times as long. Which of the two is faster depends on
the random generator and on the machine, so `speed` times both and takes the better. Either does less than
ours: BlackJAX makes no weights and no weighted sums. Its θ(0) falls without end on this partition and
after some 10⁷ steps its chain is NaN; the runs here are shorter. A chain of NaN was not seen to be slower.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from benchmarks.problem import BINS, GRADIENT_VARIANCE, LOW, STEP_SIZE, THIN, WIDTH, ZETA, energy
from contourmc.kernels.contour import DEFAULT_OMEGA

LOOPS = {"every position": 1, "thinned": THIN}  # how many steps a kept position stands for


def blackjax_loop(loop: str, steps: int, generator: str, chains: int | None = None) -> Callable[[], Any]:
    """A function that runs `steps` steps of one chain, or of several as a vector, from x = 0."""
    import blackjax  # pyright: ignore[reportMissingImports]  # an optional extra

    def log_density(x: Array, noise: Array) -> Array:
        return -energy(x)

    def log_density_gradient(x: Array, noise: Array) -> Array:
        return -jax.grad(energy)(x) - GRADIENT_VARIANCE**0.5 * noise

    sampler: Any = blackjax.csgld(
        log_density, log_density_gradient, zeta=ZETA, num_partitions=BINS, energy_gap=WIDTH, min_energy=LOW
    )
    thin = LOOPS[loop]

    def step(state: Any, inputs: tuple[Array, Array, Array]) -> tuple[Any, None]:
        key, noise, omega = inputs
        return sampler.step(key, state, noise, STEP_SIZE, omega), None

    def keep(state: Any, inputs: tuple[Array, Array, Array]) -> tuple[Any, Array]:
        state, _ = step(state, inputs) if thin == 1 else jax.lax.scan(step, state, inputs)
        return state, state.position

    def run(key: Array, position: Array) -> tuple[Any, Array]:
        shape = (steps,) if thin == 1 else (steps // thin, thin)
        step_key, noise_key = jax.random.split(key)
        omega = DEFAULT_OMEGA(jnp.arange(1, steps + 1)).reshape(shape)
        inputs = jax.random.split(step_key, shape), jax.random.normal(noise_key, shape), omega
        state = sampler.init(position)
        state = state._replace(energy_idx=jnp.asarray(state.energy_idx))  # a scan carries arrays only
        return jax.lax.scan(keep, state, inputs)

    key = jax.random.key(0, impl=generator)
    if chains is None:
        compiled, arguments = jax.jit(run), (key, jnp.zeros(()))
    else:
        compiled, arguments = jax.jit(jax.vmap(run)), (jax.random.split(key, chains), jnp.zeros(chains))
    return lambda: jax.block_until_ready(compiled(*arguments))
