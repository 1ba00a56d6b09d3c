"""The README's energy by tempered SMC of BlackJAX, with HMC: 4,000 particles or more, from a Gaussian of width 10."""

import sys
from typing import Any

import blackjax  # pyright: ignore[reportMissingImports]  # an optional extra
import jax
import jax.numpy as jnp
from blackjax.smc import extend_params, resampling  # pyright: ignore[reportMissingImports]


def log_density(x: jax.Array) -> jax.Array:
    return jnp.logaddexp(jnp.log(0.4) - (x + 6) ** 2 / 2, jnp.log(0.6) - (x - 4) ** 2 / 2)


def log_prior(x: jax.Array) -> jax.Array:
    return -(((x + 6) / 10) ** 2) / 2


seed, effort = map(int, sys.argv[1:])
particles, moves, leapfrog = 4000 * effort, 5, 10
hmc: Any = {"step_size": 0.3, "inverse_mass_matrix": jnp.ones(1), "num_integration_steps": leapfrog}
smc: Any = blackjax
tempered = smc.adaptive_tempered_smc(
    log_prior,
    lambda x: log_density(x) - log_prior(x),
    blackjax.hmc.build_kernel(),
    blackjax.hmc.init,
    extend_params(hmc),
    resampling.systematic,
    0.7,
    num_mcmc_steps=moves,
)
key, first = jax.random.split(jax.random.key(seed))
state = tempered.init(-6 + 10 * jax.random.normal(first, (particles,)))
step, evaluations = jax.jit(tempered.step), 0
done = False
while not done:
    # A move follows the resampling of the temperature before: once at 1, the particles need another.
    done = float(state.tempering_param) >= 1
    key, now = jax.random.split(key)
    state, _ = step(now, state)
    evaluations += particles * moves * leapfrog
print(float(state.particles.mean()), evaluations)
