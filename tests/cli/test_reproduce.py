"""`contourmc reproduce`: the list of studies, their help, and wrong calls. The studies run in tests/studies."""

import pytest
from typer.testing import CliRunner

from contourmc.cli.main import app
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
