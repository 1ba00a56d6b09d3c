"""Each finding on a run that has the fault, and none on a run that has not."""

import numpy as np
import pytest

import contourmc as cm
from contourmc.problems import GaussianMixture

ENERGY = GaussianMixture().energy


def findings(partition: cm.Partition, steps: int = 60_000, **settings) -> dict[str, str]:
    settings = dict(step_size=0.1, zeta=0.75, scheme="right") | settings
    run = cm.sample(ENERGY, init=0.0, steps=steps, kernel=cm.csgld(partition=partition, **settings), chains=4)
    return {finding.check: finding.severity for finding in run.diagnose().findings}


def test_a_good_run_says_so_in_one_line():
    kernel = cm.csgld(0.1, cm.Partition(1.5, 1.0, 50), zeta=0.75, scheme="right")
    diagnosis = cm.sample(ENERGY, init=0.0, steps=600_000, kernel=kernel, chains=4).diagnose()
    assert diagnosis.ok
    assert str(diagnosis).count("\n") == 0
    assert str(diagnosis).startswith("Nothing wrong was found")


def test_an_empty_lowest_bin_is_a_problem():
    found = findings(cm.Partition(low=1.0, width=1.0, bins=50), steps=5000, scheme="centred")
    assert found["lowest bin"] == "problem"


def test_a_partition_that_is_too_low_or_too_high():
    assert "above" in findings(cm.Partition(low=1.5, width=0.5, bins=3))
    assert "below" in findings(cm.Partition(low=9.0, width=1.0, bins=20), scheme="left")


def test_bins_that_are_jumped_over():
    assert "holes" in findings(cm.Partition(low=1.5, width=0.01, bins=2000), steps=3000, zeta=0.1)


def test_sgld_in_two_modes_disagrees_and_cannot_know_more():
    starts = np.array([-6.0, 4.0] * 4)
    run = cm.sample(ENERGY, init=starts, per_chain_init=True, steps=20_000, kernel=cm.sgld(0.1), chains=8)
    found = {finding.check: finding.severity for finding in run.diagnose().findings}
    assert found["agreement"] == "problem"
    assert found["flattening"] == "note"
    assert not run.diagnose().ok


def test_a_theta_that_is_learnt_too_slowly_is_still_moving():
    assert "drift" in findings(cm.Partition(1.5, 1.0, 50), steps=20_000, omega=0.0003)


def test_a_run_with_hardly_a_round_trip():
    """Almost no flattening and a tiny step: a chain does not get about in energy."""
    found = findings(cm.Partition(1.5, 1.0, 50), steps=3000, step_size=1e-4, zeta=0.1)
    assert "round trips" in found


def test_weights_that_collapse():
    """A θ that asks for weights e^(5·bin): all the weight is in the few draws of the lowest bin."""
    partition = cm.Partition(1.5, 0.2, 10)
    theta = np.exp(-5.0 * np.arange(10))
    found = findings(partition, theta=theta / theta.sum(), zeta=1.0, step_size=0.001, steps=2000)
    assert "weights" in found


@pytest.mark.parametrize("steps", [1, 3, 15])
def test_tiny_runs_are_not_trusted(steps):
    kernel = cm.csgld(0.1, cm.Partition(1.5, 1.0, 50))
    run = cm.sample(ENERGY, init=0.0, steps=steps, kernel=kernel, chains=1, burn_in=0)
    assert not run.diagnose().ok
    assert f"1 chain, {steps} draw" in str(run.diagnose())
