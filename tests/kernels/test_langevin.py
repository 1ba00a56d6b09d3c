"""Langevin dynamics of second order: its formula. (test_invariance shows how much less biased it is than SGLD.)"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc import Partition, contour, langevin, sample, sgld


def test_a_step_is_the_formula():
    """u = v − 2ε∇U, v ← βu + √(2(1−β²)τε)·w, x ← x + (u + v)/2, with the w of SGLD for the same key."""
    key, zero = jax.random.key(4), jnp.float32(0.0)
    still = sgld(0.5)  # √(2·0.5) = 1: it moves by w alone where the gradient is 0
    w = still.step(key, still.init(jnp.zeros(3)), zero, jnp.zeros(3))[0].position
    kernel = langevin(0.1, temperature=2.0, momentum=0.75)
    x, v, gradient = jnp.array([1.0, 2.0, 3.0]), jnp.array([-0.1, 0.0, 0.4]), jnp.array([5.0, -1.0, 0.0])
    state, info = kernel.step(key, kernel.init(x)._replace(velocity=v), zero, gradient)
    kicked = v - 0.2 * gradient
    velocity = 0.75 * kicked + (2 * (1 - 0.75**2) * 2.0 * 0.1) ** 0.5 * w
    np.testing.assert_allclose(state.velocity, velocity, rtol=1e-5)
    np.testing.assert_allclose(state.position, x + (kicked + velocity) / 2, rtol=1e-5)
    assert (info.energy, info.bin, info.multiplier, info.log_weight) == (0, 0, 1, 0)


def test_without_momentum_the_noise_of_sgld_is_spread_over_two_steps():
    """x_{k+1} = x_k − ε∇U + √(2τε)(w_{k−1} + w_k)/2, to rounding."""
    kernel, plain = langevin(0.05), sgld(0.05)
    x = jnp.linspace(-1.0, 2.0, 6)
    state, before = kernel.init(x), jnp.zeros(6)
    for key in jax.random.split(jax.random.key(0), 20):
        still = plain.step(key, plain.init(jnp.zeros(6)), jnp.float32(0.0), jnp.zeros(6))[0].position
        x = x - 0.05 * jnp.sin(x) + (before + still) / 2
        state, _ = kernel.step(key, state, jnp.float32(0.0), jnp.sin(state.position))
        np.testing.assert_allclose(state.position, x, rtol=1e-5, atol=1e-5)
        before = still


def test_temperature_0_descends():
    """Without noise it is gradient descent with momentum: to the minimum, to rounding."""
    run = sample(
        lambda x: jnp.sum((x - 3) ** 2), init=jnp.zeros(2), steps=300, kernel=langevin(0.1, 0.0, 0.5), chains=1
    )
    np.testing.assert_allclose(run.draws[0, -1], 3.0, atol=1e-5)


def test_contour_takes_it():
    kernel = contour(langevin(0.1), Partition(1.5, 1.0, 50))
    assert kernel == contour(langevin(0.1, 1.0, 0.0), Partition(1.5, 1.0, 50))


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(("argument", "value"), [("momentum", 1.0), ("momentum", -0.1), ("step_size", 0.0)])
def test_bad_input_is_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument}="):
        langevin(**{"step_size": 0.1} | {argument: value})
