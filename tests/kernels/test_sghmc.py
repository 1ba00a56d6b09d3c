"""SGHMC: momentum SGD at temperature 0, SGLD at momentum 0."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from contourmc import momentum_sgd, sghmc, sgld

POSITION = jnp.linspace(-1.0, 2.0, 6)


def energy(x):
    """Coupled and not quadratic, so that an error anywhere spreads everywhere."""
    return jnp.sum(jnp.cos(3 * x)) * x[0] + x[0] ** 2


value_and_gradient = jax.jit(jax.value_and_grad(energy))


def path(kernel, steps, compiled=True):
    step = jax.jit(kernel.step) if compiled else kernel.step
    state, positions = kernel.init(POSITION), []
    for key in jax.random.split(jax.random.key(0), steps):
        state, _ = step(key, state, *value_and_gradient(state.position))
        positions.append(state.position)
    return positions


def optax_path(optimiser, steps):
    position, state, positions = POSITION, optimiser.init(POSITION), []
    for _ in range(steps):
        updates, state = optimiser.update(value_and_gradient(position)[1], state)
        position = optax.apply_updates(position, updates)
        positions.append(position)
    return positions


def test_temperature_0_is_momentum_sgd_to_the_bit():
    """optax keeps v/(−ε). For ε a power of 2 that factor commutes with rounding: equal to the bit.

    Operation by operation, not compiled: the compiler may round β·v − ε·g once or twice as it likes.
    """
    found = path(momentum_sgd(2.0**-7, momentum=0.9), 30, compiled=False)
    jax.tree.map(np.testing.assert_array_equal, found, optax_path(optax.sgd(2.0**-7, momentum=0.9), 30))


def test_temperature_0_is_momentum_sgd_for_any_step_size():
    """To rounding (6e-8 a step, which the dynamics stretches a little)."""
    found = path(sghmc(0.01, temperature=0.0, momentum=0.8), 30)
    expected = optax_path(optax.sgd(0.01, momentum=0.8), 30)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6), found, expected)


def test_without_momentum_it_is_sgld():
    """The same noise, and the same move up to the order of two additions."""
    found = path(sghmc(0.05, momentum=0.0), 20)
    expected = path(sgld(0.05), 20)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), found, expected)


def test_a_step_is_the_formula():
    """v ← βv − ε∇U + √(2(1−β)τε)·w, x ← x + v, with the w of SGLD for the same key."""
    key, zero = jax.random.key(4), jnp.float32(0.0)
    still = sgld(0.5)  # √(2·0.5) = 1: it moves by w alone where the gradient is 0
    w = still.step(key, still.init(jnp.zeros(3)), zero, jnp.zeros(3))[0].position
    kernel = sghmc(0.1, temperature=2.0, momentum=0.75)
    x, v, gradient = jnp.array([1.0, 2.0, 3.0]), jnp.array([-0.1, 0.0, 0.4]), jnp.array([5.0, -1.0, 0.0])
    state, info = kernel.step(key, kernel.init(x)._replace(velocity=v), zero, gradient)
    velocity = 0.75 * v - 0.1 * gradient + (2 * 0.25 * 2.0 * 0.1) ** 0.5 * w
    np.testing.assert_allclose(state.velocity, velocity, rtol=1e-5)
    np.testing.assert_allclose(state.position, x + velocity, rtol=1e-5)
    assert state.steps == 1
    assert (info.energy, info.bin, info.multiplier, info.log_weight) == (0, 0, 1, 0)


def test_it_starts_at_rest():
    position = {"half": jnp.ones(3, jnp.bfloat16), "nested": [jnp.ones((2, 1)), jnp.float32(1)]}
    velocity = sghmc(0.1).init(position).velocity
    jax.tree.map(np.testing.assert_array_equal, velocity, jax.tree.map(jnp.zeros_like, position))
    assert velocity["half"].dtype == jnp.bfloat16


def test_step_is_pure():
    kernel = sghmc(0.1)
    arguments = jax.random.key(1), kernel.init(POSITION), *value_and_gradient(POSITION)
    jax.tree.map(np.testing.assert_array_equal, kernel.step(*arguments), kernel.step(*arguments))
    jax.tree.map(np.testing.assert_array_equal, arguments[1], kernel.init(POSITION))


def test_equal_settings_are_equal_objects():
    assert sghmc(0.1) == sghmc(0.1, 1.0, 0.9)
    assert hash(sghmc(0.1)) == hash(sghmc(0.1, 1.0, 0.9))
    assert momentum_sgd(0.1) == sghmc(0.1, 0.0) != sghmc(0.1)
    assert sghmc(0.1, momentum=0.0) != sgld(0.1)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("momentum", 1.0), ("momentum", -0.1), ("momentum", 1.5), ("momentum", float("nan")),
        ("step_size", 0.0), ("step_size", -1.0), ("temperature", -1.0),
    ],
)  # fmt: skip
def test_bad_input_is_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument}="):
        sghmc(**{"step_size": 0.1} | {argument: value})
