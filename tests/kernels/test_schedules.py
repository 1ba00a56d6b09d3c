"""Schedules against their closed formulas; k counts from 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc import CyclicCosine, ExponentialDecay, Polynomial
from contourmc.kernels.schedules import check_schedule, evaluate

STEPS = np.array([1, 2, 9, 10, 11, 100, 12_345, 1_000_000, 2_000_000_000])


def values(schedule, steps=STEPS):
    return np.asarray(evaluate(schedule, jnp.asarray(steps)))


def test_polynomial():
    expected = 10 / (STEPS**0.75 + 1000)
    np.testing.assert_allclose(values(Polynomial(10, 0.75, 1000)), expected, rtol=1e-5)


def test_polynomial_is_capped():
    expected = np.minimum(0.1, 1 / STEPS**0.6)
    np.testing.assert_allclose(values(Polynomial(1, 0.6, cap=0.1)), expected, rtol=1e-5)


def test_exponential_decay():
    """Constant for `begin` steps; then a staircase with a factor after every 10 steps."""
    steps = np.array([1, 50, 100, 101, 110, 111, 120, 121, 400])
    expected = 2.0 * 0.5 ** (np.maximum(steps - 101, 0) // 10)
    np.testing.assert_allclose(values(ExponentialDecay(2, 0.5, 10, begin=100), steps), expected, rtol=1e-5)


def test_cyclic_cosine():
    """Starts at the value, ends just above 0, and starts again: steps 1, 9 and 17 of a period of 8."""
    steps = np.arange(1, 25)
    expected = 0.3 / 2 * (1 + np.cos(np.pi * ((steps - 1) % 8) / 8))
    found = values(CyclicCosine(0.3, 8), steps)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(found[[0, 8, 16]], 0.3, rtol=1e-6)
    assert np.all(found > 0)
    np.testing.assert_array_equal(found[:8], found[8:16])


def test_a_cycle_of_one_step_is_constant():
    np.testing.assert_allclose(values(CyclicCosine(0.3, 1), np.arange(1, 5)), 0.3, rtol=1e-6)


def test_numbers_and_functions_are_schedules():
    np.testing.assert_array_equal(values(0.25), np.full(len(STEPS), 0.25))
    np.testing.assert_allclose(values(lambda k: 1 / k, np.arange(1, 5)), [1, 1 / 2, 1 / 3, 1 / 4], rtol=1e-6)


@pytest.mark.parametrize("schedule", [Polynomial(1, 0.6, 100), ExponentialDecay(1, 0.9, 5, 3), CyclicCosine(1, 7)])
def test_schedules_can_be_traced(schedule):
    steps = jnp.arange(1, 30)
    compiled = jax.jit(lambda steps: evaluate(schedule, steps))(steps)
    assert compiled.dtype == jnp.float32
    np.testing.assert_allclose(compiled, evaluate(schedule, steps), rtol=1e-6)
    one_by_one = jax.vmap(schedule)(steps)
    np.testing.assert_allclose(compiled, one_by_one, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "settings", "others"),
    [
        (Polynomial, (1.0, 0.6, 100.0), (1.0, 0.6, 101.0)),
        (ExponentialDecay, (1.0, 0.5, 10, 5), (1.0, 0.5, 10, 6)),
        (CyclicCosine, (0.1, 50), (0.1, 51)),
    ],
)
def test_equal_settings_are_equal_objects(kind, settings, others):
    """The compiled loop is cached by them."""
    assert kind(*settings) == kind(*settings)
    assert hash(kind(*settings)) == hash(kind(*settings))
    assert kind(*settings) != kind(*others)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("kind", "good", "argument", "values"),
    [
        (Polynomial, {"scale": 1, "power": 1}, "scale", [0, -1, float("nan"), "a"]),
        (Polynomial, {"scale": 1, "power": 1}, "power", [-0.1, float("inf"), None]),
        (Polynomial, {"scale": 1, "power": 1}, "offset", [-1, float("nan")]),
        (Polynomial, {"scale": 1, "power": 1}, "cap", [0, -1, float("nan")]),
        (ExponentialDecay, {"value": 1, "factor": 1, "every": 1}, "value", [-1, float("nan"), "a"]),
        (ExponentialDecay, {"value": 1, "factor": 1, "every": 1}, "factor", [0, -1, float("inf")]),
        (ExponentialDecay, {"value": 1, "factor": 1, "every": 1}, "every", [0, 1.5, "a"]),
        (ExponentialDecay, {"value": 1, "factor": 1, "every": 1}, "begin", [-1, 0.5]),
        (CyclicCosine, {"value": 1, "period": 5}, "value", [0, -1, float("nan")]),
        (CyclicCosine, {"value": 1, "period": 5}, "period", [0, -5, 2.5]),
    ],
)
def test_bad_input_is_named(kind, good, argument, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{argument}="):
            kind(**good | {argument: value})


def test_a_schedule_is_checked_at_its_first_step():
    check_schedule("step_size", lambda k: 0.1 / k, "")
    check_schedule("temperature", lambda k: 0.0 * k, "", positive=False)
    for bad in (lambda k: 1.0 - k, lambda k: 0.1 / (k - 1), lambda k: -0.1 / k):
        with pytest.raises(ValueError, match="step_size at step 1"):
            check_schedule("step_size", bad, "")
