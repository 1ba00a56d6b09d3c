"""What `contourmc sample` writes, from draws whose numbers are known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from contourmc.cli.results import FILES, digest, summarise, write_results
from contourmc.draws.basins import Basins
from contourmc.draws.samples import Samples
from contourmc.draws.trajectory import Trajectory
from contourmc.flattening.partition import Partition
from contourmc.flattening.summary import Flattening

STEPS, BINS = 100, 5


@pytest.fixture
def samples() -> Samples:
    """Two chains of 100 draws of {"a": (2,), "b": ()}, at ±1 in turn; in the second chain, three of four at +1."""
    random = np.random.default_rng(0)
    signs = np.stack([np.resize([-1.0, 1.0], STEPS), np.resize([1.0, 1.0, 1.0, -1.0], STEPS)])
    draws = {"a": np.stack([signs, random.normal(size=signs.shape)], axis=-1), "b": 2 + random.normal(size=signs.shape)}
    trajectory = Trajectory(
        steps=np.array([STEPS]),
        log_weights=np.zeros((2, 1)),
        means={name: leaf.mean(axis=1, keepdims=True) for name, leaf in draws.items()},
        squares={name: (leaf**2).mean(axis=1, keepdims=True) for name, leaf in draws.items()},
        centre={name: np.zeros_like(leaf[:, 0]) for name, leaf in draws.items()},
        theta=np.full((2, 1, BINS), 1 / BINS),
        visits=np.full((2, 1, BINS), STEPS // BINS),
    )
    return Samples(
        draws=draws,
        energies=random.uniform(1, 4, size=signs.shape),
        log_weights=np.zeros(signs.shape),
        multipliers=np.ones(signs.shape),
        steps=1 + np.arange(STEPS),
        trajectory=trajectory,
        settings={
            "steps": STEPS,
            "seed": 3,
            "step_size": 0.25,
            "automatic": {"pilot_steps": 1234, "acceptance": 0.6, "temperature": 8.0, "changes": ["one bin more"]},
        },
        seconds=1.0,
        flattening=Flattening(Partition(1.0, 1.0, BINS), 0.0, fixed=True),
        basins=Basins(
            {"a": np.array([[1.0, 0.0], [-1.0, 0.0]]), "b": np.array([2.0, 2.0])}, np.array([0.5, 0.75]), scale=None
        ),
    )


def test_modes_are_the_minima_with_the_mass_around_them(samples):
    """37.5% of all draws are at −1: half of the first chain, a quarter of the second."""
    first, second = summarise(samples, samples.summary())["modes"]
    assert (first["mass"], second["mass"]) == pytest.approx((0.625, 0.375))
    assert (first["energy"], second["energy"]) == (0.5, 0.75)
    assert second["minimum"] == {"a": [-1.0, 0.0], "b": 2.0}
    assert first["error"] == pytest.approx(float(samples.expectation(lambda x: x["a"][0] > 0, error=True)[1]))


def test_every_coordinate_has_a_name_and_its_numbers(samples):
    coordinates = summarise(samples, samples.summary())["coordinates"]
    assert list(coordinates) == ["a[0]", "a[1]", "b"]
    assert coordinates["a[0]"]["mean"] == pytest.approx(0.25)
    assert coordinates["a[0]"]["standard_deviation"] == pytest.approx(np.sqrt(1 - 0.25**2))
    assert coordinates["a[0]"]["quantiles"] == [-1.0, 1.0, 1.0]
    assert coordinates["b"]["mean"] == pytest.approx(samples.draws["b"].mean())


def test_the_files_and_the_terminal_say_the_same(samples, tmp_path):
    found = samples.summary()
    files = write_results(samples, found, tmp_path, "A title", "contourmc sample mine.py:energy")
    assert files == [tmp_path / name for name in FILES]
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert summary["modes"] == summarise(samples, found)["modes"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>A title</h1>" in page
    assert "contourmc sample mine.py:energy" in page
    shown = digest(samples, found)
    assert str(found) in shown
    assert f"mode 1: mass 0.625 ± {samples.modes()[0].error:.3f}" in shown
    np.testing.assert_allclose(Samples.load(tmp_path / "draws.nc").draws["b"], samples.draws["b"])


def test_a_run_that_was_interrupted_says_so(samples, tmp_path):
    interrupted = replace(samples, interrupted=True, settings=samples.settings | {"steps": 10 * STEPS})
    write_results(interrupted, interrupted.summary(), tmp_path, "A title", "")
    assert json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["interrupted"] is True
    assert "interrupted after 100 of 1,000 steps" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_single_draw_has_a_report(samples, tmp_path):
    """As after an interruption: histograms of one number, and errors that are not known."""
    one = replace(
        samples,
        draws={name: leaf[:1, :1] for name, leaf in samples.draws.items()},
        energies=samples.energies[:1, :1],
        log_weights=samples.log_weights[:1, :1],
        multipliers=samples.multipliers[:1, :1],
        steps=samples.steps[:1],
        trajectory=Trajectory(
            steps=samples.trajectory.steps,
            log_weights=np.zeros((1, 1)),
            means={name: leaf[:1, :1] for name, leaf in samples.draws.items()},
            squares={name: leaf[:1, :1] ** 2 for name, leaf in samples.draws.items()},
            centre={name: np.zeros_like(leaf[:1, 0]) for name, leaf in samples.draws.items()},
            theta=np.full((1, 1, BINS), 1 / BINS),
            visits=np.full((1, 1, BINS), STEPS // BINS),
        ),
    )
    write_results(one, one.summary(), tmp_path, "A title", "")
    text = (tmp_path / "summary.json").read_text(encoding="utf-8")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
