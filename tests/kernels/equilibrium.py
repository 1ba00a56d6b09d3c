"""Chains that start in exact equilibrium, for tests of what a kernel leaves unchanged.

As in test_invariance.py: 20,000 chains make some steps, and their law must not have moved (p > 1e-4 for a right kernel,
p < 1e-6 for one that is wrong on purpose).
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from contourmc import Partition
from contourmc.flattening.theta import interpolate
from contourmc.flattening.theta import log_theta as as_log_theta

CHAINS = 20_000


def with_noise(inputs, noise):
    """What a step needs, with this noise of the velocity in the innermost dynamics."""
    for part in ("dynamics", "inner"):
        if hasattr(inputs, part):
            return inputs._replace(**{part: with_noise(getattr(inputs, part), noise)})
    return inputs._replace(noise=noise)


def innermost(state):
    """The state of the innermost dynamics."""
    for part in ("dynamics", "inner"):
        if hasattr(state, part):
            return innermost(getattr(state, part))
    return state


@functools.partial(jax.jit, static_argnums=(1, 2))
def evolve(kernel, energy, steps, positions):
    """Chains that start in equilibrium, at the positions with velocities of N(0, I), after a number of steps.

    Where the last step began and its log weight; the share of accepted proposals; the farthest point of all.
    """

    def chain(key, x):
        state = kernel.init(x)
        value, gradient = jax.value_and_grad(energy)(x)
        inputs = jax.tree.map(lambda leaf: leaf[0], kernel.prepare(key, x, jnp.arange(1, 2)))

        # The first move accepts the start, and adds noise to a velocity. With the right noise, v is as it should be.
        def begin(noise):
            return kernel.move(with_noise(inputs, noise), state, value, gradient)[0]

        start = begin(jax.random.normal(key, x.shape) - innermost(begin(jnp.zeros_like(x))).velocity)

        def body(carry, key):
            state, _ = carry
            new, info = kernel.step(key, state, *jax.value_and_grad(energy)(state.position))
            return (new, info.log_weight), kernel.draw(state)

        (state, log_weight), path = jax.lax.scan(body, (start, jnp.float32(0.0)), jax.random.split(key, steps))
        farthest = jnp.max(jnp.where(jnp.isnan(path), jnp.inf, path))
        return path[-1], log_weight, (innermost(state).accepted - 1) / steps, farthest

    last, log_weights, acceptance, farthest = jax.vmap(chain)(jax.random.split(jax.random.key(1), CHAINS), positions)
    return last, log_weights, jnp.mean(acceptance), jnp.max(farthest)


# On two modes, flattened, with θ known: the numbers of test_invariance.py.
TEMPERATURE, ZETA = 0.7, 0.8
PARTITION = Partition(low=1.5, width=0.5, bins=10)
GRID = np.linspace(-7, 9, 20_001)


def two_modes(x):
    """0.4·N(−2, 0.5²) + 0.6·N(2, 1)."""
    parts = jnp.array([-2.0, 2.0]), jnp.array([0.5, 1.0])
    return -jax.nn.logsumexp(jax.scipy.stats.norm.logpdf(x, *parts), b=jnp.array([0.4, 0.6]))


ENERGIES = jax.vmap(two_modes)(jnp.asarray(GRID, jnp.float32))


def distribution(log_density):
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    return mass, np.cumsum(mass) - mass / 2


TARGET, _ = distribution(-np.asarray(ENERGIES, float) / TEMPERATURE)
THETA = np.bincount(np.asarray(PARTITION.index(ENERGIES)), TARGET, minlength=10).tolist()
SETTINGS = {"zeta": ZETA, "theta": THETA}


def contour_pvalues(kernel, steps=40):
    """Of the law of x against the flattened CDF, of the weighted mean energy against its mean under the target."""
    log = as_log_theta(jnp.asarray(THETA))
    log_psi, _ = jax.jit(jax.vmap(lambda energy: interpolate(log, PARTITION, energy, kernel.scheme)))(ENERGIES)
    _, cdf = distribution(-np.asarray(ENERGIES, float) / TEMPERATURE - ZETA * np.asarray(log_psi, float))
    x = np.interp(np.random.default_rng(3).uniform(size=CHAINS), cdf, GRID)
    last, log_weights, acceptance, _ = evolve(kernel, two_modes, steps, jnp.asarray(x, jnp.float32))
    x = np.asarray(last, float)
    p_law = stats.kstest(x, lambda at: np.interp(at, GRID, cdf)).pvalue
    weights = np.exp(np.asarray(log_weights, float))
    away = np.interp(x, GRID, ENERGIES) - np.sum(TARGET * np.asarray(ENERGIES, float))
    z = np.sum(weights * away) / np.sqrt(np.sum((weights * away) ** 2))
    return p_law, 2 * stats.norm.sf(abs(z)), float(acceptance)
