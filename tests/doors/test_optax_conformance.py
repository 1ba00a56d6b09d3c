"""The Optax door makes the steps of the engine, given the same noise."""

import jax
import numpy as np
import optax
import pytest
from tests.doors.scripted import CASES, SIZE, START, STEPS, Path, assert_same, energy, engine_path, kernel_of

import contourmc.optax as samplers
from contourmc.kernels.contour import Contour

pytestmark = pytest.mark.usefixtures("double_precision")


def optax_path(kernel) -> Path:
    """A training loop on the mean loss U/N."""
    tx = samplers.sampler(kernel, data_size=SIZE)

    def step(carry, _):
        x, state = carry
        loss, gradient = jax.value_and_grad(lambda x: energy(x) / SIZE)(x)
        updates, state = tx.update(gradient, state, x, value=loss)
        return (optax.apply_updates(x, updates), state), (x, state.info.log_weight)

    (_, state), (positions, log_weights) = jax.lax.scan(step, (START, tx.init(START)), length=STEPS)
    return Path(*map(np.asarray, (positions, log_weights, jax.nn.softmax(state.kernel.theta.levels))))


@pytest.mark.parametrize(("dynamics", "setting"), CASES)
def test_same_path(dynamics, setting):
    kernel = kernel_of(dynamics, setting)
    assert_same(optax_path(kernel), engine_path(kernel))


def test_one_sign_makes_another_path(monkeypatch):
    """A door that adds the increment with the wrong sign is found out."""
    kernel = kernel_of("csgld", "smooth")
    reference, increment = engine_path(kernel), Contour.increment

    def broken(*given):
        added, state, info = increment(*given)
        return -added, state, info

    monkeypatch.setattr(Contour, "increment", broken)
    with pytest.raises(AssertionError):
        assert_same(optax_path(kernel), reference)
