"""Every study runs from the command line, writes what it promises, and refuses nonsense."""

import json

import pytest
from typer.testing import CliRunner

from contourmc.cli import app
from contourmc.studies import STUDIES


def call(*words: str):
    return CliRunner().invoke(app, ["reproduce", *words])


@pytest.mark.parametrize("name", list(STUDIES))
def test_quick_versions_write_report_numbers_and_figures(name, tmp_path):
    result = call(name, "--quick", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    numbers = json.loads((tmp_path / "results.json").read_text())
    assert numbers["about"]["study"] == name
    report = (tmp_path / "report.md").read_text()
    assert "| the paper | our measurement | |" in report
    figures = list(tmp_path.glob("*.png"))
    assert figures
    for figure in figures:
        assert figure.stat().st_size > 10_000
        assert figure.with_suffix(".pdf").exists()
        assert f"]({figure.name})" in report
    again = call(name, "--quick", "--out", str(tmp_path))
    assert again.exit_code == 2
    assert "already holds results" in again.output


def test_the_list_explains_each_study():
    shown = call("--list").output
    for study in STUDIES.values():
        assert study.name in shown
        assert len(study.summary) > 30


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
