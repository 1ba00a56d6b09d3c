"""The mixture on the line."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from contourmc.problems import GaussianMixture


def test_the_papers_mixture():
    mixture = GaussianMixture()
    assert mixture.mean == pytest.approx(0)
    assert mixture.variance == pytest.approx(25)
    assert mixture.start == -6
    np.testing.assert_allclose(mixture.masses, [0.4, 0.6], atol=1e-6)
    assert mixture.dimension == 1


def test_masses_are_those_of_the_labels_where_components_overlap():
    """Two unit Gaussians 2 apart, 1 : 3: the border is where ¼ N(x; 0) = ¾ N(x; 2), at 1 − ½ log 3."""
    mixture = GaussianMixture((0.25, 0.75), (0.0, 2.0), (1.0, 1.0))
    border = 1 - 0.5 * np.log(3)
    left = 0.25 * norm.cdf(border) + 0.75 * norm.cdf(border - 2)
    assert mixture.masses[0] == pytest.approx(left, abs=1e-4)
    np.testing.assert_array_equal(mixture.mode(np.array([border - 0.01, border + 0.01])), [0, 1])


@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.5, 2.0)])
def test_energy_includes_the_constant(scales):
    mixture = GaussianMixture(scales=scales)
    x = np.array([-7.0, -1.0, 4.5])
    density = 0.4 * norm.pdf(x, -6, scales[0]) + 0.6 * norm.pdf(x, 4, scales[1])
    np.testing.assert_allclose(mixture.energy(jnp.asarray(x)), -np.log(density), rtol=1e-5)
