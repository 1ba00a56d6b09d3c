"""The comparison on the gallery: the error that it reports, and that one failure does not end it."""

import dataclasses
import json

import numpy as np
import pytest
from benchmarks.gallery import langevin, measure, report
from benchmarks.gallery.outcome import Budget, NotFiniteError, mass_error

import contourmc as cm
from contourmc.draws.basins import Basins
from contourmc.problems import Problem, gallery

MIXTURE = gallery()["mixture"]


def contour(problem: Problem, steps: int, chains: int, seed: int) -> cm.Samples:
    """Settings by hand, in the place of those that `sample` finds."""
    kernel = cm.csgld(0.1, cm.Partition(low=2.0, width=1.0, bins=20))
    run = cm.sample(problem.energy, init=float(problem.start), steps=steps, kernel=kernel, chains=chains, seed=seed)
    basins = Basins(np.zeros(1), np.zeros(1), np.ones(()))
    return dataclasses.replace(run, settings=run.settings | {"step_size": 0.1, "automatic": {}}, basins=basins)


def test_error_of_exact_draws_is_small_and_weights_count():
    draws = MIXTURE.draw(100_000).reshape(2, -1)
    assert mass_error(MIXTURE, draws, np.zeros(draws.shape)) < 0.01
    only_left = np.where(draws < -1, 0.0, -np.inf)
    assert mass_error(MIXTURE, draws, only_left) == pytest.approx(0.6, abs=0.01)


def test_error_is_that_of_the_problem():
    run = contour(MIXTURE, 2000, 3, 0)
    assert mass_error(MIXTURE, np.asarray(run.draws), run.log_weights) == pytest.approx(MIXTURE.distance(run))


def test_chains_that_are_not_finite_are_counted():
    draws = np.zeros((3, 10))
    draws[1, 5] = np.nan
    with pytest.raises(NotFiniteError, match="1 of 3"):
        mass_error(MIXTURE, draws, np.zeros(draws.shape))


def test_report_of_a_small_run(monkeypatch, tmp_path):
    def broken(*_):
        raise ValueError("out of order")

    monkeypatch.setattr(langevin, "automatic", contour)
    monkeypatch.setitem(measure.PEERS, "NUTS", measure.Peer(broken))
    runs = list(measure.measure(MIXTURE, ("contourmc", "SGLD", "NUTS"), Budget(1000, 3), seeds=2))
    assert [run.method for run in runs] == ["contourmc"] * 2 + ["SGLD"] * 2 + ["NUTS"] * 2
    assert [run.diverged for run in runs] == [False] * 4 + [True] * 2
    assert runs[-1].message == "ValueError: out of order"
    report.write(tmp_path, runs, {"evaluations": 1000, "chains": 3, "seeds": 2})
    data = json.loads((tmp_path / "results.json").read_text())
    assert [entry["error"] for entry in data["measurements"]] == [run.error for run in runs]
    assert "| mixture | NUTS | – | – | 2 of 2 |" in (tmp_path / "gallery.md").read_text()
