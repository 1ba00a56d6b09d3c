"""Langevin dynamics with a Metropolis test: its stationary law, at step sizes that are large."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.kernels.equilibrium import CHAINS, PARTITION, SETTINGS, TEMPERATURE, contour_pvalues, evolve

from contourmc import adjusted, contour
from contourmc.kernels.adjusted import Adjusted
from contourmc.kernels.dynamics import unflattened


def gaussian(x):
    return x**2 / 2


def gaussian_pvalue(kernel, steps=30):
    x = np.random.default_rng(2).normal(0, 0.3**0.5, CHAINS)
    last, _, acceptance, _ = evolve(kernel, gaussian, steps, jnp.asarray(x, jnp.float32))
    return stats.kstest(np.asarray(last), stats.norm(0, 0.3**0.5).cdf).pvalue, float(acceptance)


def test_a_gaussian_is_kept_at_a_large_step_size():
    """ε = 1.5, a leapfrog step of 1.7 where 2 is the limit of stability: much is refused, and the law stays."""
    p, acceptance = gaussian_pvalue(adjusted(1.5, 0.3))
    assert p > 1e-4
    assert acceptance < 0.8


class AcceptsAll(Adjusted):
    """Forgets the Metropolis test."""

    def move(self, inputs, state, energy, gradient, flatten=unflattened):
        certain = inputs._replace(log_uniform=jnp.full_like(inputs.log_uniform, -jnp.inf))
        return super().move(certain, state, energy, gradient, flatten)


class KeepsItsWay(Adjusted):
    """Does not turn the velocity round after a refusal."""

    def move(self, inputs, state, energy, gradient, flatten=unflattened):
        new, _ = super().move(inputs, state, energy, gradient, flatten)
        refused = new.accepted == state.accepted
        turned = inputs._replace(noise=inputs.noise + jnp.where(refused, 2 * self.momentum * state.velocity, 0.0))
        return super().move(turned, state, energy, gradient, flatten)


def test_a_broken_metropolis_test_is_noticed():
    """At ε = 1.5 leapfrog without it has variance 1/(1 − h²/4) = 4 times too large."""
    assert gaussian_pvalue(AcceptsAll(1.5, 0.3, 0.8))[0] < 1e-6


def test_a_velocity_that_is_not_turned_round_is_noticed():
    assert gaussian_pvalue(KeepsItsWay(1.7, 0.3, 0.8))[0] < 1e-6


def test_the_flattened_density_is_kept_at_a_large_step_size():
    """At ε = 0.4 SGLD would be unstable in the narrow mode, whose curvature over τ is 6."""
    p_law, p_mean, acceptance = contour_pvalues(contour(adjusted(0.4, TEMPERATURE), PARTITION, **SETTINGS))
    assert min(p_law, p_mean) > 1e-4
    assert acceptance < 0.9


class ForgetsTheWeights(Adjusted):
    """Follows the flattened gradient, but tests by the plain energy."""

    def move(self, inputs, state, energy, gradient, flatten=unflattened):
        def forgetful(energy):
            log_weight, multiplier = flatten(energy)
            return jnp.zeros_like(log_weight), multiplier

        new, info = super().move(inputs, state, energy, gradient, forgetful)
        return new, info._replace(log_weight=flatten(info.energy)[0])


def test_forgotten_weights_in_the_metropolis_test_are_noticed():
    assert contour_pvalues(contour(ForgetsTheWeights(0.4, TEMPERATURE, 0.8), PARTITION, **SETTINGS))[0] < 1e-6


# --- Walls and jumps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", [np.inf, np.nan])
def test_a_wall_is_never_crossed_and_the_truncated_gaussian_kept(beyond):
    """Where the energy is not finite nothing goes, and N(0, 1) cut off at 0.5 stays as it is.

    The gradient there is NaN too, as `where` makes it for a function that is not defined beyond.
    """

    def energy(x):
        return jnp.where(x > 0.5, beyond, 0.5 * x**2 + 0 * jnp.log(0.5 - x))

    x = stats.truncnorm.rvs(-np.inf, 0.5, size=CHAINS, random_state=4)
    kernel = adjusted(0.5)
    last, _, acceptance, largest = evolve(kernel, energy, 30, jnp.asarray(x, jnp.float32))
    assert largest <= 0.5  # all along all paths
    assert stats.kstest(np.asarray(last), stats.truncnorm(-np.inf, 0.5).cdf).pvalue > 1e-4
    assert 0.3 < acceptance < 0.95  # the wall was met


def test_a_jump_that_the_gradient_does_not_see_is_sampled_right():
    """U = x²/2, and 1 more for x > 0.3."""

    def energy(x):
        return 0.5 * x**2 + jnp.where(x > 0.3, 1.0, 0.0)

    lower, upper = stats.norm.cdf(0.3), stats.norm.sf(0.3) * np.exp(-1)

    def cdf(x):
        inside = stats.norm.cdf(np.minimum(x, 0.3)) + np.exp(-1) * (stats.norm.cdf(x) - stats.norm.cdf(0.3)) * (x > 0.3)
        return inside / (lower + upper)

    # starts from another law, N(0, 1): 100 steps of √(2·0.3) = 0.8 forget it many times over
    x = np.random.default_rng(6).normal(size=CHAINS)
    kernel = adjusted(0.3)
    last, *_ = evolve(kernel, energy, 100, jnp.asarray(x, jnp.float32))
    assert stats.kstest(np.asarray(last), cdf).pvalue > 1e-4
    assert stats.kstest(np.asarray(last), "norm").pvalue < 1e-6  # what a kernel blind to the jump would give
