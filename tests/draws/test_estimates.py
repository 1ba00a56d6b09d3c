"""Statistics of weighted, correlated draws against closed forms."""

import numpy as np
import pytest

from contourmc.draws import estimates

RANDOM = np.random.default_rng(1)


def test_weights_of_any_size_are_safe():
    weights = estimates.normalise(np.array([[-3e6, -3e6 - 1], [0.0, -1000.0]]))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(weights[0, 0] / weights[0, 1], np.e)


def test_kish_of_equal_and_of_single_weights():
    assert estimates.kish(np.full(10, 0.1)) == pytest.approx(10)
    assert estimates.kish(np.array([1.0, 0, 0])) == pytest.approx(1)


def test_quantiles_of_equal_weights_and_of_integer_weights():
    values = RANDOM.normal(size=(2001, 2))
    levels = np.array([0.05, 0.5, 0.9])
    ours = estimates.quantile(values, np.full(2001, 1 / 2001), levels)
    np.testing.assert_array_equal(ours, np.quantile(values, levels, axis=0, method="inverted_cdf"))
    heavy = estimates.quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 98.0, 1.0]), np.array([0.005, 0.1, 0.9]))
    np.testing.assert_array_equal(heavy, [1, 2, 2])


def test_systematic_resampling_is_unbiased_and_never_off_by_more_than_one():
    weights = RANDOM.dirichlet(np.full(50, 0.3))
    counts = np.zeros(50)
    rounds, count = 2000, 40
    for _ in range(rounds):
        once = np.bincount(estimates.systematic(weights, count, RANDOM), minlength=50)
        assert np.all(np.abs(once - count * weights) < 1)
        counts += once
    # each count is floor or ceil of its mean: a Bernoulli of variance at most 1/4; six standard errors
    assert np.all(np.abs(counts / rounds - count * weights) < 6 * 0.5 / rounds**0.5)


def autoregression(chains: int, draws: int, memory: float) -> np.ndarray:
    noise = RANDOM.normal(size=(chains, draws)) * np.sqrt(1 - memory**2)
    series = np.empty_like(noise)
    series[:, 0] = RANDOM.normal(size=chains)
    for i in range(1, draws):
        series[:, i] = memory * series[:, i - 1] + noise[:, i]
    return series


def test_ess_of_independent_weighted_draws():
    """Draws from N(0, 1.5²) weighted to N(0, 1); the truth is Var(f)/Var(f̂) over many repetitions."""
    scale, draws, estimates_of_mean, sizes = 1.5, 500, [], []
    for _ in range(400):
        x = scale * RANDOM.normal(size=(1, draws))
        weights = estimates.normalise(-0.5 * x**2 * (1 - 1 / scale**2))
        estimates_of_mean.append(np.sum(weights * x))
        sizes.append(estimates.effective_size(x, weights))
    truth = 1 / np.var(estimates_of_mean)  # its relative standard error is √(2/400) = 7%
    assert np.mean(sizes) == pytest.approx(truth, rel=0.25)


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_ess_sees_correlation(memory):
    """An autoregression of memory a is worth (1 − a)/(1 + a) of its draws."""
    series = autoregression(4, 20_000, memory)
    weights = np.full(series.shape, 1 / series.size)
    expected = series.size * (1 - memory) / (1 + memory)
    assert float(estimates.effective_size(series, weights)) == pytest.approx(expected, rel=0.15)


def test_ess_sees_chains_that_disagree():
    series = autoregression(4, 5000, 0.0) + np.array([[-5.0], [-5.0], [5.0], [5.0]])
    assert estimates.effective_size(series, np.full(series.shape, 1 / series.size)) < 8


def test_batch_error_covers_the_truth():
    """Means of an autoregression in 50 batches: the error bar is the spread of the mean over repetitions."""
    means, errors = [], []
    for _ in range(200):
        series = autoregression(2, 5000, 0.8)
        batches = series.reshape(2, 50, 100).mean(axis=2)
        means.append(batches.mean())
        errors.append(estimates.batch_error(np.zeros((2, 50)), batches))
    # 200 repetitions know the spread to 5%; batches of 100 with autocorrelation time 9 lose about 5% more
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.2)
