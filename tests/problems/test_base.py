"""Distances to the truth, on draws whose distance is known."""

import numpy as np
import pytest

import contourmc as cm
from contourmc.problems import GaussianMixture, LabelSwitching, MultivariateMixture

MIXTURE = GaussianMixture()
WIDE = MultivariateMixture((0.2, 0.8), ((-9.0, 0.0, 0.0), (9.0, 0.0, 0.0)), (1.0, 1.0))


def test_weights_count_and_their_size_does_not(wrap):
    """Half of the draws in each mode, weighted 2 : 3; one scale for each chain."""
    draws = np.array([[-6.0, 4.0], [-5.0, 5.0]])
    log_weights = np.log([[0.4, 0.6], [0.4, 0.6]]) + np.array([[700.0], [-700.0]])
    assert MIXTURE.distance(wrap(draws, log_weights)) == pytest.approx(0, abs=1e-6)
    assert MIXTURE.distance(wrap(draws)) == pytest.approx(0.1, abs=1e-6)


def test_chains_that_err_in_opposite_ways_are_far_from_the_truth_one_by_one(wrap):
    draws = np.array([[-6.0] * 5, [4.0] * 5])
    np.testing.assert_allclose(MIXTURE.chain_distances(wrap(draws)), [0.6, 0.4], atol=1e-6)
    assert MIXTURE.distance(wrap(draws)) == pytest.approx(0.1, abs=1e-6)


def test_moment_error_is_that_of_the_worst_coordinate_in_standard_deviations(wrap):
    deviations = np.array([0.1, -0.3, 0.2]) * np.sqrt(WIDE.variance)
    draws = np.broadcast_to(WIDE.mean + deviations, (2, 4, 3))
    assert WIDE.moment_error(wrap(draws)) == pytest.approx(0.3)
    assert MIXTURE.moment_error(wrap(np.full((1, 3), 5.0))) == pytest.approx(1.0)


def test_the_distance_of_a_real_run():
    """SGLD stays where it starts."""
    run = cm.sample(MIXTURE.energy, init=MIXTURE.start, steps=500, kernel=cm.sgld(0.1), chains=2, burn_in=0)
    assert MIXTURE.distance(run) == pytest.approx(0.6, abs=1e-6)
    assert MIXTURE.moment_error(run) == pytest.approx(6 / 5, abs=0.4)  # ± 5 standard errors: 0.08 of 5


def test_samples_of_another_problem_are_turned_away(wrap):
    with pytest.raises(ValueError, match=r"shape \(3,\), not \(2,\)"):
        WIDE.distance(wrap(np.zeros((1, 4, 2))))


def test_no_draws_where_there_is_no_way_to_make_them():
    with pytest.raises(NotImplementedError, match="label-switching has no exact draws"):
        LabelSwitching().draw(3)


def test_names_and_settings_are_by_keyword():
    assert GaussianMixture((0.5, 0.5), (0.0, 1.0), (1.0, 2.0)).means == (0.0, 1.0)
    assert GaussianMixture(name="mine").name == "mine"
