"""Every kind of run has a page, which says what it lacks and why."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.draws.report.conftest import START, wells
from tests.draws.report.parsed import parse

import contourmc as cm

PARTITION = cm.Partition(low=1.0, width=1.0, bins=20)


@pytest.fixture
def page_of(tmp_path):
    def report(run):
        return parse(run.report(tmp_path / "report.html").read_text(encoding="utf-8"))

    return report


def keys(page):
    return [section.attributes["id"] for section in page.one("main").all("section")]


def bowl(x):
    return jnp.sum(x**2) / 2


def sampled(**settings):
    return cm.sample(bowl, **{"init": jnp.zeros(3), "steps": 2000, "kernel": cm.csgld(0.1, PARTITION)} | settings)


def test_an_interrupted_run(page_of):
    begun = cm.start(wells, init=START, steps=20_000, seed=3)
    begun.advance(12_000)
    run = begun.samples()
    page = page_of(run)
    assert run.interrupted
    assert "interrupted" in page.one("p", **{"class": "facts"}).text
    assert f"interrupted after {run.trajectory.steps[-1]:,} of 20,000 steps" in page.one(id="verdict").text
    assert "marginals" in keys(page)


def test_a_run_that_was_interrupted_before_its_first_draw(page_of):
    begun = cm.start(wells, init=START, steps=20_000, seed=3)
    begun.advance(100)
    page = page_of(begun.samples())
    assert page.one(id="verdict").attributes["class"] == "verdict problem"
    assert "no draw was kept" in page.one(id="verdict").text
    assert keys(page) == ["verdict", "automatic", "settings", "again"]
    assert page.all("figure") == []


def test_a_run_whose_draws_were_not_stored(page_of):
    """Means come from every step; quantiles and pairs there are none."""
    run = sampled(store=False)
    page = page_of(run)
    estimates = page.one("section", id="estimates")
    assert "not stored" in estimates.text
    means = [float(row.children[1].attributes["data-value"]) for row in estimates.one("tbody").all("tr")]
    np.testing.assert_allclose(means, run.mean())
    assert not {"marginals", "pairs"} & {*keys(page)}
    assert "which were not stored" in page.one("section", id="temperatures").text


def test_a_large_run_whose_draws_were_not_stored(page_of):
    """It keeps no means either."""
    run = sampled(init=jnp.zeros(20_000), steps=50, kernel=cm.sgld(1e-3), store=False)
    assert "not stored" in page_of(run).one("section", id="estimates").text


def test_a_run_with_noise_on_batches(page_of):
    """It has no temperature curve, since its energies are not exact; and a model average, here of each chain."""
    random = np.random.default_rng(0)
    x = random.normal(size=(100, 2))
    likelihood = cm.CategoricalLikelihood(lambda weights, x: x @ weights, classes=2)
    data = x[:80], (x[:80, 0] > 0).astype(int)
    posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), data=data, batch_size=20)
    average = cm.ClassificationAverage(likelihood.predict, x[80:], (x[80:, 0] > 0).astype(int), classes=2)
    kernel = cm.csghmc(1e-4, cm.Partition(low=30.0, width=5.0, bins=20))
    run = cm.sample(
        posterior, init=lambda key: jax.random.normal(key, (2, 2)), steps=2000, kernel=kernel, average=average
    )
    page = page_of(run)
    assert "exact energies" in page.one("section", id="temperatures").text
    predictions = page.one("section", id="predictions")
    listed = [row.children for row in predictions.one("tbody").all("tr")]
    rows = {name.text: value.attributes["data-value"] for name, value in listed}
    assert float(rows["accuracy"]) == run.average.accuracy
    assert float(rows["expected calibration error"]) == run.average.calibration_error()
    assert predictions.one("h3").text == "Reliability"
    assert f"the mean gap is {run.average.calibration_error():.3f}" in predictions.one("figcaption").text
    by_chain = page_of(replace(run, average=[run.average.chain(i) for i in range(4)] * 2))
    titles = [title.text for title in by_chain.one("section", id="predictions").all("h3")]
    assert titles == [f"Reliability, chain {i}" for i in range(4)]
    assert "the first 4 of 8" in by_chain.one("section", id="predictions").text


def test_a_network_by_its_learning_rate(page_of):
    """Its kernel was not given, and the page says what was chosen."""
    x = np.linspace(-1.0, 1.0, 30)
    likelihood = cm.GaussianLikelihood(lambda slope, x: slope * x, noise=0.1)
    posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x, 2 * x), batch_size=10)
    page = page_of(cm.sample(posterior, init=0.1, steps=2000, learning_rate=1e-3))
    chosen = page.one("section", id="automatic").text
    assert "momentum 0.9; temperature: 0.01" in chosen
    assert "flattening from step 800 on, with multipliers within 1 ± 0.5" in chosen
    assert "ζ was" in chosen
    assert page.one("p", **{"class": "facts"}).text.startswith("1 chain of 2,000 steps")


def test_a_regression(page_of):
    random = np.random.default_rng(0)
    x = random.normal(size=(100, 1))
    y = 2 * x[:, 0] + 0.1 * random.normal(size=100)
    likelihood = cm.GaussianLikelihood(lambda slope, x: x * slope, noise=0.1)
    posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), data=(x[:80], y[:80, None]), batch_size=80)
    average = cm.RegressionAverage(likelihood.predict, x[80:], y[80:])
    run = cm.sample(posterior, init=jnp.zeros(()), steps=1000, kernel=cm.sgld(1e-5), average=average)
    predictions = page_of(run).one("section", id="predictions")
    assert predictions.one("h3").text == "Calibration"
    assert f"{run.average.coverage(0.9):.1%} in those of 90%" in predictions.one("figcaption").text


def test_a_kernel_without_weights(page_of):
    page = page_of(sampled(kernel=cm.sgld(0.1)))
    assert "does not flatten" in page.one("section", id="energies").text
    assert "This run holds one temperature" in page.one("section", id="temperatures").text
    titles = [title.text for title in page.one("section", id="energies").all("h3")]
    assert titles == ["Energy along the chains", "Energies visited"]


def test_a_run_from_a_file_says_that_the_evidence_needs_its_energy(run, page_of, tmp_path):
    run.save(tmp_path / "draws.nc")
    page, loaded = page_of(run), page_of(cm.Samples.load(tmp_path / "draws.nc"))
    assert "run.log_evidence(energy=…)" in loaded.one("section", id="temperatures").text
    assert loaded.one("table", data_name="estimates").text == page.one("table", data_name="estimates").text
    assert keys(loaded) == keys(page)


def test_an_energy_that_takes_long_is_not_evaluated_again_unasked(run, page_of):
    page = page_of(replace(run, seconds=1e5))
    assert "an energy that takes so long" in page.one("section", id="temperatures").text
    assert page.all("table", data_name="evidence") == []


def test_a_poor_overlap_is_told(run, page_of, monkeypatch):
    """Its warning is a note on the page, and not one of Python."""
    monkeypatch.setattr("contourmc.draws.evidence.POOR", 2.0)
    assert "Warning: the draws and the reference overlap" in page_of(run).one("section", id="temperatures").text


def test_a_run_from_a_folder(page_of, tmp_path):
    sampled(checkpoint=tmp_path / "run")
    assert "marginals" in keys(page_of(cm.Samples.open(tmp_path / "run")))


def test_a_run_in_coordinates_of_the_user(page_of):
    target = cm.transformed(lambda x: x["scale"] + x["shift"] ** 2, {"scale": cm.positive})
    run = cm.sample(target, init={"scale": jnp.asarray(1.0), "shift": jnp.asarray(0.0)}, steps=5000)
    page = page_of(run)
    rows = page.one("table", data_name="estimates").one("tbody").all("tr")
    assert [row.children[0].text for row in rows] == ["scale", "shift"]
    assert float(rows[0].children[1].attributes["data-value"]) == pytest.approx(run.mean()["scale"])


def test_a_single_draw(page_of):
    """Errors that are not known are dashes, and no number on the page is NaN."""
    page = page_of(sampled(chains=1, steps=2, burn_in=1))
    assert "nan" not in page.one("table", data_name="estimates").text
    assert "–" in page.one("table", data_name="estimates").text


def test_a_flat_landscape(page_of):
    run = cm.sample(lambda x: 0.0 * x, init=0.0, steps=1000, kernel=cm.sgld(0.1))
    assert len(page_of(run).all("figure")) == 3


def test_packages_that_are_missing_are_named_before_any_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr("contourmc._core.extras.find_spec", lambda name: None)
    monkeypatch.setattr("sys.modules", {})
    with pytest.raises(ImportError, match=r"pip install 'contourmc\[report\]'"):
        run.report(tmp_path / "report.html")
