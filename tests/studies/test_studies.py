"""Every study runs from the command line and writes what it promises."""

import json

import pytest
from typer.testing import CliRunner

from contourmc.cli.main import app
from contourmc.kernels.base import Kernel
from contourmc.studies import multimodal
from contourmc.studies.catalogue import SIMULATIONS

CLAIMS = {"gaussian-mixture": 10, "trajectories": 7, "bizarre-peaks": 5, "multimodal-2d": 6, "theory": 9}


def call(*words: str):
    return CliRunner().invoke(app, ["reproduce", *words])


@pytest.mark.parametrize("name", [study.name for study in SIMULATIONS])
def test_quick_versions_write_report_numbers_and_figures(name, tmp_path):
    result = call(name, "--quick", "--steps", "10000", "--seeds", "2", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    numbers = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert numbers["about"]["study"] == name
    assert numbers["about"]["interrupted"] is False
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    _, _, table = report.partition("| the paper | our measurement | agrees if | verdict |\n|---|---|---|---|\n")
    claims = [line.split(" | ") for line in table.split("\n\n")[0].splitlines()]
    assert len(claims) == CLAIMS[name]
    assert {claim[-1] for claim in claims} <= {"too short to judge |", "– |"}  # however clear they look
    assert "too short to judge |" in {claim[-1] for claim in claims}
    figures = list(tmp_path.glob("*.png"))
    assert figures
    for figure in figures:
        assert figure.stat().st_size > 10_000
        assert figure.with_suffix(".pdf").exists()
        assert f"]({figure.name})" in report
    again = call(name, "--quick", "--out", str(tmp_path))
    assert again.exit_code == 2
    assert "already holds results" in again.output


@pytest.mark.parametrize("method", multimodal.METHODS.values(), ids=[repr(name) for name in multimodal.METHODS])
def test_every_setting_of_the_search_is_a_kernel(method):
    """A quick run tries few of them."""
    assert len(set(method.grid)) == 12
    kernels = [method.make(*numbers) for numbers in method.grid]
    assert all(isinstance(kernel, Kernel) for kernel in kernels)
    assert len(set(kernels)) == 12
