"""The README's energy by NUTS of BlackJAX: window adaptation, 8 chains of 2,000 draws or more from the start."""

import sys
from typing import Any

import blackjax  # pyright: ignore[reportMissingImports]  # an optional extra
import jax
import jax.numpy as jnp


def log_density(x: jax.Array) -> jax.Array:
    return jnp.logaddexp(jnp.log(0.4) - (x + 6) ** 2 / 2, jnp.log(0.6) - (x - 4) ** 2 / 2)


seed, effort = map(int, sys.argv[1:])


@jax.jit
def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    warm_key, key = jax.random.split(key)
    adaptation: Any = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = adaptation.run(warm_key, jnp.float32(-6.0), 500)
    kernel: Any = blackjax.nuts(log_density, **parameters)

    def step(state, key):
        state, info = kernel.step(key, state)
        return state, (state.position, info.num_integration_steps)

    return jax.lax.scan(step, state, jax.random.split(key, 2000 * effort))[1]


draws, evaluations = jax.vmap(chain)(jax.random.split(jax.random.key(seed), 8))
print(float(draws.mean()), int(evaluations.sum()))
