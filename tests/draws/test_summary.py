"""Tables, modes, functions of draws, and their errors."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from tests.draws.synthetic import samples_of

import contourmc as cm
from contourmc.draws.basins import Basins


@pytest.fixture(scope="module")
def run():
    """Two coordinates of different scale, in a dictionary; 4 chains of independent draws, nearly."""
    init = {"mu": jnp.zeros(2), "tau": 0.0}
    energy = lambda x: jnp.sum(x["mu"] ** 2) / 2 + (x["tau"] - 3) ** 2 / 8  # noqa: E731
    return cm.sample(energy, init=init, steps=20_000, kernel=cm.adjusted(0.5), seed=2)


def test_the_summary_has_a_row_for_each_coordinate(run):
    table = run.summary()
    assert list(table.rows) == ["mu[0]", "mu[1]", "tau"]
    row = table["tau"]
    assert row.mean == run.mean()["tau"]
    assert row.error == run.standard_error()["tau"]
    assert row.deviation == pytest.approx(2.0, rel=0.1)  # of about 2,000 independent draws
    assert row.quantiles == tuple(run.quantile([0.05, 0.5, 0.95])["tau"])
    assert row.ess == run.ess()["tau"]
    assert row.rhat == pytest.approx(1.0, abs=0.02)
    lines = str(table).splitlines()
    assert len(lines) == 4
    assert lines[0].split() == ["mean", "±", "sd", "5%", "50%", "95%", "ESS", "R̂"]
    assert len(set(map(len, lines))) == 1


def test_draws_by_name(run):
    np.testing.assert_array_equal(run["mu"], run.draws["mu"])
    with pytest.raises(ValueError, match=r"^name='nu'.*mu, tau"):
        run["nu"]


def test_rhat_sees_a_chain_that_disagrees(run):
    shift, path = np.array([0.0, 0.0, 0.0, 9.0]), run.trajectory
    means = {"mu": path.means["mu"], "tau": path.means["tau"] + shift[:, None]}
    centre = {"mu": path.centre["mu"], "tau": path.centre["tau"] + shift}
    apart = replace(run, trajectory=replace(path, means=means, centre=centre))
    assert apart.rhat()["tau"] > 1.3
    np.testing.assert_array_equal(apart.rhat()["mu"], run.rhat()["mu"])


@pytest.mark.parametrize(
    "square", [lambda x: x["tau"] ** 2, lambda x: np.square(float(x["tau"]))], ids=["jax", "numpy"]
)
def test_expectations_have_errors_and_take_functions_of_numpy(run, square):
    mean, error = run.expectation(square, error=True)
    assert mean == pytest.approx(run.expectation(square))
    assert mean == pytest.approx(13.0, abs=5 * error)  # 3² + 2²
    # Var τ² = 4·3²·2² + 2·2⁴ = 176; the draws are worth a few thousand.
    assert 1000 < 176 / error**2 < 72_000


def test_mapped_draws_keep_their_weights(run):
    mapped = run.map(lambda x: {"ratio": x["tau"] / 2, "first": x["mu"][0]})
    assert mapped.mean()["ratio"] == pytest.approx(run.expectation(lambda x: x["tau"]) / 2)
    np.testing.assert_array_equal(mapped.weights, run.weights)
    np.testing.assert_allclose(
        mapped.standard_error("batches")["first"], run.expectation(lambda x: x["mu"][0], error=True)[1]
    )
    assert list(mapped.summary().rows) == ["first", "ratio"]
    assert mapped.diagnose().ok


def test_modes_have_masses_with_errors():
    """Four chains with draws in two places, of which a known share is at 5; errors are those of an expectation."""
    shares = np.array([0.2, 0.3, 0.3, 0.4])
    draws = np.random.default_rng(0).permuted(np.arange(100) < 100 * shares[:, None], axis=1) * 5.0
    ones = np.ones_like(draws)
    template = cm.sample(lambda x: x**2 / 2, init=0.0, steps=100, kernel=cm.sgld(0.1), burn_in=0)
    run = replace(
        template, draws=draws, energies=np.cumsum(ones, axis=1), log_weights=0 * ones, multipliers=ones,
        basins=Basins(np.array([0.0, 5.0]), np.array([-1.0, -0.5]), None), target=None,
    )  # fmt: skip
    large, small = run.modes()
    assert (large.mass, small.mass) == pytest.approx((0.7, 0.3))
    assert small.error == pytest.approx(float(run.expectation(lambda x: x > 2.5, error=True)[1]))
    assert 0.02 < small.error < 0.08  # √(0.3·0.7/400) = 0.023 if the draws were independent; the chains differ by 0.04
    assert (large.minimum, large.energy) == (0.0, -1.0)
    assert str(small).startswith(f"mass 0.300 ± {small.error:.3f} around 5")
    with pytest.raises(ValueError, match="sample without a kernel"):
        template.modes()


@pytest.mark.parametrize("event", [lambda x: x > 9, lambda x: jnp.where(x > 9, 1.0, 0.0), lambda x: x < 9])
def test_events_that_were_never_or_always_seen_have_a_bound(event):
    """1,000 independent draws, of which none is above 9: with 95% confidence the probability is below 3/1,000."""
    plain = samples_of(np.random.default_rng(0).normal(size=(4, 250)))
    mean, error = plain.expectation(event, error=True)
    assert float(mean) in (0, pytest.approx(1))
    assert error == pytest.approx(1 - 0.05 ** (1 / plain.independent))
    assert 0.002 < error < 0.005
    assert plain.expectation(lambda x: {"never": x > 9, "half": x > 0}, error=True)[1]["half"] < 0.05


def test_weights_and_correlation_widen_the_bound():
    """100 of 1,000 draws have all the weight, and none of these is above 0."""
    draws = np.random.default_rng(0).normal(size=(4, 250))
    weighted = samples_of(draws, np.where((np.arange(250) < 25) & (draws < 0), 0.0, -np.inf))
    mean, error = weighted.expectation(lambda x: x > 0, error=True)
    assert mean == 0
    assert 3 / 100 < error < 3 / 20


def test_truth_values_have_bounds_in_the_summary_and_other_constants_do_not():
    draws = np.random.default_rng(0).normal(size=(4, 250))
    table = samples_of(draws).map(lambda x: {"tail": x > 9, "zero": 0 * x, "x": x}).summary()
    assert table["tail"].mean == 0
    assert 0.002 < table["tail"].error < 0.005
    assert table["zero"].error == 0


def test_a_single_mode_and_an_empty_one_have_bounds():
    draws = np.random.default_rng(0).normal(size=(4, 250))
    full, empty = samples_of(draws, basins=Basins(np.array([0.0, 50.0]), np.zeros(2), None)).modes()
    assert (full.mass, empty.mass) == (1, 0)
    assert 0.002 < full.error == empty.error < 0.005
    assert str(full).startswith("mass at least 0.99")
    assert str(empty).startswith("mass at most 0.00")
