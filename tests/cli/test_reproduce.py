"""`contourmc reproduce`: the list of studies, their help, and wrong calls. The studies run in tests/studies."""

import json
import sys
from types import ModuleType

import pytest
from typer.testing import CliRunner

from contourmc.cli.main import app
from contourmc.studies.base import Claim, Outcome, Size, Study
from contourmc.studies.catalogue import SIMULATIONS, UCI


def call(*words: str):
    return CliRunner().invoke(app, ["reproduce", *words], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})


@pytest.mark.parametrize("option", ["--list", "--help"])
def test_every_study_is_listed_and_explained(option):
    shown = call(option)
    assert shown.exit_code == 0
    for study in (*SIMULATIONS, UCI):
        assert study.name in shown.output
        assert study.summary[:40] in shown.output
    assert "Table 2: ResNet-20 on CIFAR-10" in shown.output


def test_every_study_explains_its_options():
    for study in (*SIMULATIONS, UCI):
        shown = call(study.name, "--help").output
        assert "--quick" in shown
        assert "--force" in shown
        assert study.summary[:40] in shown


def test_nonsense_is_refused(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for words in (
        ("no-such-study",),
        ("theory", "--steps", "-5"),
        ("theory", "--seeds", "0"),
        ("theory", "--out", str(file / "below")),
    ):
        result = call(*words)
        assert result.exit_code == 2
        assert "error" in result.output.lower()


def test_the_command_that_is_imported_late_shows_its_own_options():
    shown = call("cifar", "--help")
    assert shown.exit_code == 0, shown.output
    assert "--algorithm" in shown.output
    assert "reproduce cifar" in shown.output


def test_all_runs_every_study_and_names_what_has_no_data(tmp_path, monkeypatch):
    """Two small studies in place of the simulations; the folder of the data is empty."""
    module = ModuleType("tiny")
    module.measure = lambda options, record: record.update(quick=options.quick)  # type: ignore[attr-defined]
    module.conclude = lambda record: Outcome([Claim("key", "the paper", "ours", None)])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiny", module)
    size = Size(1, 1)
    tiny = tuple(Study(name, "summary", name.title(), "tiny", size, size) for name in ("first", "second"))
    monkeypatch.setattr("contourmc.cli.reproduce.SIMULATIONS", tiny)
    (tmp_path / "data").mkdir()
    result = call("all", "--quick", "--out", str(tmp_path / "out"), "--data", str(tmp_path / "data"))
    assert result.exit_code == 2
    for name in ("first", "second"):
        record = json.loads((tmp_path / "out" / f"{name}-quick" / "results.json").read_text(encoding="utf-8"))
        assert record["quick"] is True
    assert "left out: uci: there is no file" in result.output
    assert "cifar: there is no file" in result.output


def test_a_page_needs_records(tmp_path):
    result = call("page", "--records", str(tmp_path), "--out", str(tmp_path / "paper.md"))
    assert result.exit_code == 2
    assert "algorithm.json" in result.output
    assert not (tmp_path / "paper.md").exists()
