"""Weighted draws: estimates against the known truth of the mixture, and files that come back as they were."""

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.problems import GaussianMixture
from contourmc.storage import to_xarray

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


def test_files_of_pytrees_name_their_leaves(tmp_path):
    init = {"weights": jnp.zeros((2, 3)), "bias": jnp.zeros(2)}

    def energy(x):
        return 0.5 * jnp.sum(x["weights"] ** 2) + 0.5 * jnp.sum(x["bias"] ** 2)

    run = cm.sample(energy, init=init, steps=300, kernel=cm.sghmc(0.05), chains=2)
    back = cm.Samples.load(run.save(tmp_path / "run.nc"))
    np.testing.assert_array_equal(back.draws["weights"], run.draws["weights"])
    assert to_xarray(run)["weights"].dims == ("chain", "draw", "weights_0", "weights_1")
    assert back.theta is None


def test_loading_something_else_is_a_clear_error(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        cm.Samples.load(tmp_path / "none.nc")


@pytest.mark.filterwarnings("ignore")  # ArviZ and its dependencies warn on import
def test_arviz_gets_equally_weighted_draws(run):
    data = run.to_arviz()
    values = np.asarray(data["posterior"]["x"])
    assert values.shape == run.energies.shape
    assert np.mean(values < 0) == pytest.approx(run.expectation(lambda x: x < 0), abs=0.015)


@pytest.mark.usefixtures("untyped")
def test_bad_questions(run):
    for question, words in (
        (lambda: run.quantile(1.5), "probabilities"),
        (lambda: run.resample(0), "count"),
        (lambda: run.standard_error("weeks"), "by"),
    ):
        with pytest.raises(ValueError, match=words):
            question()
