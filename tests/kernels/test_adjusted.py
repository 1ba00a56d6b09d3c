"""Langevin dynamics with a Metropolis test: its step by hand, and its stationary law, at step sizes that are large.

The harness is that of test_invariance.py: 20,000 chains start in exact equilibrium, make some steps, and their
law must not have moved (p > 1e-4 for a right kernel, p < 1e-6 for one that is wrong on purpose).
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import contourmc as cm
from contourmc import Partition, adjusted, contour
from contourmc.flattening.theta import interpolate
from contourmc.flattening.theta import log_theta as as_log_theta
from contourmc.kernels.adjusted import Adjusted, AdjustedInputs
from contourmc.kernels.contour import Contour
from contourmc.kernels.dynamics import unflattened

CHAINS = 20_000


# --- The step, by hand -------------------------------------------------------------------------------


def valley(x):
    """An energy of a pytree that is neither quadratic nor separable."""
    a, b = x["a"], x["b"]
    return a**4 / 4 + b[0] ** 2 + 0.5 * (b[1] - a) ** 2


def gradient_of_valley(a, b0, b1):
    return np.array([a**3 + a - b1, 2 * b0, b1 - a])


def as_tree(vector):
    return {"a": jnp.float32(vector[0]), "b": jnp.asarray(vector[1:], jnp.float32)}


def as_vector(tree):
    return np.array([tree["a"], *tree["b"]], float)


def reference_chain(x, scale, epsilon, temperature, beta, noises, log_uniforms):
    """The formula of the docstring in float64, from v = 0 half a step before x: position, velocity, acceptance."""
    h, root = np.sqrt(2 * epsilon), np.sqrt(temperature)

    def force(x):  # (h/2)σ√τ ∇V, with V = U/τ
        return h / 2 * scale * root * gradient_of_valley(*x) / temperature

    def energy(x):
        return x[0] ** 4 / 4 + x[1] ** 2 + 0.5 * (x[2] - x[0]) ** 2

    path = []
    v = noises[0]  # the first step only evaluates the start
    for noise, log_uniform in zip(noises[1:], log_uniforms[1:], strict=True):
        half = v - force(x)
        new = x + h * root * scale * half
        arrived = half - force(new)
        rise = (energy(new) - energy(x)) / temperature + (arrived @ arrived - v @ v) / 2
        accepted = log_uniform < -rise
        x, v = (new, arrived) if accepted else (x, -v)
        v = beta * v + noise
        path.append((x, v, accepted))
    return path


@pytest.mark.parametrize("scaled", [False, True])
def test_steps_are_those_of_the_formula(scaled):
    """Four steps, the third of them refused, with a pytree, σ ≠ 1 and τ ≠ 1. Numbers of order 1, in float32: 1e-5."""
    epsilon, temperature, beta = 0.15, 0.6, 0.7
    kernel = adjusted(epsilon, temperature, beta)
    start, scale = np.array([0.8, -0.5, 0.3]), np.array([0.9, 1.3, 0.5]) if scaled else np.ones(3)
    noises = np.random.default_rng(0).normal(0, (1 - beta**2) ** 0.5, (5, 3))
    log_uniforms = np.array([0.0, -5.0, -5.0, 5.0, -5.0])  # at 5, which no uniform number reaches, all is refused
    expected = reference_chain(start, scale, epsilon, temperature, beta, noises, log_uniforms)
    assert [accepted for *_, accepted in expected] == [True, True, False, True]

    state = kernel.init(as_tree(start))
    if scaled:
        state = state._replace(scale=as_tree(scale))
    for number, (noise, log_uniform) in enumerate(zip(noises, log_uniforms, strict=True)):
        assert as_vector(kernel.draw(state)) == pytest.approx(
            start if number < 2 else expected[number - 2][0], abs=1e-5
        )
        inputs = AdjustedInputs(
            as_tree(noise), jnp.float32(log_uniform), jnp.float32(epsilon), jnp.float32(temperature)
        )
        energy, gradient = jax.value_and_grad(valley)(state.position)
        here = kernel.draw(state)
        state, info = kernel.move(inputs, state, energy, gradient)
        assert float(info.energy) == pytest.approx(float(valley(here)), rel=1e-6)  # of x_k, not of the proposal
        assert info.multiplier == 1
        assert info.log_weight == 0
        if number:
            position, velocity, _ = expected[number - 1]
            np.testing.assert_allclose(as_vector(kernel.draw(state)), position, atol=1e-5)
            np.testing.assert_allclose(as_vector(state.velocity), velocity, atol=1e-5)
    assert state.accepted == 4  # the start counts
    assert state.steps == 5


def test_a_refused_step_turns_the_velocity_round():
    """Without noise and friction a chain that is refused goes back where it came from, to rounding."""
    kernel = adjusted(0.1, 1.0, 0.5)
    state = kernel.init(as_tree([0.8, -0.5, 0.3]))

    def move(state, noise, log_uniform):
        inputs = AdjustedInputs(noise, jnp.float32(log_uniform), jnp.float32(0.1), jnp.float32(1.0))
        return kernel.move(inputs, state, *jax.value_and_grad(valley)(state.position))[0]

    zero = as_tree([0.0, 0.0, 0.0])
    state = move(state, as_tree([0.3, -1.0, 0.5]), 0.0)
    before = state
    state = move(state, jax.tree.map(lambda v: 0.5 * v, jax.tree.map(jnp.negative, state.velocity)), 5.0)
    np.testing.assert_allclose(as_vector(state.velocity), -as_vector(before.velocity), atol=1e-6)
    np.testing.assert_array_equal(as_vector(state.here), as_vector(before.here))
    assert state.accepted == before.accepted
    state = move(state, zero, -50.0)
    assert state.accepted == before.accepted + 1


def test_noise_of_the_velocity_has_the_variance_that_friction_takes():
    """√(1−β²)·w in every coordinate: 40,000 numbers, whose variance is known to 0.7%; 4 of that."""
    inputs = adjusted(0.1, 3.0, 0.6).prepare(jax.random.key(0), jnp.zeros(4), jnp.arange(1, 10_001))
    assert float(jnp.var(inputs.noise)) == pytest.approx(1 - 0.6**2, rel=0.028)
    assert float(jnp.mean(jnp.exp(inputs.log_uniform))) == pytest.approx(0.5, abs=4 * 12**-0.5 / 100)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(momentum=1.0), "momentum"),
        (dict(momentum=-0.1), "momentum"),
        (dict(temperature=0.0), "temperature"),
        (dict(temperature=-1.0), "temperature"),
        (dict(step_size=0.0), "step_size"),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        adjusted(**({"step_size": 0.1} | settings))


# --- Its stationary law ------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
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
            if isinstance(kernel, Contour):
                own = inputs._replace(dynamics=inputs.dynamics._replace(noise=noise))
            else:
                own = inputs._replace(noise=noise)
            return kernel.move(own, state, value, gradient)[0]

        start = begin(jax.random.normal(key, x.shape) - dynamics(begin(jnp.zeros_like(x))).velocity)

        def body(carry, key):
            state, _ = carry
            new, info = kernel.step(key, state, *jax.value_and_grad(energy)(state.position))
            return (new, info.log_weight), kernel.draw(state)

        (state, log_weight), path = jax.lax.scan(body, (start, jnp.float32(0.0)), jax.random.split(key, steps))
        farthest = jnp.max(jnp.where(jnp.isnan(path), jnp.inf, path))
        return path[-1], log_weight, (dynamics(state).accepted - 1) / steps, farthest

    def dynamics(state):
        return state.dynamics if isinstance(kernel, Contour) else state

    last, log_weights, acceptance, farthest = jax.vmap(chain)(jax.random.split(jax.random.key(1), CHAINS), positions)
    return last, log_weights, jnp.mean(acceptance), jnp.max(farthest)


def gaussian(x):
    return x**2 / 2


def gaussian_pvalue(kernel, steps=30):
    x = np.random.default_rng(2).normal(0, 0.3**0.5, CHAINS)
    last, _, acceptance, _ = evolve(kernel, gaussian, steps, jnp.asarray(x, jnp.float32))
    return stats.kstest(np.asarray(last), "norm", (0, 0.3**0.5)).pvalue, float(acceptance)


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


# --- Replica exchange --------------------------------------------------------------------------------


def test_replica_exchange_refuses_it():
    """Replica exchange swaps `position`, which is only a proposal here."""
    with pytest.raises(ValueError, match=r"^dynamics=.*proposal.*use langevin"):
        cm.replica_exchange(adjusted(0.3, 1.0), adjusted(0.3, 4.0))
