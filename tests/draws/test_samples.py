"""Weighted draws: estimates against the known truth of the mixture, and files that come back as they were."""

from dataclasses import replace
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.problems import GaussianMixture

MIXTURE = GaussianMixture()
PARTITION = cm.Partition(low=1.5, width=1.0, bins=50)


@pytest.fixture(scope="module")
def run():
    kernel = cm.csgld(0.1, PARTITION, zeta=0.75, scheme="right")
    return cm.sample(MIXTURE.energy, init=0.0, steps=400_000, kernel=kernel, chains=8, thin=20)


def test_estimates_agree_with_the_truth(run):
    """P(x < 0) has a standard error of about 0.01 here (0.03 a chain): five of them."""
    assert run.expectation(lambda x: x < 0) == pytest.approx(0.4, abs=0.05)
    assert run.expectation(lambda x: x < 0, by_chain=True).shape == (8,)
    assert run.mean() == pytest.approx(0, abs=0.5)
    # within a mode the variance is 1/(1 − ε/2), between the modes 24
    assert run.variance() == pytest.approx(25, rel=0.05)
    low, high = run.quantile([0.2, 0.7])
    assert low == pytest.approx(-6, abs=0.3)
    assert high == pytest.approx(4, abs=0.6)


def test_means_of_every_step_and_of_the_kept_draws_agree(run):
    kept = run.expectation(lambda x: x, by_chain=True)
    np.testing.assert_allclose(run.mean(by_chain=True), kept, atol=0.15)


def test_weights_sum_to_one_and_chains_count_alike(run):
    np.testing.assert_allclose(run.weights.sum(axis=1), 1 / 8)


def test_resampled_draws_have_equal_weights(run):
    """Independent resampling adds an error of √(0.24/10,000) = 0.005, systematic less: three of them."""
    draws = run.resample(10_000, seed=1)
    assert np.mean(draws < 0) == pytest.approx(run.expectation(lambda x: x < 0), abs=0.015)
    assert run.resample(5).shape == (5,)


def test_standard_errors_are_of_the_size_of_the_spread(run):
    chains, batches = run.standard_error("chains"), run.standard_error("batches")
    assert 0.2 < batches / chains < 5  # eight chains know their spread to a quarter
    assert run.standard_error() == chains


def test_ess_is_that_of_the_mean(run):
    expected = run.variance() / run.standard_error("chains") ** 2
    assert 0.2 < run.ess() / expected < 5


def test_histogram_integrates_to_one(run):
    heights, edges = run.histogram(bins=30)
    assert np.sum(heights * np.diff(edges)) == pytest.approx(1)
    with pytest.raises(ValueError, match="function"):
        run.histogram(lambda x: jnp.stack([x, x]))


def test_files_come_back_as_they_were(run, tmp_path):
    back = cm.Samples.load(run.save(tmp_path / "folder" / "run.nc"))
    for name in ("draws", "energies", "log_weights", "multipliers", "steps", "theta"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name))
    assert back.settings == run.settings
    assert back.mean() == run.mean()
    assert str(back.diagnose()) == str(run.diagnose())


@pytest.mark.usefixtures("untyped")
def test_bad_questions(run):
    for question, words in (
        (lambda: run.quantile(1.5), "probabilities"),
        (lambda: run.resample(0), "count"),
        (lambda: run.standard_error("weeks"), "by"),
    ):
        with pytest.raises(ValueError, match=words):
            question()


# --- One θ for all chains: draws of all of them count by their weights --------------------------------

FIXED = cm.Partition(low=1.5, width=1.0, bins=12)


@pytest.fixture(scope="module")
def fixed():
    """θ fixed and far from flat, in 5 chains that start in one mode or the other; every step is kept."""
    theta = np.exp(-0.6 * np.arange(12)) / np.sum(np.exp(-0.6 * np.arange(12)))
    kernel = cm.ksgld(0.1, FIXED, theta.tolist())
    starts = jnp.array([-6.0, 4.0, 4.0, -6.0, 4.0])
    settings = dict(steps=3000, kernel=kernel, chains=5, thin=1, burn_in=0)
    return cm.sample(MIXTURE.energy, init=starts, per_chain_init=True, **settings)


def brute_force(run):
    """Weights that sum to 1 over all draws of all chains, in float64."""
    weights = np.exp(np.asarray(run.log_weights, float))
    return weights / weights.sum()


def test_with_comparable_weights_weights_are_comparable_across_chains(fixed):
    assert fixed.comparable_weights
    np.testing.assert_allclose(fixed.weights, brute_force(fixed), rtol=1e-9)
    assert fixed.weights.sum() == pytest.approx(1)
    assert np.ptp(fixed.weights.sum(axis=1)) > 0.01  # chains do not count alike


def test_only_a_theta_that_stands_still_is_one(fixed):
    theta = [1 / 12] * 12
    for kernel, one in (
        (cm.csgld(0.1, FIXED), False),
        (cm.csgld(0.1, FIXED, shared=True), False),
        (cm.csgld(0.1, FIXED, omega=None), True),
        (cm.ksgld(0.1, FIXED, theta), True),
        (cm.sgld(0.1), False),
        (cm.replica_exchange(cm.sgld(0.1), cm.sgld(0.1, 3.0)), False),
    ):
        assert replace(fixed, flattening=kernel.flattening).comparable_weights == one


def test_estimates_with_comparable_weights_are_those_of_one_long_list_of_draws(fixed):
    """All steps are kept here, so that sums along the way (in float32) and over the draws must agree: to 1e-4."""
    weights, x = brute_force(fixed), np.asarray(fixed.draws, float)
    mean = np.sum(weights * x)
    assert fixed.mean() == pytest.approx(mean, abs=1e-3)
    assert fixed.variance() == pytest.approx(np.sum(weights * (x - mean) ** 2), rel=1e-3)
    assert fixed.expectation(lambda x: jnp.sin(x)) == pytest.approx(np.sum(weights * np.sin(x)), abs=1e-5)
    by_chain = np.sum(weights * x, axis=1) / weights.sum(axis=1)
    np.testing.assert_allclose(fixed.mean(by_chain=True), by_chain, atol=1e-3)
    assert abs(by_chain.mean() - mean) > 0.05  # which a mean of chains would not have given


def test_standard_errors_with_comparable_weights(fixed):
    """By chains: √(C/(C−1) Σ s_c²(m_c − m)²), with s_c the chains' shares. By batches: those of all chains alike."""
    weights, x = brute_force(fixed), np.asarray(fixed.draws, float)
    shares = weights.sum(axis=1)
    means = np.sum(weights * x, axis=1) / shares
    expected = np.sqrt(5 / 4 * np.sum(shares**2 * (means - shares @ means) ** 2))
    assert fixed.standard_error("chains") == pytest.approx(expected, rel=1e-3)
    assert fixed.standard_error() == fixed.standard_error("chains")

    edges = np.concatenate([[0], fixed.trajectory.steps])
    parts = [slice(a, b) for a, b in pairwise(edges)]
    stretch_weights = np.array([[weights[c, part].sum() for part in parts] for c in range(5)]).ravel()
    stretch_means = np.array(
        [[np.average(x[c, part], weights=weights[c, part]) for part in parts] for c in range(5)]
    ).ravel()
    count = stretch_weights.size
    deviations = stretch_weights * (stretch_means - stretch_weights @ stretch_means)
    expected = np.sqrt(count / (count - 1) * np.sum(deviations**2))
    assert fixed.standard_error("batches") == pytest.approx(expected, rel=1e-3)


def test_the_standard_error_with_comparable_weights_is_that_of_independent_repetitions(fixed):
    """Means of 40 synthetic runs of 5 chains with unequal weights scatter as their standard errors say, to 50%."""
    rng = np.random.default_rng(0)
    shape = fixed.trajectory.log_weights.shape
    means, errors = [], []
    for _ in range(40):
        trajectory = replace(
            fixed.trajectory, means=rng.normal(size=shape), log_weights=np.log(rng.exponential(size=shape))
        )
        one = replace(fixed, trajectory=trajectory)
        means.append(one.mean())
        errors.append(one.standard_error("chains"))
    assert 0.67 < np.std(means) / np.sqrt(np.mean(np.square(errors))) < 1.5


def test_quantiles_and_resampling_with_comparable_weights(fixed):
    """Both by the global weights: P(x < 0) by each, to the spacing of 20,000 systematic draws and of the CDF."""
    weights, x = brute_force(fixed), np.asarray(fixed.draws, float)
    below = np.sum(weights * (x < 0))
    assert np.mean(fixed.resample(20_000) < 0) == pytest.approx(below, abs=0.002)
    middle = float(fixed.quantile(0.5))
    assert np.sum(weights * (x <= middle)) == pytest.approx(0.5, abs=weights.max() + 1e-6)
