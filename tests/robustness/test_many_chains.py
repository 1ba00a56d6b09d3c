"""Many chains: each is the chain that it would be among few."""

import numpy as np

import contourmc as cm
from contourmc.problems import GaussianMixture


def test_a_thousand_chains_are_those_of_a_run_of_ten():
    """Chains share calls of the program then, and 1,000 are not a multiple of what a call holds."""
    kernel = cm.csgld(0.1, cm.Partition(low=1.5, width=1.0, bins=50))
    settings = dict(init=0.0, steps=1500, kernel=kernel, burn_in=0, thin=50)
    few, many = (cm.sample(GaussianMixture().energy, chains=chains, **settings) for chains in (10, 1000))
    np.testing.assert_array_equal(few.draws, many.draws[:10])
    assert len(np.unique(many.draws[:, -1])) > 990
