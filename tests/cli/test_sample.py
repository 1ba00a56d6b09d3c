"""`contourmc sample FILE.py:energy`: a page, its numbers and the draws; clear messages for bad input."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import contourmc as cm
from contourmc.cli.main import app

MINE = """
import os
import jax.numpy as jnp

os.chdir(os.path.dirname(__file__) + "/elsewhere")
start = jnp.array([1.0, 0.0])

def energy(x):
    return 8 * (x[0] ** 2 - 1) ** 2 + x[1] ** 2 / 2

def named(x):
    return jnp.sum(x["a"] ** 2) + x["b"] ** 2
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A file of the user's, which goes to another directory when it is loaded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def call(*arguments):
    return CliRunner().invoke(app, ["sample", *map(str, arguments)])


def test_a_report_on_a_function_of_the_user(mine, tmp_path):
    """Two wells of equal mass: each to 0.1, with a standard error of 0.02. The results are where the command began."""
    out = tmp_path / "out"
    arguments = (f"{mine}:energy", "--init", "[1.0, 0.0]", "--steps", 20_000, "--chains", 4, "--out")
    result = call(*arguments, "out")
    assert result.exit_code == 0, result.output
    assert "Written: out/report.html" in result.output
    assert not list((tmp_path / "elsewhere").iterdir())
    assert "x[1]" in result.output
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["interrupted"] is False
    assert [mode["mass"] for mode in summary["modes"]] == pytest.approx([0.5, 0.5], abs=0.1)
    assert summary["coordinates"]["x[1]"]["standard_deviation"] == pytest.approx(1, abs=0.1)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Found by a pilot" in page
    assert f"contourmc sample {mine}:energy" in page
    assert cm.Samples.load(out / "draws.nc").settings == summary["settings"]
    draws = (out / "run" / "draws-0.zarr" / "draws" / "x" / "c" / "0" / "0" / "0").stat()
    again = call(*arguments, out)  # there is nothing left to do
    assert again.exit_code == 0
    assert (out / "run" / "draws-0.zarr" / "draws" / "x" / "c" / "0" / "0" / "0").stat() == draws
    other = call(*arguments, out, "--seed", 1)
    assert other.exit_code == 2
    assert "seed was 0 and is 1 now" in " ".join(other.output.split())


@pytest.mark.parametrize(
    ("target", "init", "words"),
    [
        ("energy", "0.0", "FILE.py:NAME"),
        ("nowhere.py:energy", "0.0", "no file"),
        ("{mine}:other", "0.0", "energy, named"),
        ("{mine}:energy", "[1.0", "write numbers"),
        ("{mine}:energy", "0.0", "at an init of shape"),
        ("{mine}:energy", "[nan, 0.0]", "init"),
    ],
)
def test_bad_input_is_named(mine, tmp_path, target, init, words):
    result = call(target.format(mine=mine), "--init", init, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


@pytest.mark.parametrize("name", ["report.html", "draws.nc", "summary.json"])
def test_files_of_others_are_not_replaced(mine, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("years of work")
    result = call(f"{mine}:energy", "--init", "start", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert f"already holds {name}; choose another --out, or add --force" in " ".join(result.output.split())
    assert (tmp_path / "out" / name).read_text() == "years of work"


@pytest.mark.usefixtures("untyped")
def test_a_run_that_was_interrupted_before_its_first_draw_writes_nothing(mine, tmp_path, monkeypatch):
    monkeypatch.setattr(cm, "sample", lambda *_, **__: SimpleNamespace(energies=np.zeros((4, 0))))
    result = call(f"{mine}:energy", "--init", "start", "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert "before the first draw" in result.output
    assert not (tmp_path / "out").exists()


def test_what_is_missing_for_the_report_is_named_before_any_sampling(mine, tmp_path, monkeypatch):
    def missing(module, extra):
        raise ImportError(f"{module}: pip install 'contourmc[{extra}]'")

    monkeypatch.setattr("contourmc.draws.report.page.import_extra", missing)
    result = call(f"{mine}:energy", "--init", "start", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install 'contourmc[report]'" in result.output
    assert not (tmp_path / "out").exists()


def test_a_file_that_fails_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    result = call(f"{tmp_path / 'broken.py'}:energy", "--init", "0.0")
    assert result.exit_code == 2
    assert "ZeroDivisionError" in result.output
