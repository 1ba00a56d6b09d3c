"""The shape of a basin from points and gradients: exact on a Gaussian, from points that have not crossed it."""

import numpy as np
import pytest

from contourmc.tuning.covariance import MOST_DENSE, measure

RANDOM = np.random.default_rng(0)
SIZE = 6


def rotated(size=SIZE, condition=1e4):
    axes = np.linalg.qr(RANDOM.normal(size=(size, size)))[0]
    return (axes * np.geomspace(1, condition, size)) @ axes.T


def walk(covariance, mean, walkers=8, points=20, length=0.1):
    """Short walks from places of their own, all of them much narrower than the Gaussian, and its gradients there."""
    size = len(mean)
    places = mean + RANDOM.normal(size=(walkers, 1, size))
    x = places + np.cumsum(length * RANDOM.normal(size=(walkers, points, size)), axis=1)
    return x, (x - mean) @ np.linalg.inv(covariance)


def test_a_gaussian_is_known_from_walks_that_have_not_crossed_it():
    """To the floor of 10⁻⁵ that keeps matrices invertible, in units in which the largest correlation is 1: 1%."""
    covariance, mean = rotated(), np.arange(6.0)
    shape = measure(*walk(covariance, mean))
    np.testing.assert_allclose(shape.covariance, covariance, atol=0.01 * np.abs(covariance).max())
    np.testing.assert_allclose(shape.factor @ shape.factor.T, shape.covariance, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(shape.mean, mean, atol=0.1)  # widths are 1 … 100
    assert shape.log_volume == pytest.approx(np.linalg.slogdet(covariance)[1] / 2, abs=0.1)
    assert shape.condition > 1000


def test_independent_coordinates_need_no_covariance():
    widths = np.geomspace(1e-4, 1e4, SIZE)
    x = widths * RANDOM.normal(size=(8, 200, SIZE))
    shape = measure(x, x / widths**2)
    assert shape.condition < 1.5
    np.testing.assert_allclose(shape.widths, widths, rtol=1e-6)


@pytest.mark.parametrize(("size", "walkers", "points"), [(40, 3, 20), (MOST_DENSE + 1, 40, 20), (3, 5, 1)])
def test_with_few_points_or_many_coordinates_only_widths_are_known(size, walkers, points):
    shape = measure(*walk(np.eye(size), np.zeros(size), walkers, points))
    assert shape.covariance is None
    np.testing.assert_allclose(shape.factor, np.diag(shape.widths))
    np.testing.assert_allclose(shape.widths, 1, rtol=1e-6)


def test_what_did_not_move_has_no_shape():
    x = RANDOM.normal(size=(4, 5, 3))
    x[..., 1] = 0
    assert measure(x, x) is None
    assert measure(x[:1, :2], x[:1, :2]) is None
    assert measure(np.full((4, 5, 3), np.nan), x) is None
