"""Table 1: splits, a cell on invented data, the table made of cells, and the search for settings."""

import json

import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from contourmc.cli.main import app
from contourmc.engine.run import DivergenceError
from contourmc.studies.uci import search, table
from contourmc.studies.uci.cells import (
    BASELINES,
    FAMILIES,
    FILE,
    PAPERS,
    Cell,
    Flattening,
    Model,
    chosen,
    load_splits,
    measure,
    scores,
    split,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(3.0, 2.0, size=(308, 6))
Y = 5 + 3 * np.tanh(X[:, 0] - 3) + 0.1 * RANDOM.normal(size=308)


def call(*words):
    return CliRunner().invoke(app, ["reproduce", "uci", *map(str, words)])


@pytest.fixture
def data(tmp_path):
    """Invented data in the layout of Yacht."""
    file = tmp_path / "data" / "uci" / "yacht" / "data.txt"
    file.parent.mkdir(parents=True)
    np.savetxt(file, np.column_stack([X, Y]))
    return tmp_path / "data"


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


def test_a_cell_learns(data):
    """300 epochs take the RMSE from the targets' deviation of about 2 well below it, in the units of the target."""
    model = Model(1.0, "tanh", True, 0.1, 0.5)
    flattening = Flattening(2.0, -200.0, 10, 10.0, 1.0)
    splits = load_splits("yacht", 2, data)
    cell = measure("CSGHMC", splits, model, flattening, 300, progress=False)
    assert max(cell.rmse) < 0.3 * Y.std()
    assert len(cell.nll) == len(cell.coverage) == 2
    assert 1 <= min(cell.effective_models) <= max(cell.effective_models) < 50
    assert np.isfinite(cell.nll).all()


def test_what_was_chosen_is_recorded():
    for name in PAPERS:
        for family in BASELINES:
            model, flattening = chosen(name, family)
            assert (model.temperature, flattening.zeta) == PAPERS[name]
            tried = scores()[name][family]["scores"]
            for method, settings in ((BASELINES[family], model), (family, flattening)):
                finite = [one for one in tried if one["method"] == method and one["rmse"] is not None]
                best = min(finite, key=lambda one: one["rmse"])
                assert all(best[key] == value for key, value in vars(settings).items())


def invented(method, splits, model, flattening, epochs, *, progress):
    """Contour methods are better by 0.1 on every split; M-SGD diverges."""
    if method == "M-SGD":
        raise DivergenceError("it met a number that is not finite", None)
    rmse = RANDOM.uniform(0.5, 0.8, size=1) + np.arange(len(splits)) - (0.1 if flattening else 0.0)
    if method in FAMILIES["CSGLD"]:
        rmse = 0.6 + np.arange(len(splits)) / 10 - (0.1 if flattening else 0.0)
    listed = rmse.tolist()
    return Cell(listed, listed, listed, listed, listed, [0.0] * 5, [0.9, 1.1], 1.0)


@pytest.mark.usefixtures("untyped")
def test_a_search_writes_where_it_is_told_and_goes_on_from_there(data, tmp_path, monkeypatch):
    """Nothing is run that the package's file, or the user's, already has."""
    packaged, out, calls = FILE.read_bytes(), tmp_path / "new" / "search.json", []

    def counted(method, *arguments, **options):
        calls.append(method)
        rmse = 1.0 + 0.01 * len(calls)  # the first setting of each kind is the best
        return Cell([rmse], [0.0], [0.9], [rmse], [50.0], [0.0, 10.0, 100.0, 900.0, 1000.0], [1.0, 1.0], 0.0)

    monkeypatch.setattr(search, "measure", counted)
    search.main(["yacht", "--data", str(data), "--out", str(out)])
    assert calls == []
    assert json.loads(out.read_text()) == scores()
    search.main(["yacht", "--data", str(data), "--out", str(out), "--anew"])
    assert [calls.count(method) for method in ("SGLD", "CSGLD", "SGHMC", "CSGHMC")] == [9, 12, 9, 12]
    found = json.loads(out.read_text())
    assert found.keys() == {"yacht"}
    assert found["yacht"]["CSGLD"]["model"] == vars(Model(1.0, "relu", False, 0.25, 0.1))
    assert found["yacht"]["CSGLD"]["flattening"] == vars(Flattening(2.5, -100.0, 12, 0.3, 1.0))
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
def test_the_study_writes_its_table(data, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "measure", invented)
    result = call("--quick", "--data", data, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "0.650 ± 0.050" in result.output
    assert "0.72 ± 0.07" in result.output
    assert "-0.100 ± 0.000" in result.output
    assert "diverged" in result.output
    numbers = json.loads((tmp_path / "out" / "results.json").read_text())
    assert numbers["cells"]["yacht"]["M-SGD"] is None
    np.testing.assert_allclose(numbers["paired_differences"]["yacht"]["CSGLD"], [-0.1, -0.1])
    assert len(numbers["cross_validation"]["yacht"]["CSGLD"]) > 5
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "too short to judge" in report
    assert "| CSGLD − SGLD | -0.100 ± 0.000 |" in report
    assert (tmp_path / "out" / "table1.png").stat().st_size > 10_000


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_a_study_that_was_cut_does_not_measure_its_cells_again(data, tmp_path, monkeypatch, end):
    """Ctrl-C writes what there is; a process that ends otherwise, as by SIGKILL, writes nothing more."""
    calls, out = [], tmp_path / "out"

    def counted(method, *arguments, **options):
        calls.append(method)
        if len(calls) == 5:
            raise end
        return invented(method, *arguments, **options)

    monkeypatch.setattr(table, "measure", counted)
    words = ("--quick", "--data", data, "--out", out)
    assert call(*words).exit_code in (130, 0)
    assert len(list((out / "parts").iterdir())) == 4
    result = call(*words)
    assert result.exit_code == 0, result.output
    assert calls == ["SGD", "SGLD", "CSGLD", "M-SGD", "SGHMC", "SGHMC", "CSGHMC"]
    cells = json.loads((out / "results.json").read_text())["cells"]["yacht"]
    assert list(cells) == ["SGD", "SGLD", "CSGLD", "M-SGD", "SGHMC", "CSGHMC"]
    assert cells["M-SGD"] is None
    assert not (out / "parts").exists()
    assert "already holds results" in call(*words).output


@pytest.mark.usefixtures("untyped")
def test_cells_of_another_length_are_not_taken(data, tmp_path, monkeypatch):
    calls, out = [], tmp_path / "out"

    def counted(method, *arguments, **options):
        calls.append(method)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return invented(method, *arguments, **options)

    monkeypatch.setattr(table, "measure", counted)
    call("--quick", "--data", data, "--out", out, "--epochs", 50)
    assert call("--quick", "--data", data, "--out", out, "--epochs", 60).exit_code == 0
    assert calls == ["SGD", "SGLD", "SGD", "SGLD", "CSGLD", "M-SGD", "SGHMC", "CSGHMC"]


def test_missing_data_are_named(tmp_path):
    result = call("--quick", "--data", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "there is no folder" in result.output
    result = call("--quick", "--data", tmp_path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "yacht/data.txt" in result.output.replace("\n", "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("names", [("yacht",), tuple(PAPERS)], ids=len)
def test_the_legend_fits_the_figure(names):
    """A quick run has one data set, and a narrow figure."""
    cell = Cell(*[[0.5, 0.7]] * 5, [0.0] * 5, [0.9, 1.1], 1.0)
    figure = table._figure({name: dict.fromkeys(table.PAPERS_TABLE, cell) for name in names})
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= figure.bbox.x0
    assert legend.x1 <= figure.bbox.x1
    plt.close(figure)
