"""Each finding on a run that has the fault, and none on a run that has not."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests.draws.synthetic import samples_of

import contourmc as cm
from contourmc.draws.estimates import rhat_across
from contourmc.draws.report.distributions import distribution_sections
from contourmc.draws.report.verdict import verdict_of
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


def test_a_stuck_run_stays_red_when_it_is_mapped():
    """Half of the chains in each of two modes of the same energy, as in docs/start.md: R̂ and effective sizes remain."""
    random = np.random.default_rng(0)
    stuck = samples_of(random.normal(size=(4, 200)) + np.array([-6.0, -6.0, 4.0, 4.0])[:, None])
    mapped = stuck.map(lambda x: {"double": 2 * x})
    found = {finding.check: finding.severity for finding in mapped.diagnose().findings}
    assert found["agreement"] == found["effective size"] == "problem"
    assert mapped.summary()["double"].rhat > 1.3
    assert verdict_of(mapped).level == "problem"  # of the report


def test_chains_in_modes_of_their_own_in_a_thousand_dimensions_disagree():
    """Ten deviations apart: R̂ of a coordinate is about √(1 + 0.05), along the distance √(1 + 7)."""
    random = np.random.default_rng(0)
    noise, centres = random.normal(size=(8, 200, 1000)), random.normal(size=(8, 1, 1000))
    stuck = samples_of(noise + 10 / 2000**0.5 * centres)
    found = {finding.check: finding for finding in stuck.diagnose().findings}
    assert found["agreement"].severity == "problem"
    assert found["agreement"].figure > 2
    assert "along the direction in which their means differ most" in found["agreement"].message
    assert np.max(stuck.rhat()) < 1.1
    assert rhat_across([noise], np.ones((8, 200)))[0] < 1.05


@pytest.mark.parametrize(("chains", "size"), [(2, 1), (2, 30), (4, 5), (8, 100)])
def test_few_correlated_draws_are_no_disagreement(chains, size):
    """40 right runs each, worth 200 independent draws; by chance one run in some thousands is said to disagree."""
    random, draws = np.random.default_rng(1), 300
    stay = (draws * chains - 200) / (draws * chains + 200)  # of an autoregression with that effective size
    alarms = 0
    for _ in range(40):
        noise = random.normal(size=(draws, chains, size))
        path = [noise[0]]
        for kick in noise[1:]:
            path.append(stay * path[-1] + (1 - stay**2) ** 0.5 * kick)
        rhat, significance = rhat_across([np.stack(path, axis=1)], np.ones((chains, draws)))
        alarms += rhat > 1.05 and significance > 1
    assert alarms == 0


def test_numbers_that_are_not_finite_are_a_problem():
    """The logarithm of a normal number: NaN below 0, for half of the draws; and a division by 0."""
    draws = np.random.default_rng(0).normal(size=(4, 200))
    draws[0, :3] = 0
    mapped = samples_of(draws).map(lambda x: {"log": jnp.log(x), "inverse": 1 / jnp.maximum(x, 0), "x": x})
    found = {finding.check: finding for finding in mapped.diagnose().findings}
    bad = int((draws <= 0).sum())
    assert found["finite"].severity == "problem"
    assert f"'log' is not finite at {bad} of 800 draws" in found["finite"].message
    assert f"'inverse' is not finite at {bad} of 800 draws" in found["finite"].message
    assert "'x'" not in found["finite"].message
    assert not mapped.diagnose().ok
    assert verdict_of(mapped).level == "problem"
    (marginals,) = distribution_sections(mapped)
    assert [chart.title for chart in marginals.charts] == ["Marginal of x"]
    assert "None of inverse, log: not all draws are finite." in marginals.text[0]
    assert not samples_of(draws).map(jnp.log).diagnose().ok
    assert "finite" not in {finding.check for finding in samples_of(draws).diagnose().findings}
