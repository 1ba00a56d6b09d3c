"""Quadrature on grids against a Gaussian."""

import numpy as np
import pytest

from contourmc.problems.quadrature import draw_from_grid, midpoints, moments, normalise


def test_midpoints_lie_in_the_middle_of_equal_cells():
    np.testing.assert_allclose(midpoints(-1, 1, 4), [-0.75, -0.25, 0.25, 0.75])


def test_moments_of_a_gaussian():
    line = midpoints(-9, 11, 200)
    mean, variance = moments(line[:, None], normalise(0.5 * ((line - 1) / 0.8) ** 2 + 1e4))
    assert mean[0] == pytest.approx(1)
    assert variance[0] == pytest.approx(0.64)


def test_draws_fall_evenly_into_cells_by_their_probability():
    """Two axes of unlike cells; 5 standard errors of 100,000 draws are at most 0.008."""
    probability = np.array([[0.1, 0.2, 0.3], [0.0, 0.4, 0.0]])
    axes = (np.array([0.0, 2.0]), np.array([10.0, 11.0, 12.0]))
    draws = draw_from_grid(axes, probability, 100_000, np.random.default_rng(0))
    rows, columns = np.rint(draws[:, 0] / 2).astype(int), np.rint(draws[:, 1]).astype(int) - 10
    found = np.bincount(3 * rows + columns, minlength=6) / 100_000
    np.testing.assert_allclose(found, probability.ravel(), atol=0.008)
    offsets = draws - np.stack([2.0 * rows, 10.0 + columns], axis=-1)
    np.testing.assert_allclose(offsets.var(axis=0), [4 / 12, 1 / 12], rtol=0.02)
