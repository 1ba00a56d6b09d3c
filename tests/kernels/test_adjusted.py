"""Langevin dynamics with a Metropolis test: its step by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc import adjusted
from contourmc.kernels.adjusted import AdjustedInputs
from contourmc.kernels.scale import Factor


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

    def force(x):  # (h/2)√τ Lᵀ∇V, with V = U/τ
        return h / 2 * root * scale.T @ gradient_of_valley(*x) / temperature

    def energy(x):
        return x[0] ** 4 / 4 + x[1] ** 2 + 0.5 * (x[2] - x[0]) ** 2

    path = []
    v = noises[0]  # the first step only evaluates the start
    for noise, log_uniform in zip(noises[1:], log_uniforms[1:], strict=True):
        half = v - force(x)
        new = x + h * root * scale @ half
        arrived = half - force(new)
        rise = (energy(new) - energy(x)) / temperature + (arrived @ arrived - v @ v) / 2
        accepted = log_uniform < -rise
        x, v = (new, arrived) if accepted else (x, -v)
        v = beta * v + noise
        path.append((x, v, accepted))
    return path


WIDTHS = np.array([0.9, 1.3, 0.5])
FACTOR = np.array([[0.9, 0.1, 0.0], [0.3, 1.3, 0.2], [-0.1, 0.4, 0.5]])


@pytest.mark.parametrize(
    ("scale", "matrix"), [(None, np.eye(3)), (as_tree(WIDTHS), np.diag(WIDTHS)), (Factor(jnp.asarray(FACTOR)), FACTOR)]
)
def test_steps_are_those_of_the_formula(scale, matrix):
    """Four steps, the third of them refused, with a pytree, L ≠ 1 and τ ≠ 1. Numbers of order 1, in float32: 1e-5."""
    epsilon, temperature, beta = 0.15, 0.6, 0.7
    kernel = adjusted(epsilon, temperature, beta, scale)
    start = np.array([0.8, -0.5, 0.3])
    noises = np.random.default_rng(0).normal(0, (1 - beta**2) ** 0.5, (5, 3))
    log_uniforms = np.array([0.0, -5.0, -5.0, 5.0, -5.0])  # at 5, which no uniform number reaches, all is refused
    expected = reference_chain(start, matrix, epsilon, temperature, beta, noises, log_uniforms)
    assert [accepted for *_, accepted in expected] == [True, True, False, True]

    state = kernel.init(as_tree(start))
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


def test_replica_exchange_refuses_it():
    """Replica exchange swaps `position`, which is only a proposal here."""
    with pytest.raises(ValueError, match=r"^dynamics=.*proposal.*use langevin"):
        cm.replica_exchange(adjusted(0.3, 1.0), adjusted(0.3, 4.0))
