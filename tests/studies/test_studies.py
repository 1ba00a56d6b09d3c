"""Every study runs from the command line and writes what it promises."""

import json
import re

import pytest
from typer.testing import CliRunner

from contourmc.cli.main import app
from contourmc.kernels.base import Kernel
from contourmc.studies import multimodal
from contourmc.studies.catalogue import SIMULATIONS
from contourmc.studies.report import read_record, write_record

CLAIMS = {
    "algorithm": 6,
    "gaussian-mixture": 16,
    "trajectories": 7,
    "multimodal-2d": 8,
    "theory": 22,
    "bizarre-peaks": 7,
    "partition": 9,
    "samc": 9,
}


def call(*words: str):
    return CliRunner().invoke(app, ["reproduce", *words])


@pytest.mark.parametrize("name", [study.name for study in SIMULATIONS])
def test_quick_versions_write_record_report_and_figures(name, tmp_path):
    result = call(name, "--quick", "--steps", "4000", "--seeds", "2", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert record["about"]["study"] == name
    assert record["about"]["interrupted"] is False
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
        assert re.search(
            rf"\]\({figure.name}\)\n\n\S.*u₁|\]\({figure.name}\)\n\n\S.*ζ|\]\({figure.name}\)\n\n\S", report
        )
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


def test_the_exploration_stage_is_cold_and_its_draws_are_left_out():
    stages = multimodal.Stages(100)
    sampled = [step for step in (1, 25, 26, 100, 101, 126) if stages.sampling(step)]
    assert sampled == [26, 100, 126]


def test_a_record_survives_writing_and_reading(tmp_path):
    record = {"a": [1, 2.5, None], "b": {"ζ": [[1, 2], []], "c": {}}, "d": [{"e": 1}, {"e": 'x"y'}], "f": "text"}
    write_record(record, tmp_path / "record.json")
    assert read_record(tmp_path / "record.json") == record
    assert '"a": [1, 2.5, null]' in (tmp_path / "record.json").read_text(encoding="utf-8")
