"""Starts all over a box."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm


def test_starts_are_spread_over_the_box():
    box = cm.Box({"a": -3.0, "b": jnp.array([0.0, 10.0])}, {"a": 3.0, "b": jnp.array([1.0, 20.0])})
    starts = jax.vmap(box)(jax.random.split(jax.random.key(0), 2000))
    for values, low, high in ((starts["a"], -3, 3), (starts["b"][:, 0], 0, 1), (starts["b"][:, 1], 10, 20)):
        assert low <= values.min() < values.max() <= high
        # The mean of 2,000 uniform numbers, to five standard errors.
        assert np.mean(values) == pytest.approx((low + high) / 2, abs=5 * (high - low) / np.sqrt(12 * 2000))


def test_chains_start_in_it():
    run = cm.sample(lambda x: jnp.sum(x**2) / 2, init=cm.Box(-np.ones(2), np.ones(2)), steps=20, kernel=cm.sgld(1e-9))
    assert len(np.unique(run.draws[:, 0, 0])) == 4
    assert np.all(np.abs(run.draws) <= 1.01)


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 0.0), (0.0, [1.0]), (np.zeros(2), np.ones(3)), ([0.0, 1.0], [1.0, 0.5])]
)
def test_corners_that_do_not_fit_are_named(low, high):
    with pytest.raises(ValueError, match=r"^high=.*low below"):
        cm.Box(low, high)
