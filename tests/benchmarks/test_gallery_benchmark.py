"""The comparison on the gallery: the error that it reports, that one failure does not end it, and nor does a kill."""

import dataclasses

import numpy as np
import pytest
from benchmarks.gallery import __main__ as command
from benchmarks.gallery import langevin, measure
from benchmarks.gallery.cells import Cells
from benchmarks.gallery.measure import Seeds, Task
from benchmarks.gallery.outcome import Budget, NotFiniteError, Outcome, Tuning, mass_error
from benchmarks.gallery.peers import PEERS, Peer, missing_packages, version_of
from typer import Typer
from typer.testing import CliRunner

import contourmc as cm
from contourmc.draws.basins import Basins
from contourmc.draws.bridging.integral import REFERENCE_DRAWS
from contourmc.problems import Problem, gallery

MIXTURE = gallery()["mixture"]
BUDGET = Budget(1000, 3)


def contour(problem: Problem, budget: Budget, seed: int) -> cm.Samples:
    """Settings by hand, in the place of those that `sample` finds."""
    kernel = cm.csgld(0.1, cm.Partition(low=2.0, width=1.0, bins=20))
    start = float(problem.start)
    run = cm.sample(problem.energy, init=start, steps=budget.steps, kernel=kernel, chains=budget.chains, seed=seed)
    basins = Basins(np.zeros(1), np.zeros(1), np.ones(()))
    return dataclasses.replace(run, settings=run.settings | {"step_size": 0.1, "automatic": {}}, basins=basins)


@pytest.fixture
def by_hand(monkeypatch):
    monkeypatch.setattr(langevin, "automatic", contour)


def exact(problem: Problem, setting: str, tuning: Tuning | None, budget: Budget, seed: int) -> Outcome:
    """A peer that knows the truth, but for its log Z."""
    draws = problem.draw(2000, seed)[None]
    return Outcome(
        draws, np.zeros(draws.shape[:2]), budget.evaluations, 0.5, 0.1, log_evidence=0.2, log_evidence_error=0.1
    )


def broken(*_):
    raise ValueError("out of order")


def test_error_of_exact_draws_is_small_and_weights_count():
    draws = MIXTURE.draw(100_000).reshape(2, -1)
    assert mass_error(MIXTURE, draws, np.zeros(draws.shape)) < 0.01
    only_left = np.where(draws < -1, 0.0, -np.inf)
    assert mass_error(MIXTURE, draws, only_left) == pytest.approx(0.6, abs=0.01)


def test_error_is_that_of_the_problem():
    run = contour(MIXTURE, Budget(2000, 3), 0)
    assert mass_error(MIXTURE, np.asarray(run.draws), run.log_weights) == pytest.approx(MIXTURE.distance(run))


def test_chains_that_are_not_finite_are_counted():
    draws = np.zeros((3, 10))
    draws[1, 5] = np.nan
    with pytest.raises(NotFiniteError, match="1 of 3"):
        mass_error(MIXTURE, draws, np.zeros(draws.shape))


def test_a_failure_is_recorded_and_the_others_go_on(by_hand, monkeypatch, tmp_path):
    monkeypatch.setitem(PEERS, "NUTS", Peer(broken))
    task = Task(MIXTURE, BUDGET, Cells(tmp_path / "cells.jsonl"))
    runs = list(measure.measure(task, ("contourmc", "SGLD", "NUTS"), Seeds(2, 2)))
    assert [run.cell.method for run in runs] == ["contourmc"] * 2 + ["SGLD"] * 2 + ["NUTS"] * 2
    assert [run.diverged for run in runs] == [False] * 4 + [True] * 2
    assert runs[-1].message == "ValueError: out of order"
    assert runs[2].evaluations == 2 * 3 * 1000  # energy and gradient, chains, steps
    assert runs[0].evaluations == 2 * 3 * 1000 + 2 * REFERENCE_DRAWS  # and those of its log evidence


def test_a_kill_loses_only_the_run_it_hits(by_hand, monkeypatch, tmp_path):
    """The second seed of SGLD is killed; the next call makes that one and those after it, with the setting found."""
    file, methods, seeds = tmp_path / "cells.jsonl", ("contourmc", "SGLD", "NUTS"), Seeds(2, 3)
    sgld, searches = PEERS["SGLD"], []

    def killed(problem, setting, tuning, budget, seed):
        if seed == 1:
            raise KeyboardInterrupt
        searches.append(seed)
        return sgld.run(problem, setting, tuning, budget, seed)

    monkeypatch.setitem(PEERS, "NUTS", Peer(exact))
    monkeypatch.setitem(PEERS, "SGLD", dataclasses.replace(sgld, run=killed))
    with pytest.raises(KeyboardInterrupt):
        list(measure.measure(Task(MIXTURE, BUDGET, Cells(file)), methods, seeds))
    assert searches.count(measure.SEARCH_SEED) == len(langevin.STEP_FACTORS)
    before = {run.cell: run for run in Cells(file)}
    assert [(cell.method, cell.seed) for cell in before] == [("contourmc", s) for s in range(3)] + [("SGLD", 0)]

    monkeypatch.setitem(PEERS, "SGLD", dataclasses.replace(sgld, settings=lambda t: langevin.sgld_settings(t)))
    monkeypatch.setattr(measure, "search", broken)
    runs = list(measure.measure(Task(MIXTURE, BUDGET, Cells(file)), methods, seeds))
    assert [(run.cell.method, run.cell.seed) for run in runs] == [("SGLD", 1), ("SGLD", 2)] + [
        ("NUTS", s) for s in range(3)
    ]
    after = {run.cell: run for run in Cells(file)}
    assert all(after[cell] == run for cell, run in before.items())
    assert len({run.setting for cell, run in after.items() if cell.method == "SGLD"}) == 1
    assert list(measure.measure(Task(MIXTURE, BUDGET, Cells(file)), methods, seeds)) == []


def test_another_budget_or_version_is_measured_anew(by_hand, monkeypatch, tmp_path):
    monkeypatch.setitem(PEERS, "NUTS", Peer(exact))
    file = tmp_path / "cells.jsonl"
    tasks = [Task(MIXTURE, BUDGET, Cells(file)), Task(MIXTURE, Budget(2000, 3), Cells(file))]
    assert [len(list(measure.measure(task, ("NUTS",), Seeds(1, 1)))) for task in tasks] == [1, 1]
    assert version_of("NUTS") == f"contourmc {cm.__version__}"
    monkeypatch.setattr(cm, "__version__", "another")
    assert len(list(measure.measure(Task(MIXTURE, BUDGET, Cells(file)), ("NUTS",), Seeds(1, 1)))) == 1
    assert len(list(Cells(file))) == 2


def test_a_line_that_was_cut_off_does_not_count(tmp_path):
    file = tmp_path / "cells.jsonl"
    task = Task(MIXTURE, BUDGET, Cells(file))
    whole = [measure.record(task, "NUTS", seed, lambda s=seed: exact(MIXTURE, "", None, BUDGET, s)) for seed in (0, 1)]
    for run in whole:
        task.cells.add(run)
    file.write_bytes(file.read_bytes()[:-30])
    cells = Cells(file)
    assert list(cells) == whole[:1]
    cells.add(whole[1])
    assert list(Cells(file)) == whole
    assert list(Cells(file, without=["NUTS"])) == []


def test_the_command_makes_a_page_and_a_picture_and_then_has_nothing_to_do(by_hand, monkeypatch, tmp_path):
    monkeypatch.setitem(PEERS, "dynesty", dataclasses.replace(PEERS["dynesty"], run=exact, needs=()))
    monkeypatch.setitem(PEERS, "nautilus", dataclasses.replace(PEERS["nautilus"], run=broken, needs=()))
    monkeypatch.setitem(PEERS, "pocoMC", dataclasses.replace(PEERS["pocoMC"], needs=("no-such-package",)))
    page = tmp_path / "page.md"
    page.write_text(
        "# Words\n<!-- picture -->\n<!-- end of picture -->\nmore\n<!-- tables -->\nOUTDATED\n<!-- end of tables -->\n"
    )
    app = Typer()
    app.command()(command.main)
    arguments = ["--problems", "mixture", "--methods", "contourmc,dynesty,nautilus,pocoMC", "--seeds", "2"]
    arguments += ["--peer-seeds", "1", "--evaluations", "1000,2000", "--out", str(tmp_path), "--page", str(page)]
    first = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "pocoMC is left out: no-such-package not installed" in first.output
    assert first.output.count("seed 0") == 6
    text = page.read_text()
    assert text.startswith("# Words\n<!-- picture -->\n![")
    assert "(page.png)" in text
    assert "OUTDATED" not in text
    assert "| mixture | " in text
    assert "– (1)" in text  # nautilus
    assert "## 10 chains × 2,000 steps, 40,000 evaluations" in text
    assert (tmp_path / "page.png").stat().st_size > 10_000
    second = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert second.output.count("seed 0") == 0
    assert page.read_text() == text


def test_every_peer_says_what_it_needs():
    assert missing_packages("contourmc") == missing_packages("SGLD") == []
    assert all(peer.needs or name in ("SGLD", "reSGLD") for name, peer in PEERS.items())
