"""A contour kernel in BlackJAX's own loop, on a log density as BlackJAX takes it: two modes, 30% and 70%."""

import blackjax
import jax
import jax.numpy as jnp

import contourmc as cm
from contourmc.blackjax import algorithm


def log_density(x):
    """0.3·N(−4, 1) + 0.7·N(4, 1), up to a constant."""
    return jax.nn.logsumexp(jnp.log(jnp.array([0.3, 0.7])) - (x - jnp.array([-4.0, 4.0])) ** 2 / 2)


kernel = cm.csgld(step_size=0.2, partition=cm.Partition(low=1.0, width=0.5, bins=24))
sampler = algorithm(kernel, cm.from_log_density(log_density))


def chain(key):
    """All draws of a chain that starts in the smaller mode, and the logarithms of their weights."""
    _, drawn = blackjax.util.run_inference_algorithm(
        rng_key=key,
        inference_algorithm=sampler,
        num_steps=100_000,
        initial_position=jnp.float32(-4.0),
        transform=lambda state, info: (state.position, info.log_weight),
    )
    return drawn


draws, log_weights = jax.vmap(chain)(jax.random.split(jax.random.key(0), 8))
draws, log_weights = draws[:, 10_000:], log_weights[:, 10_000:]  # after θ has been learnt
right = float(jnp.sum(jax.nn.softmax(log_weights.ravel()) * (draws.ravel() > 0)))
print(f"the right mode holds {right:.0%}; without weights it would seem to hold {jnp.mean(draws > 0):.0%}")
