"""The jackknife: standard errors of functions of sums, by chains and by stretches of them."""

import numpy as np
import pytest

from contourmc.draws.jackknife import jackknife


def ratio(sums: np.ndarray) -> np.ndarray:
    return sums[0] / sums[1]


def error_of_mean(values: np.ndarray, counted: np.ndarray) -> tuple[float, float]:
    found = jackknife(ratio, (values, np.ones_like(values)), counted)
    return float(found.value), float(found.error)


def test_the_error_of_a_mean_is_the_larger_of_those_by_chains_and_by_stretches():
    """Both closed forms: the deviation of the groups' means, over the root of their number."""
    numbers = np.random.default_rng(0)
    for spread in (0.0, 3.0):  # chains that agree, and chains that do not
        values = numbers.normal(size=(6, 200)) + spread * numbers.normal(size=(6, 1))
        by_chain, by_stretch = values.mean(axis=1), values.reshape(60, 20).mean(axis=1)
        expected = max(by_chain.std(ddof=1) / 6**0.5, by_stretch.std(ddof=1) / 60**0.5)
        assert error_of_mean(values, np.ones(6, bool)) == pytest.approx((values.mean(), expected))


def test_few_chains_are_judged_by_their_stretches():
    values = np.random.default_rng(0).normal(size=(2, 300))
    expected = values.reshape(60, 10).mean(axis=1).std(ddof=1) / 60**0.5
    assert error_of_mean(values, np.ones(2, bool))[1] == pytest.approx(expected)


def test_chains_that_do_not_count_are_left_out():
    values = np.random.default_rng(0).normal(size=(5, 200))
    alone = error_of_mean(values[:4], np.ones(4, bool))
    values[4] = 1e6
    assert error_of_mean(values, np.array([True] * 4 + [False])) == pytest.approx(alone)


def test_nothing_remains_without_a_single_draw():
    assert np.isnan(error_of_mean(np.ones((1, 1)), np.ones(1, bool))[1])
