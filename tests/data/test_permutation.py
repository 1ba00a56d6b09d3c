"""Every epoch is a permutation, and all orders are equally probable."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from contourmc.data.permutation import shuffled


def orders(size, places, count, seed=0):
    keys = jax.random.split(jax.random.key(seed), count)
    return np.asarray(jax.jit(jax.vmap(lambda key: shuffled(key, places, size)))(keys))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 17, 277, 50_000])
def test_it_is_a_permutation(size):
    order = orders(size, jnp.arange(size), 2)
    np.testing.assert_array_equal(np.sort(order, axis=1), [np.arange(size)] * 2)
    if size > 16:
        assert not np.array_equal(order[0], order[1])


def test_an_entry_does_not_depend_on_which_others_are_asked_for():
    whole = orders(277, jnp.arange(277), 1)[0]
    np.testing.assert_array_equal(orders(277, jnp.array([40, 3, 276]), 1)[0], whole[[40, 3, 276]])


def test_all_orders_of_four_are_equally_probable():
    found = orders(4, jnp.arange(4), 20_000) @ 4 ** np.arange(4)
    counts = np.unique(found, return_counts=True)[1]
    assert len(counts) == math.factorial(4)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("size", [50, 277])
def test_places_and_pairs_of_places_are_uniform(size):
    """100,000 orders; with 2 rounds of the cipher instead of 6 the pairs fail with p < 1e-9."""
    found = orders(size, jnp.array([0, 1, size - 1]), 100_000, seed=1)
    for place in found.T:
        assert stats.chisquare(np.bincount(place, minlength=size)).pvalue > 1e-4
    for i, j in ((0, 1), (0, 2), (1, 2)):
        apart = np.bincount((found[:, i] - found[:, j]) % size, minlength=size)
        assert apart[0] == 0
        assert stats.chisquare(apart[1:]).pvalue > 1e-4
