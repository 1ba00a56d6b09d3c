"""Every dynamics leaves its stationary law alone.

One harness for all: many chains start in exact equilibrium, make some steps, and a test asks whether their
law has moved. A right kernel must give p > 1e-4 (a false alarm in 10,000 changes of the random stream); a
kernel that is wrong on purpose must give p < 1e-6, so that the harness is seen to notice. With 20,000
chains the Kolmogorov–Smirnov test notices a CDF that is off by 0.016 or more somewhere.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, stats

from contourmc import Partition, contour, csghmc, csgld, langevin, sghmc, sgld
from contourmc.flattening.theta import interpolate
from contourmc.flattening.theta import log_theta as as_log_theta
from contourmc.kernels.contour import Contour
from contourmc.kernels.langevin import Langevin
from contourmc.kernels.sghmc import SGHMC
from contourmc.kernels.sgld import SGLD

CHAINS = 20_000


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def evolve(kernel, energy, steps, states):
    """All chains after a number of steps; the points where the last step began, with their log weights."""

    def chain(key, state):
        def body(carry, key):
            state, _ = carry
            new, info = kernel.step(key, state, *jax.value_and_grad(energy)(state.position))
            return (new, (state.position, info.log_weight)), None

        carry = state, (state.position, jnp.float32(0.0))
        return jax.lax.scan(body, carry, jax.random.split(key, steps))[0]

    return jax.vmap(chain)(jax.random.split(jax.random.key(1), CHAINS), states)


def start(kernel, positions, velocities=None):
    states = jax.vmap(kernel.init)(jnp.asarray(positions, jnp.float32))
    if velocities is None:
        return states
    velocities = jnp.asarray(velocities, jnp.float32)
    if isinstance(kernel, Contour):
        return states._replace(dynamics=states.dynamics._replace(velocity=velocities))
    return states._replace(velocity=velocities)


# --- SGLD and SGHMC on a Gaussian: their stationary laws are known exactly, at any step size ---------


def gaussian(x):
    return x**2 / 2


def stationary_covariance(step_size, temperature, momentum):
    """Of (x, v) under v' = βv − εx + noise, x' = x + v', a linear recursion; β = 0 is SGLD."""
    transition = np.array([[1 - step_size, momentum], [-step_size, momentum]])
    noise = 2 * (1 - momentum) * temperature * step_size * np.ones((2, 2))
    return linalg.solve_discrete_lyapunov(transition, noise)


def gaussian_pvalue(kernel, step_size, temperature, momentum):
    """Of the law of x after 50 steps, and of v too if there is one."""
    covariance = stationary_covariance(step_size, temperature, momentum)
    x, v = np.random.default_rng(2).multivariate_normal(np.zeros(2), covariance, CHAINS).T
    states, _ = evolve(kernel, gaussian, 50, start(kernel, x, v if momentum else None))
    p = stats.kstest(np.asarray(states.position), stats.norm(0, covariance[0, 0] ** 0.5).cdf).pvalue
    if momentum:
        p_v = stats.kstest(np.asarray(states.velocity), stats.norm(0, covariance[1, 1] ** 0.5).cdf).pvalue
        p = min(p, p_v)
    return p


@pytest.mark.parametrize(("step_size", "momentum"), [(0.2, 0.0), (0.1, 0.5), (0.1, 0.9), (1.0, 0.9)])
def test_the_documented_variance(step_size, momentum):
    """1/(1 − ε/(2(1+β))), and so 1/(1 − ε/2) for SGLD, is what the recursion gives."""
    variance = stationary_covariance(step_size, 1.0, momentum)[0, 0]
    assert variance == pytest.approx(1 / (1 - step_size / (2 * (1 + momentum))), rel=1e-9)


def test_sgld_keeps_a_gaussian():
    assert gaussian_pvalue(sgld(0.5, 0.3), 0.5, 0.3, 0.0) > 1e-4


def test_sghmc_keeps_a_gaussian():
    assert gaussian_pvalue(sghmc(0.5, 0.3, 0.9), 0.5, 0.3, 0.9) > 1e-4


class HalfNoise(SGLD):
    """√(τε) instead of √(2τε)."""

    friction = 0.5


class NoFriction(SGHMC):
    """√(2τε) instead of √(2(1−β)τε)."""

    friction = 1.0


def test_wrong_noise_is_noticed():
    assert gaussian_pvalue(HalfNoise(0.5, 0.3), 0.5, 0.3, 0.0) < 1e-6
    assert gaussian_pvalue(NoFriction(0.5, 0.3, 0.9), 0.5, 0.3, 0.9) < 1e-6


def test_even_the_error_of_discretisation_is_noticed():
    """The law of SGLD at ε = 0.5 is not that of the target: its variance is 4/3 of it."""
    kernel = sgld(0.5, 0.3)
    x = np.random.default_rng(2).normal(0, 0.3**0.5, CHAINS)
    states, _ = evolve(kernel, gaussian, 50, start(kernel, x))
    assert stats.kstest(np.asarray(states.position), stats.norm(0, 0.3**0.5).cdf).pvalue < 1e-6


# --- Langevin dynamics of second order ----------------------------------------------------------------


def langevin_covariance(step_size, temperature, momentum):
    """The stationary covariance of (x, v) on U = x²/2, where a step is linear."""
    transition = np.array([[1 - step_size * (1 + momentum), (1 + momentum) / 2], [-2 * step_size * momentum, momentum]])
    noise = np.array([0.5, 1.0]) * np.sqrt(2 * (1 - momentum**2) * temperature * step_size)
    return linalg.solve_discrete_lyapunov(transition, np.outer(noise, noise))


@pytest.mark.parametrize(("step_size", "momentum"), [(0.2, 0.0), (0.9, 0.0), (0.1, 0.5), (0.1, 0.9), (0.9, 0.9)])
def test_langevin_has_the_exact_variance_at_any_step_size(step_size, momentum):
    assert langevin_covariance(step_size, 0.3, momentum)[0, 0] == pytest.approx(0.3, rel=1e-9)


def langevin_pvalue(kernel, momentum):
    covariance = langevin_covariance(0.5, 0.3, momentum)
    x, v = np.random.default_rng(2).multivariate_normal(np.zeros(2), covariance, CHAINS).T
    states, _ = evolve(kernel, gaussian, 50, start(kernel, x, v))
    return stats.kstest(np.asarray(states.position), stats.norm(0, 0.3**0.5).cdf).pvalue


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_langevin_keeps_the_gaussian_target_itself(momentum):
    assert langevin_pvalue(langevin(0.5, 0.3, momentum), momentum) > 1e-4


class FrictionOfSGHMC(Langevin):
    """√(2(1−β)τε) instead of √(2(1−β²)τε)."""

    friction = 0.1


def test_the_wrong_friction_is_noticed():
    assert langevin_pvalue(FrictionOfSGHMC(0.5, 0.3, 0.9), 0.9) < 1e-6


# --- Contour kernels with θ known, on two modes ------------------------------------------------------

TEMPERATURE, ZETA = 0.7, 0.8
PARTITION = Partition(low=1.5, width=0.5, bins=10)  # the lowest energy is 1.13, that of the barrier 4.2
GRID = np.linspace(-7, 9, 20_001)


def two_modes(x):
    """0.4·N(−2, 0.5²) + 0.6·N(2, 1)."""
    parts = jnp.array([-2.0, 2.0]), jnp.array([0.5, 1.0])
    return -jax.nn.logsumexp(jax.scipy.stats.norm.logpdf(x, *parts), b=jnp.array([0.4, 0.6]))


ENERGIES = jax.vmap(two_modes)(jnp.asarray(GRID, jnp.float32))


def distribution(log_density):
    """Weights of the grid's points, and the CDF there."""
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    return mass, np.cumsum(mass) - mass / 2


TARGET, _ = distribution(-np.asarray(ENERGIES, float) / TEMPERATURE)
THETA = np.bincount(np.asarray(PARTITION.index(ENERGIES)), TARGET, minlength=10).tolist()


@functools.cache
def flattened_cdf(scheme):
    """Of the density ∝ exp(−U/τ)/Ψ^ζ on the grid."""
    log = as_log_theta(jnp.asarray(THETA))
    log_psi, _ = jax.jit(jax.vmap(lambda energy: interpolate(log, PARTITION, energy, scheme)))(ENERGIES)
    return distribution(-np.asarray(ENERGIES, float) / TEMPERATURE - ZETA * np.asarray(log_psi, float))[1]


def contour_pvalues(kernel, momentum=0.0):
    """Start in the flattened density. Afterwards two numbers.

    p of the unweighted law of x against the flattened CDF; p of the weighted mean of the energy against its
    exact mean under the target (a self-normalised estimate is normal with variance Σw²(f − μ)²/(Σw)²).

    The step sizes are such that the error of discretisation is below what 20,000 chains can see. It is of
    order ε: with curvature 4 in the narrow mode, ε = 0.005 changes its variance by 4ε/2 = 1%, that is its CDF
    by 0.002 and the mean energy by 0.002, against 0.016 for the former test and 4 × 0.006 for the latter.
    """
    cdf = flattened_cdf(kernel.scheme)
    rng = np.random.default_rng(3)
    x = np.interp(rng.uniform(size=CHAINS), cdf, GRID)
    v = None
    if momentum:
        # v_k belongs to the time half a step before x_k, where the two are independent to first order in ε.
        v = rng.normal(0, (2 * TEMPERATURE * kernel.dynamics.step_size / (1 + momentum)) ** 0.5, CHAINS)
        x = x + v / 2
    _, (positions, log_weights) = evolve(kernel, two_modes, 200, start(kernel, x, v))
    x = np.asarray(positions, float)
    p_law = stats.kstest(x, lambda at: np.interp(at, GRID, cdf)).pvalue

    weights = np.exp(np.asarray(log_weights, float))
    away = np.interp(x, GRID, ENERGIES) - np.sum(TARGET * np.asarray(ENERGIES, float))
    z = np.sum(weights * away) / np.sqrt(np.sum((weights * away) ** 2))
    return p_law, 2 * stats.norm.sf(abs(z))


# 200 steps of 0.005, or of 0.0005/(1 − β) with momentum, are a time of 1: enough to cross a mode.
SETTINGS = {"zeta": ZETA, "theta": THETA}


@pytest.mark.parametrize("scheme", ["smooth", "left", "right"])
def test_csgld_keeps_the_flattened_density(scheme):
    kernel = csgld(0.005, PARTITION, temperature=TEMPERATURE, scheme=scheme, **SETTINGS)
    assert min(contour_pvalues(kernel)) > 1e-4


def test_csghmc_keeps_the_flattened_density():
    kernel = csghmc(0.0005, PARTITION, temperature=TEMPERATURE, momentum=0.9, **SETTINGS)
    assert min(contour_pvalues(kernel, 0.9)) > 1e-4


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_langevin_is_right_at_a_step_size_where_sgld_is_not(momentum):
    """The weighted mean of the energy at ε = 0.1: SGLD's variance in the narrow mode is off by 20%."""
    kernel = contour(langevin(0.1 * (1 - momentum), TEMPERATURE, momentum), PARTITION, **SETTINGS)
    assert contour_pvalues(kernel)[1] > 1e-4
    assert contour_pvalues(contour(sgld(0.1, TEMPERATURE), PARTITION, **SETTINGS))[1] < 1e-6


class Flipped(Contour):
    """The slope with the wrong sign: steeper, not flatter."""

    def _weigh(self, theta, energy):
        log_weight, slope = super()._weigh(theta, energy)
        return log_weight, -slope


class Unweighted(Contour):
    """Forgets the weights."""

    def move(self, inputs, state, energy, gradient):
        state, info = super().move(inputs, state, energy, gradient)
        return state, info._replace(log_weight=jnp.zeros_like(info.log_weight))


def test_a_flipped_slope_is_noticed():
    assert contour_pvalues(Flipped(SGLD(0.005, TEMPERATURE), PARTITION, **SETTINGS))[0] < 1e-6
    kernel = Flipped(SGHMC(0.0005, TEMPERATURE, 0.9), PARTITION, **SETTINGS)
    assert contour_pvalues(kernel, 0.9)[0] < 1e-6


def test_forgotten_weights_are_noticed():
    """In the weighted mean only: the chain itself is right."""
    p_law, p_mean = contour_pvalues(Unweighted(SGLD(0.005, TEMPERATURE), PARTITION, **SETTINGS))
    assert p_law > 1e-4
    assert p_mean < 1e-6


def test_the_naive_scheme_does_not_flatten():
    """The paper's step Ψ has slope 0: the chain samples the target, not the flattened density."""
    kernel = csgld(0.005, PARTITION, temperature=TEMPERATURE, scheme="step", **SETTINGS)
    assert contour_pvalues(kernel)[0] < 1e-6
