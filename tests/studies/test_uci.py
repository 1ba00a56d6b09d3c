"""Table 1: splits, the recipes, a cell on invented data, claims made of records, and the search for settings."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from contourmc.engine.run import DivergenceError
from contourmc.flattening.rules import Original
from contourmc.studies import datasets
from contourmc.studies.catalogue import UCI
from contourmc.studies.datasets import DatasetError
from contourmc.studies.uci import cells, readings, search
from contourmc.studies.uci.cells import (
    BASELINES,
    FAMILIES,
    METHODS,
    Cell,
    Model,
    likelihood_of,
    load,
    load_splits,
    make_kernel,
    measure,
    split,
    steps_of,
)
from contourmc.studies.uci.recipes import (
    BEST,
    FILE,
    PAPER,
    PAPERS,
    PAPERS_TABLE,
    RECIPES,
    LearntAfterBurnIn,
    chosen,
    papers_settings,
    scores,
)
from contourmc.studies.uci.table import draw

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(3.0, 2.0, size=(308, 6))
Y = 5 + 3 * np.tanh(X[:, 0] - 3) + 0.1 * RANDOM.normal(size=308)
RESULTS = Path(__file__).parents[2] / "results" / "uci"


@pytest.fixture
def data(tmp_path):
    """Invented data in the layout of Yacht."""
    file = tmp_path / "data" / "uci" / "yacht" / "data.txt"
    file.parent.mkdir(parents=True)
    np.savetxt(file, np.column_stack([X, Y]))
    return tmp_path / "data"


# --- Data --------------------------------------------------------------------------------------------


def test_a_tenth_is_for_testing_and_splits_differ():
    # The target is the number of the row.
    splits = [split(X, np.arange(308.0), seed) for seed in range(3)]
    for one in splits:
        assert len(one.test[1]) == 31
        np.testing.assert_array_equal(np.sort(np.concatenate([one.train[1], one.test[1]])), np.arange(308))
    assert len({tuple(one.test[1]) for one in splits}) == 3
    np.testing.assert_array_equal(splits[1].test[1], split(X, np.arange(308.0), 1).test[1])


def test_features_are_normalised_by_the_training_set_alone():
    constant = np.column_stack([X, np.ones(308)])
    one = split(constant, np.arange(308.0), 0)
    np.testing.assert_allclose(one.train[0].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(one.train[0][:, :6].std(axis=0), 1)
    assert np.isfinite(one.test[0]).all()
    spoilt = constant.copy()
    spoilt[one.test[1].astype(int)] *= 100
    np.testing.assert_allclose(split(spoilt, np.arange(308.0), 0).train[0], one.train[0])


def test_cross_validation_does_not_see_the_test_set():
    outer, inner = (split(X, np.arange(308.0), 4, inner=inner) for inner in (False, True))
    seen = np.concatenate([inner.train[1], inner.test[1]])
    assert not np.isin(outer.test[1], seen).any()
    assert len(inner.test[1]) == 28
    assert len(np.unique(seen)) == 277


def test_the_cooling_load_has_the_inputs_of_energy(tmp_path, monkeypatch):
    """From a local file, or from the last columns of what is downloaded; other numbers are refused."""
    inputs, cooling = RANDOM.normal(size=(768, 8)), np.round(RANDOM.uniform(10, 48, 768), 2)
    digest = hashlib.sha256(np.round(100 * cooling).astype("<i8").tobytes()).hexdigest()
    monkeypatch.setattr(datasets, "_COOLING_SHA256", digest)
    folder = tmp_path / "energy"
    folder.mkdir()
    np.savetxt(folder / "data.txt", np.column_stack([inputs, cooling[::-1]]), fmt="%.2f")
    np.savetxt(folder / "cooling.txt", cooling, fmt="%.2f")
    x, y = load("cooling", tmp_path)
    np.testing.assert_allclose(x, inputs, atol=0.005)
    np.testing.assert_array_equal(y, cooling)
    table = np.column_stack([inputs, cooling[::-1], cooling, inputs[:, :2]])
    np.savetxt(tmp_path / "file.csv", table, fmt="%.2f", delimiter=",", header="names")
    monkeypatch.setattr(datasets, "_download", lambda *_: tmp_path / "file.csv")
    np.testing.assert_array_equal(datasets.cooling_loads(), cooling)
    np.savetxt(folder / "cooling.txt", cooling[::-1], fmt="%.2f")
    with pytest.raises(DatasetError, match=r"cooling\.txt is damaged, or not"):
        load("cooling", tmp_path)


def test_missing_data_are_named(tmp_path):
    options = replace(UCI.options(quick=True), data=tmp_path)
    with pytest.raises(DatasetError, match=r"yacht/data\.txt"):
        UCI.measure(options, {})


# --- The recipes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAPER.data_sets)
@pytest.mark.parametrize("method", BASELINES)
def test_the_recipe_of_the_paper_is_algorithm_1(name, method):
    """Equation 9 from the first step, scheme `left`, θ^ζ(J) as weights, and the numbers that the paper states."""
    model, flattening = PAPER.settings(name, method)
    kernel = make_kernel(method, model.temperature, flattening, burn_in=1000)
    assert isinstance(kernel.rule, Original)
    assert type(kernel.rule) is Original  # and not `Biased`
    assert (kernel.scheme, kernel.weights, kernel.learns) == ("left", "step", True)
    np.testing.assert_allclose(kernel.omega(jnp.array([1, 10_000])), [10 / 1001, 10 / 2000])
    assert (kernel.dynamics.temperature, kernel.zeta) == PAPERS[name]
    assert (kernel.partition.width, kernel.dynamics.step_size) == (100.0, 5e-6)
    assert getattr(kernel.dynamics, "momentum", 0.9) == 0.9
    assert flattening.tempering == 1.0


def test_the_temperatures_and_zetas_are_those_of_table_1():
    stated = {"cooling": (1, 1), "concrete": (5, 1), "yacht": (1, 2.5), "wine": (5, 10)}
    assert {name: PAPERS[name] for name in PAPER.data_sets} == stated


@pytest.mark.parametrize("epochs", [1, 7, 5000])
def test_fifty_models_at_the_end_of_a_run(epochs):
    """One every 40 epochs in the last 40% of the full run; in a shorter run as many as there are steps."""
    model, _ = papers_settings("wine")
    steps, burn_in, thin = steps_of(model, epochs, 28)
    assert steps == 28 * epochs
    assert (steps - burn_in) // thin == 50 or steps < 50
    if epochs == 5000:
        assert (burn_in, thin) == (3000 * 28, 40 * 28)


def test_what_was_chosen_is_recorded():
    for name in BEST.data_sets:
        for family in BASELINES:
            model, flattening = chosen(name, family)
            assert (model.temperature, flattening.zeta) == PAPERS[name]
            tried = scores()[name][family]["scores"]
            for method, settings in ((BASELINES[family], model), (family, flattening)):
                finite = [one for one in tried if one["method"] == method and one["rmse"] is not None]
                best = min(finite, key=lambda one: one["rmse"])
                assert all(best[key] == value for key, value in vars(settings).items())


def test_a_cell_learns(data):
    """300 epochs take the RMSE from the targets' deviation of about 2 well below it, in the units of the target."""
    model = Model(1.0, "tanh", True, 0.1, 0.5)
    cell = measure(
        "CSGHMC", load_splits("yacht", 2, data), model, LearntAfterBurnIn(2.0, -200.0, 10, 10.0, 1.0), 300,
        progress=False,
    )  # fmt: skip
    assert max(cell.rmse) < 0.3 * Y.std()
    assert len(cell.nll) == len(cell.coverage) == 2
    assert 1 <= min(cell.effective_models) <= max(cell.effective_models) < 50
    assert np.isfinite(cell.nll).all()


def test_the_energy_of_the_paper_is_the_sum_of_squares():
    likelihood = likelihood_of(papers_settings("yacht")[0])
    targets = jnp.array([1.0, 2.0, 5.0])
    np.testing.assert_allclose(likelihood.log_density(jnp.array([1.0, 0.0, 2.0]), targets), [0, -4, -9], rtol=1e-6)


# --- The study ---------------------------------------------------------------------------------------


def made_up(rmse):
    """A cell in which everything is the RMSE, which has one number for each split."""
    listed = np.asarray(rmse, float).tolist()
    return Cell(*[listed] * 5, [0.0] * 5, [0.9, 1.1], [0.5, 2.0], 1.0)


def record_of(change=None):
    """A record of ten splits that has the paper's means, with a change of some cells of the first recipe."""
    noise = 0.001 * np.array([-3, -2, -2, -1, 0, 0, 1, 2, 2, 3])
    record = {"epochs": 5000, "splits": 10, "models": 50, "cells": {}}
    for key, recipe in RECIPES.items():
        for name in recipe.data_sets:
            row = {m: made_up(PAPERS_TABLE[m].get(name, (0.4, 0))[0] + noise * (1 + i)) for i, m in enumerate(METHODS)}
            if key == "paper":
                row |= {method: cell for (place, method), cell in (change or {}).items() if place == name}
            plain = {method: None if cell is None else vars(cell) for method, cell in row.items()}
            record["cells"].setdefault(key, {})[name] = plain
    return json.loads(json.dumps(record))


def verdicts(record):
    return {claim.key: claim.verdict.outcome for claim in UCI.conclude(record).claims}


def test_the_papers_own_numbers_agree_with_the_paper():
    found = verdicts(record_of())
    assert {outcome for key, outcome in found.items() if not key.startswith("best-")} == {"agrees"}
    assert found["best-heating-csgld"] == "undecided"  # a tie
    assert found["best-yacht-csghmc"] == "differs"  # the paper's own number for Yacht, where SGHMC is better


def test_claims_differ_and_are_undecided_as_they_should():
    spread = np.linspace(-1, 1, 10)
    found = verdicts(
        record_of(
            {
                ("cooling", "CSGLD"): made_up(1.2 + 0.001 * spread),  # worse than SGLD and than the paper
                ("concrete", "CSGLD"): made_up(4.12 + spread),  # as SGLD, with much noise
                ("wine", "CSGLD"): None,
                ("yacht", "SGD"): None,
            }
        )
    )
    assert found["energy-csgld"] == found["energy-csgld-rmse"] == "differs"
    assert found["concrete-csgld"] == found["concrete-csgld-rmse"] == "undecided"
    assert found["wine-csgld"] == found["wine-csgld-rmse"] == "differs"
    assert found["yacht-csgld"] == found["yacht-sgld-sgd"] == "agrees"
    assert found["yacht-sgd-rmse"] == "differs"
    assert found["energy-sgld-sgd"] == found["wine-csghmc"] == "agrees"


def test_an_exact_tie_is_undecided():
    """CSGLD that is SGLD to the last bit, as where θ does not move."""
    same = made_up(0.55 + 0.01 * np.arange(10))
    assert verdicts(record_of({("wine", "CSGLD"): same, ("wine", "SGLD"): same}))["wine-csgld"] == "undecided"


def test_a_contour_method_is_compared_with_the_better_baseline():
    claims = UCI.conclude(record_of({("cooling", "SGD"): made_up([1.05] * 10)})).claims
    assert "CSGLD minus SGD" in next(claim.ours for claim in claims if claim.key == "energy-csgld")


def test_keys_are_unique_and_notes_have_both_tables():
    outcome = UCI.conclude(record_of())
    keys = [claim.key for claim in outcome.claims]
    assert len(keys) == len(set(keys)) == 48
    notes = "\n".join(outcome.notes)
    assert "| CSGLD − SGLD | -0.060 ± 0.001 |" in notes
    assert "1.080 ± 0.001 (1.08)" in notes
    assert list(outcome.figures) == ["table1-paper", "table1-best"]


def invented(method, splits, model, flattening, epochs, *, progress):
    """Contour methods are better by 0.1 on every split; M-SGD diverges."""
    if method == "M-SGD":
        raise DivergenceError("it met a number that is not finite", None)
    return made_up(0.6 + np.arange(len(splits)) / 10 - (0.1 if flattening else 0.0))


def run_study(data, parts, epochs=None):
    record = {}
    options = replace(UCI.options(epochs, quick=True, data=data), parts=parts)
    return UCI.measure(options, record), record


@pytest.mark.usefixtures("untyped")
def test_the_study_measures_both_recipes(data, monkeypatch):
    monkeypatch.setattr(cells, "measure", invented)
    finished, record = run_study(data, None)
    assert finished
    record = json.loads(json.dumps(record))  # plain data
    assert (record["epochs"], record["splits"], record["models"]) == (200, 2, 50)
    for key in RECIPES:
        assert list(record["cells"][key]["yacht"]) == list(METHODS)
        assert record["cells"][key]["yacht"]["M-SGD"] is None
        assert record["settings"][key]["yacht"].keys() == FAMILIES.keys()
    assert record["settings"]["paper"]["yacht"]["CSGLD"]["flattening"]["zeta"] == 2.5
    claims = {claim.key: claim for claim in UCI.conclude(record).claims}
    assert claims["yacht-csgld"].ours.startswith("RMSE of CSGLD minus SGD, the better baseline: -0.100")
    assert claims["yacht-m-sgd-rmse"].ours == "diverged"


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_a_study_that_was_cut_does_not_measure_its_cells_again(data, tmp_path, monkeypatch, end):
    """Ctrl-C leaves what there is in the record; a process that ends otherwise, as by SIGKILL, leaves the parts."""
    calls, parts = [], tmp_path / "parts"

    def counted(method, *arguments, **options):
        calls.append(method)
        if len(calls) == 5:
            raise end
        return invented(method, *arguments, **options)

    monkeypatch.setattr(cells, "measure", counted)
    if end is KeyboardInterrupt:
        finished, record = run_study(data, parts)
        assert not finished
        assert list(record["cells"]["paper"]["yacht"]) == ["SGD", "SGLD", "CSGLD", "M-SGD"]
    else:
        with pytest.raises(SystemExit):
            run_study(data, parts)
    assert len(list(parts.iterdir())) == 4
    finished, record = run_study(data, parts)
    assert finished
    assert calls == ["SGD", "SGLD", "CSGLD", "M-SGD", "SGHMC", "SGHMC", "CSGHMC", *METHODS]
    assert record["cells"]["paper"]["yacht"]["M-SGD"] is None


@pytest.mark.usefixtures("untyped")
def test_cells_of_another_length_are_not_taken(data, tmp_path, monkeypatch):
    calls = []

    def counted(method, *arguments, **options):
        calls.append(method)
        return invented(method, *arguments, **options)

    monkeypatch.setattr(cells, "measure", counted)
    for epochs in (50, 60, 60):
        run_study(data, tmp_path / "parts", epochs)
    assert len(calls) == 2 * 2 * len(METHODS)


@pytest.mark.parametrize("names", [("yacht",), PAPER.data_sets], ids=len)
def test_the_legend_fits_the_figure(names):
    """A quick run has one data set, and a narrow figure."""
    figure = draw({name: dict.fromkeys(METHODS, made_up([0.5, 0.7])) for name in names})
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= figure.bbox.x0
    assert legend.x1 <= figure.bbox.x1
    plt.close(figure)


# --- The search and the readings ---------------------------------------------------------------------


@pytest.mark.usefixtures("untyped")
def test_a_search_writes_where_it_is_told_and_goes_on_from_there(data, tmp_path, monkeypatch):
    """Nothing is run that the package's file, or the user's, already has."""
    packaged, out, calls = FILE.read_bytes(), tmp_path / "new" / "search.json", []

    def counted(method, *arguments, **options):
        calls.append(method)
        rmse = 1.0 + 0.01 * len(calls)  # the first setting of each kind is the best
        return replace(made_up([rmse]), energies=[0.0, 10.0, 100.0, 900.0, 1000.0])

    monkeypatch.setattr(search, "measure", counted)
    search.main(["yacht", "--data", str(data), "--out", str(out)])
    assert calls == []
    assert json.loads(out.read_text()) == scores()
    search.main(["yacht", "--data", str(data), "--out", str(out), "--anew"])
    assert [calls.count(method) for method in ("SGLD", "CSGLD", "SGHMC", "CSGHMC")] == [9, 12, 9, 12]
    found = json.loads(out.read_text())
    assert found.keys() == {"yacht"}
    assert found["yacht"]["CSGLD"]["model"] == vars(Model(1.0, "relu", False, 0.25, 0.1))
    assert found["yacht"]["CSGLD"]["flattening"] == vars(LearntAfterBurnIn(2.5, -100.0, 12, 0.3, 1.0))
    del found["yacht"]["CSGHMC"]["scores"][-1]
    out.write_text(json.dumps(found))
    calls.clear()
    search.main(["yacht", "--data", str(data), "--out", str(out)])
    assert calls == ["CSGHMC"]
    assert FILE.read_bytes() == packaged


def test_a_search_names_the_data_sets_it_knows(tmp_path, capsys):
    with pytest.raises(SystemExit):
        search.main(["moon", "--out", str(tmp_path / "search.json")])
    assert "there is no data set 'moon'; choose from energy, concrete" in capsys.readouterr().err


@pytest.mark.usefixtures("untyped")
def test_readings_go_on_from_their_file_and_find_the_closest(tmp_path, monkeypatch, capsys):
    """The recipe is the only reading here that has the paper's numbers."""
    out, calls = tmp_path / "readings.json", []

    def counted(method, splits, model, flattening, epochs, *, progress):
        calls.append(method)
        error = 1.0 if len(calls) > 20 else PAPERS_TABLE[method][PAPER.data_sets[max(len(calls) - 5, 0) // 4]][0]
        return made_up([error, error])

    monkeypatch.setattr(readings, "measure", counted)
    monkeypatch.setattr(readings, "load_splits", lambda name, seeds, data: [split(X, Y, seed) for seed in range(2)])
    readings.main(["--out", str(out)])
    record = json.loads(out.read_text())
    distances = {reading: readings.distance(names) for reading, names in record["baselines"].items()}
    assert distances["recipe"] < 1e-9 < min(one for reading, one in distances.items() if reading != "recipe")
    assert "| recipe | 0% |" in capsys.readouterr().out
    made = len(calls)
    readings.main(["--out", str(out)])
    assert len(calls) == made


# --- The committed records ---------------------------------------------------------------------------


def test_the_committed_record_gives_claims_and_figures():
    record = json.loads((RESULTS / "uci.json").read_text(encoding="utf-8"))
    assert (record["about"]["length"], record["about"]["seeds"]) == (UCI.full.length, UCI.full.seeds)
    for key, recipe in RECIPES.items():
        assert list(record["cells"][key]) == list(recipe.data_sets)
        for name in recipe.data_sets:
            assert record["settings"][key][name] == json.loads(json.dumps(recipe.described(name)))
    outcome = UCI.conclude(record)
    assert {claim.verdict.outcome for claim in outcome.claims} <= {"agrees", "differs", "undecided"}
    assert all("nan" not in claim.ours for claim in outcome.claims)
    for drawing in outcome.figures.values():
        plt.close(drawing.draw())


def test_the_recipe_explains_the_baselines_of_the_paper():
    """Other units of the targets, another scale of the energy and another activation do not."""
    record = json.loads((RESULTS / "readings.json").read_text(encoding="utf-8"))
    distances = {reading: readings.distance(names) for reading, names in record["baselines"].items()}
    assert distances["recipe"] < 0.08
    for reading in ("mean of the squares", "normalised targets", "tanh"):
        assert distances[reading] > 0.12
    assert "| recipe | 6% |" in readings.table(record)
