"""The comparison of networks: the search sees training rows alone, all spend the same, and a second call goes on."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from benchmarks.networks import __main__ as command
from benchmarks.networks import data, measure
from benchmarks.networks.cells import Cells
from benchmarks.networks.corruption import KINDS, STRENGTHS, corrupted
from benchmarks.networks.data import DATA_SETS, DataSet, MissingDataError, Rows, Sources, Split
from benchmarks.networks.measure import SEARCH_SEED, Study
from benchmarks.networks.methods import METHODS, SETTINGS, Energies, Task
from benchmarks.networks.problem import Problem
from benchmarks.networks.running import carry_out
from typer import Typer
from typer.testing import CliRunner

import contourmc as cm
from contourmc.predictions.prediction import Points

RATES = (0.1, 0.01)


def small_split(sources: Sources, seed: int) -> Split:
    """Two classes of 2 × 2 images that a small network can tell apart."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, 60).astype(np.int32)
    x = generator.normal(size=(60, 4)) + y[:, None]
    return Split(Rows(x[:40], y[:40]), Rows(x[40:], y[40:]))


def poisoned_split(sources: Sources, seed: int) -> Split:
    train, test = small_split(sources, seed)
    return Split(train, Rows(np.full_like(test.x, np.nan), test.y))


SMALL = DataSet("digits", small_split, 2, (3,), 8, 20, 1e-2, RATES, image=(2, 2))


@pytest.fixture
def few_settings(monkeypatch):
    """Two of SGHMC, and one of the method that leans on it."""
    for name, which in (("SGHMC", slice(1, None, 3)), ("CSGHMC", slice(1))):
        method = METHODS[name]
        few = lambda *given, method=method, which=which: method.settings(*given)[which]  # noqa: E731
        monkeypatch.setitem(METHODS, name, dataclasses.replace(method, settings=few))


def study(file: Path, one: DataSet = SMALL, seeds: int = 2) -> Study:
    return Study(one, Cells(file), Sources(), one.epochs, seeds)


def test_test_rows_change_nothing_in_the_search(few_settings, tmp_path):
    poisoned = dataclasses.replace(SMALL, split=poisoned_split)
    found = []
    for name, one in (("fine", SMALL), ("poisoned", poisoned)):
        tried = study(tmp_path / name, one)
        trials = list(measure.search(tried, "SGHMC"))
        found.append(([(trial.cell, trial.scores) for trial in trials], tried.chosen("SGHMC")))
    assert len(found[0][0]) == 2 * SMALL.search_splits
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="inputs"):  # the poison works
        list(measure.test(tried, "SGHMC"))


def test_rows_held_out_are_no_training_rows_and_are_not_in_their_statistics():
    train = small_split(Sources(), SEARCH_SEED).train
    first, second = measure.search_problems(SMALL, train)
    for problem in (first, second):
        rows = np.concatenate([problem.split.train.x, problem.split.test.x])
        np.testing.assert_array_equal(np.sort(rows[:, 0]), np.sort(train.x[:, 0]))
        standardised = np.asarray(problem.posterior.data[0])
        assert abs(standardised.mean()) < 1e-6
        assert standardised.std() == pytest.approx(1, abs=1e-6)
    assert not np.array_equal(first.split.test.x, second.split.test.x)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_same_search_and_the_same_compute(name):
    """But for what is left over where evaluations do not divide by members, cycles or replicas."""
    method, task = METHODS[name], Task(900, 8000, Energies(0.1, 0.2))
    for one in DATA_SETS.values():
        settings = method.settings(one.rates, dict(learning_rate=one.rates[0], temperature=0.1))
        assert 0 < len(settings) <= SETTINGS
        for setting in settings:
            plan = method.plan(setting, task)
            assert 0.98 * task.evaluations <= plan.evaluations <= task.evaluations
            models = (plan.steps - plan.burn_in) // plan.thin
            assert models >= 1


@pytest.mark.parametrize("name", ["deep ensemble", "replica exchange"])
def test_evaluations_that_are_recorded_were_made(name, monkeypatch):
    made, sample = [], cm.sample

    def counted(targets, **given):
        run = sample(targets, **given)
        made.append(run.chains * run.settings["steps"] * given["kernel"].evaluations)
        return run

    monkeypatch.setattr(cm, "sample", counted)
    problems = measure.search_problems(SMALL, small_split(Sources(), 0).train)
    setting = METHODS[name].settings(RATES, None)[0]
    outcomes = list(carry_out(METHODS[name].plan(setting, Task(32, 60, Energies(0.1, 0.2))), problems))
    assert made == [sum(outcome.evaluations for outcome in outcomes)]
    assert made[0] == 2 * 60


def test_a_second_call_makes_only_what_is_missing(few_settings, tmp_path):
    file = tmp_path / "cells.jsonl"
    first = study(file)
    runs = []
    for run in measure.measure(first, ("SGHMC", "CSGHMC")):
        runs.append(run)
        if len(runs) == 3:
            break  # as if killed within the second trial
    lines = file.read_text().splitlines()
    assert len(lines) == 3
    again = list(measure.measure(study(file), ("SGHMC", "CSGHMC")))
    parts = [(run.cell.method, run.cell.part) for run in again]
    assert (
        parts
        == [("SGHMC", "search")] * 2 + [("SGHMC", "test")] * 2 + [("CSGHMC", "search")] * 2 + [("CSGHMC", "test")] * 2
    )
    assert again[0].scores == runs[2].scores  # the same trial, made again
    assert [run.multipliers is not None for run in again] == [method == "CSGHMC" for method, _ in parts]
    assert list(measure.measure(study(file), ("SGHMC", "CSGHMC"))) == []


def test_settings_that_diverge_are_out_and_no_test_set_is_looked_at(few_settings, tmp_path):
    hot = dataclasses.replace(SMALL, rates=(1e9,))
    tried = study(tmp_path / "cells.jsonl", hot)
    runs = list(measure.measure(tried, ("SGHMC", "CSGHMC")))
    assert all("finite" in run.message for run in runs if run.cell.method == "SGHMC")
    assert all("SGHMC diverged at" in run.message for run in runs if run.cell.method == "CSGHMC")
    assert tried.chosen("SGHMC") is None
    assert {run.cell.part for run in runs} == {"search"}


def test_corrupted_images_are_those_of_the_test_set_and_get_worse():
    images = np.random.default_rng(0).random((5, 8, 8))
    worse = corrupted(images)
    assert tuple(worse) == KINDS
    for kind in KINDS:
        away = [np.mean((one - images) ** 2) for one in worse[kind]]
        assert len(away) == STRENGTHS
        assert away == sorted(away)


def test_scores_of_a_prediction_tell_clean_rows_from_corrupted_ones():
    problem = Problem(SMALL, small_split(Sources(), 0), corruption=True)
    average = problem.average(None)
    count = len(problem.split.test.y)
    probabilities = np.zeros((1, average.size, 2))
    right = np.asarray(average.targets)
    probabilities[0, np.arange(average.size), right] = 1
    probabilities[0, count:] = 1 - probabilities[0, count:]  # all corrupted rows are wrong
    entropy = np.zeros((1, average.size))
    none = np.zeros(1)
    prediction = average.result(
        means=dict(probabilities=probabilities, entropy=entropy), truth=right, effective_models=np.ones(1), models=1,
        points=Points(none, none, none, none), shares=np.ones(1),
    )  # fmt: skip
    scores = problem.scores(prediction)
    assert scores["accuracy"] == 1
    assert all(scores["corrupted"][kind]["accuracy"] == [0] * STRENGTHS for kind in KINDS)


def test_a_regression_is_scored_in_the_units_of_its_targets():
    split = small_split(Sources(), 0)
    one = dataclasses.replace(SMALL, classes=None, image=None)
    found = []
    for scale in (1.0, 100.0):
        rows = [Rows(part.x, scale * part.x[:, 0]) for part in split]
        problem = Problem(one, Split(*rows))
        run = next(carry_out(METHODS["M-SGD"].plan(dict(learning_rate=0.01), Task(40, 50)), [problem]))
        found.append(problem.scores(run.prediction))
    assert found[1]["rmse"] == pytest.approx(100 * found[0]["rmse"], rel=1e-3)
    assert found[1]["nll"] == pytest.approx(found[0]["nll"] + np.log(100), abs=1e-3)


def test_idx_files_are_read_and_their_absence_is_told(tmp_path):
    with pytest.raises(MissingDataError, match="--fashion"):
        data.fashion(Sources(), 0)
    with pytest.raises(MissingDataError, match="neither"):
        data.fashion(Sources(fashion=tmp_path), 0)
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(
            b"\0\0\x08\x03" + np.array([2, 2, 3], ">i4").tobytes() + bytes(range(12))
        )
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + np.array([2], ">i4").tobytes() + b"\3\7")
    train, _ = data.fashion(Sources(fashion=tmp_path), 0)
    np.testing.assert_allclose(255 * train.x, np.arange(12).reshape(2, 6), rtol=1e-6)
    assert train.y.tolist() == [3, 7]


def test_the_command_fills_a_page_and_says_what_is_left_out(few_settings, monkeypatch, tmp_path):
    monkeypatch.setitem(DATA_SETS, "digits", SMALL)
    app = Typer()
    app.command()(command.main)
    arguments = ["--sets", "digits,fashion", "--methods", "SGHMC,CSGHMC,contourmc automatic", "--quick"]
    arguments += ["--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert "fashion is left out" in result.output
    text = (tmp_path / "networks.md").read_text()
    assert "| CSGHMC | " in text
    assert "| contourmc automatic | " in text
    assert (tmp_path / "networks.png").stat().st_size > 10_000
    again = CliRunner().invoke(app, [*arguments, "--only-report"], catch_exceptions=False)
    assert "search" not in again.output
    assert (tmp_path / "networks.md").read_text() == text
