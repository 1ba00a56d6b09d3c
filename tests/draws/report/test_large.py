"""Large runs: the page stays small, shows the leading coordinates and some draws, and says so."""

from dataclasses import replace

import numpy as np
import pytest
from tests.draws.report.parsed import parse
from tests.draws.report.test_page import LARGEST

import contourmc as cm
from contourmc.draws.report.leading import every, leading

PARTITION = cm.Partition(low=1.0, width=1.0, bins=1000)


def many(run, draws, size):
    """The run as if it had so many draws and coordinates, with energies and weights to match."""
    random = np.random.default_rng(0)
    positions = random.normal(size=(run.chains, draws, size)).astype(np.float32)
    energies = 1 + random.exponential(size=(run.chains, draws))
    trajectory, marks = run.trajectory, len(run.trajectory.steps)
    theta = np.full((run.chains, marks, PARTITION.bins), 1 / PARTITION.bins)
    stretches = np.repeat(positions[:, :1], marks, axis=1)
    trajectory = replace(
        trajectory, means=stretches, squares=stretches**2, centre=positions[:, 0], theta=theta,
        visits=np.ones_like(theta, int) * np.arange(1, marks + 1)[:, None],
    )  # fmt: skip
    assert run.flattening is not None
    return replace(
        run, draws=positions, energies=energies, log_weights=energies - 1, multipliers=np.zeros_like(energies),
        steps=np.arange(draws), trajectory=trajectory, flattening=replace(run.flattening, partition=PARTITION),
        basins=None, virials=None, target=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("draws", "size", "words"),
    [
        (250_000, 2, "resampled by weight from 1,000,000"),
        (40, 10_000, "The first 100 of 10,000 coordinates"),
        (40, 20_000, "The first 100 of 20,000 coordinates"),
    ],
)
def test_the_page_is_small_and_says_what_it_shows(run, tmp_path, draws, size, words):
    file = many(run, draws, size).report(tmp_path / "report.html")
    assert file.stat().st_size < LARGEST / 2
    page = parse(file.read_text(encoding="utf-8"))
    assert words in page.text
    assert len(page.one("table", data_name="estimates").one("tbody").all("tr")) == min(size, 100)
    assert len(page.all("figure")) < 25


def test_leading_coordinates_have_the_estimates_of_the_whole_run(run):
    found = leading(run, 2)
    assert found is not None
    assert (found.names, found.total) == (["a[0]", "a[1]"], 3)
    np.testing.assert_allclose(found.samples.mean(), run.mean()["a"], rtol=1e-12)  # sums of fewer columns: rounding
    np.testing.assert_allclose(found.samples.standard_error(), run.standard_error()["a"], rtol=1e-12)
    np.testing.assert_allclose(found.samples.ess(), run.ess()["a"], rtol=1e-12)


def test_thinned_draws_are_evenly_spread(run):
    thinned, stride = every(run, run.energies.size // 3)
    assert stride in (3, 4)
    np.testing.assert_array_equal(thinned.energies, run.energies[:, ::stride])
    np.testing.assert_array_equal(thinned.draws["b"], run.draws["b"][:, ::stride])
    assert every(run, run.energies.size) == (run, 1)


def test_a_long_name_is_shortened_in_charts_only(run, tmp_path):
    name = "n" * 5000
    long = replace(
        run, draws={name: run.draws["b"]}, trajectory=run.trajectory.without_moments(), basins=None, target=None
    )
    page = parse(long.report(tmp_path / "report.html").read_text(encoding="utf-8"))
    assert name in page.one("table", data_name="estimates").text
    assert "n" * 100 not in page.one("script", id="charts").text
