"""Mixtures in any dimension."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from contourmc.problems import MultivariateMixture, gallery

MIXTURES = [problem for problem in gallery().values() if isinstance(problem, MultivariateMixture)]


@pytest.mark.parametrize("mixture", MIXTURES, ids=lambda mixture: mixture.name)
def test_energy_is_minus_the_log_density(mixture):
    """Against SciPy, at draws and at places between the modes, in single precision."""
    draws = mixture.draw(20, seed=3)
    points = np.concatenate([draws, draws[:-1] + 0.5 * np.diff(draws, axis=0)])
    parts = zip(mixture.weights, mixture.means, mixture.scales, strict=True)
    terms = [
        np.log(weight) + multivariate_normal(mean, np.square(scale)).logpdf(points)  # type: ignore[arg-type]
        for weight, mean, scale in parts
    ]
    energies = jax.jit(jax.vmap(mixture.energy))(jnp.asarray(points))
    np.testing.assert_allclose(energies, -np.logaddexp.reduce(terms), rtol=2e-5, atol=1e-3)
    np.testing.assert_array_equal(mixture.mode(points), np.argmax(terms, axis=0))


def test_components_are_apart():
    assert all(mixture.overlap < 1e-4 for mixture in MIXTURES)


def test_overlap_bounds_the_draws_that_change_hands():
    """Unit Gaussians 4 apart, half each: P(other side) = Φ(−2) = 0.023, the bound ½ e⁻² = 0.068."""
    mixture = MultivariateMixture((0.5, 0.5), ((0.0, 0.0), (4.0, 0.0)), (1.0, 1.0))
    assert mixture.overlap == pytest.approx(0.5 * np.exp(-2))
    assert mixture.overlap > norm.cdf(-2)


def test_masses_are_counted_where_components_overlap():
    """Unit Gaussians 2 apart, 1 : 3, with the border at 1 − ½ log 3; five standard errors of a million draws."""
    mixture = MultivariateMixture((0.25, 0.75), ((0.0, 0.0), (2.0, 0.0)), (1.0, 1.0))
    border = 1 - 0.5 * np.log(3)
    left = 0.25 * norm.cdf(border) + 0.75 * norm.cdf(border - 2)
    assert mixture.masses[0] == pytest.approx(left, abs=5 * 0.0004)
    assert abs(mixture.masses[0] - 0.25) > 0.005


def test_anisotropic_scales_and_separation():
    mixture = gallery()["anisotropic-10d"]
    assert isinstance(mixture, MultivariateMixture)
    scales = np.array(mixture.scales)
    np.testing.assert_allclose(scales[0, [0, -1]], [0.1, 10])
    np.testing.assert_array_equal(scales[0], scales[1])
    apart = np.abs(np.subtract(*mixture.means)) / scales[0]
    np.testing.assert_allclose(apart, 10.0 * (np.arange(10) == 4))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": (0.5, 0.6)}, "sum to 1"),
        ({"weights": (0.5, 0.3, 0.2)}, "give 3 points"),
        ({"means": ((0.0, 0.0), (1.0,))}, "same dimension"),
        ({"scales": (1.0, -1.0)}, "positive number"),
        ({"scales": (1.0, (1.0, 1.0, 1.0))}, "one for every coordinate"),
    ],
)
def test_bad_input_is_named(change, message):
    settings = dict(weights=(0.4, 0.6), means=((0.0, 0.0), (9.0, 0.0)), scales=(1.0, 1.0)) | change
    with pytest.raises(ValueError, match=message):
        MultivariateMixture(**settings)
