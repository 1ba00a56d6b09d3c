"""Mixtures of Gaussians, their fit, and bridge sampling, on independent draws of densities with known integrals."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from contourmc.draws.bridging.bridge import bridge
from contourmc.draws.bridging.gaussians import Gaussians
from contourmc.draws.bridging.gaussians_fit import fit_gaussians
from contourmc.draws.bridging.integral import DensityDraws, Integral, integrate_by_halves

MIXTURE = Gaussians(
    np.array([0.3, 0.7]),
    np.array([[-3.0, 0.0], [2.0, 1.0]]),
    np.array([[[1.0, 0.0], [0.5, 0.8]], [[0.3, 0.0], [0.0, 2.0]]]),
)


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def ring(count: int, seed: int = 0) -> np.ndarray:
    """Draws from a thin ring, which no single Gaussian resembles."""
    numbers = random(seed)
    radius, angle = 4 + 0.3 * numbers.normal(size=count), numbers.uniform(0, 2 * np.pi, count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def test_the_density_of_a_mixture():
    x = random().normal(size=(50, 2)) * 3
    parts = zip(MIXTURE.shares, MIXTURE.means, MIXTURE.factors, strict=True)
    expected = sum(share * multivariate_normal(mean, factor @ factor.T).pdf(x) for share, mean, factor in parts)
    np.testing.assert_allclose(MIXTURE.log_density(x), np.log(expected), rtol=1e-10)


def test_draws_of_a_mixture_are_those_of_its_density():
    """Mean and covariance of 100,000 draws, to five standard errors of about 0.01 and 0.03."""
    x = MIXTURE.draw(100_000, random())
    mean = MIXTURE.shares @ MIXTURE.means
    covariance = np.einsum("k,kij,klj->il", MIXTURE.shares, MIXTURE.factors, MIXTURE.factors)
    away = MIXTURE.means - mean
    covariance += np.einsum("k,ki,kj->ij", MIXTURE.shares, away, away)
    np.testing.assert_allclose(x.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), covariance, atol=0.15)
    assert np.all(np.isfinite(MIXTURE.with_wider_tails(0.1).draw(7, random())))


def test_a_ring_takes_several_gaussians():
    """The mean log density of other draws; the truth is −log(2π·4·0.3·√(2πe)) = −3.44, and one Gaussian has −4.9."""
    x, others = ring(5000), ring(5000, seed=1)
    labels = np.zeros(len(x), int)
    fitted = fit_gaussians(x, labels, 5000.0)
    assert 6 <= len(fitted.shares) <= 64
    assert fitted.log_density(others).mean() > -3.55
    assert len(fit_gaussians(x, labels, 20.0).shares) == 1  # so few independent draws say nothing about shape


def test_labels_are_kept_where_they_help():
    x = MIXTURE.draw(4000, random())
    fitted = fit_gaussians(x, (x[:, 0] > 0).astype(int), 4000.0)
    assert len(fitted.shares) == 2
    np.testing.assert_allclose(fitted.shares, [0.7, 0.3], atol=0.04)  # the largest first


def test_noise_is_not_taken_for_correlation():
    """200 draws of 50 independent coordinates: the fit is as good as the truth but for 100 numbers, 0.5 each in 200."""
    numbers = random()
    x, others = numbers.normal(size=(200, 50)), numbers.normal(size=(2000, 50))
    fitted = fit_gaussians(x, np.zeros(200, int), 200.0)
    truth = Gaussians(np.ones(1), np.zeros((1, 50)), np.eye(50)[None])
    assert truth.log_density(others).mean() - fitted.log_density(others).mean() < 1.0


def test_strong_correlation_is_kept():
    mixing = np.tril(np.ones((5, 5)))
    x = random().normal(size=(2000, 5)) @ mixing.T * np.geomspace(1e-4, 1e4, 5)
    found = fit_gaussians(x, np.zeros(2000, int), 2000.0)
    np.testing.assert_allclose(np.corrcoef(x.T), _correlation(found.factors[0]), atol=0.01)


def _correlation(factor: np.ndarray) -> np.ndarray:
    covariance = factor @ factor.T
    deviations = np.sqrt(np.diag(covariance))
    return covariance / np.outer(deviations, deviations)


def test_the_bridge_between_two_normals():
    """N(0, 1) times e² against N(1, 1), 4,000 draws each: the error is about √(1/2000 · 0.3) = 0.012; four of them."""
    numbers = random()
    at_reference, at_draws = 1 + numbers.normal(size=(8, 500)), numbers.normal(size=(2, 2000))

    def log_ratio(x):
        return 2 - 0.5 * x**2 + 0.5 * (x - 1) ** 2

    found = bridge(log_ratio(at_reference), log_ratio(at_draws), np.full((2, 2000), -np.log(4000)), 4000.0)
    assert found.log_integral == pytest.approx(2, abs=0.05)
    assert 0.5 < found.overlap < 1
    same = bridge(np.full((2, 5), 2.0), np.full((1, 10), 2.0), np.full((1, 10), -np.log(10)), 10.0)
    assert (same.log_integral, same.overlap, same.reference_error) == pytest.approx((2, 1, 0), abs=1e-9)


def integrated(size: int, count: int, seed: int) -> Integral:
    """log ∫e^{−|x|²/2}dx from independent draws."""
    numbers = random(seed)
    x = numbers.normal(size=(4, count // 4, size))
    draws = DensityDraws(
        x, -0.5 * np.sum(x**2, axis=-1), np.full(x.shape[:2], -np.log(count)), np.zeros(x.shape[:2], int),
        np.ones(4, bool), lambda x: (x, -0.5 * np.sum(x**2, axis=-1)),
    )  # fmt: skip
    return integrate_by_halves(draws, numbers)


def test_the_fit_does_not_see_the_draws_that_it_meets():
    """200 draws in 100 dimensions: the mean of 4 integrals has an error of 0.008, and four of them are allowed.

    With the halves not exchanged, so that each meets its own fit, the mean is −0.06.
    """
    found = [integrated(100, 200, seed) for seed in range(4)]
    errors = np.array([one.log_value for one in found]) - 50 * np.log(2 * np.pi)
    assert abs(errors.mean()) < 0.033
    assert np.sum(np.abs(errors) < 2 * np.array([one.error for one in found])) >= 3
