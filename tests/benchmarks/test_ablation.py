"""What each part of contourmc contributes: the command, its records, and the table on the page."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.ablation import METHODS, Record, Records, Result, main, mode_changes, table, total_variation
from benchmarks.gallery.outcome import Budget
from typer import Typer
from typer.testing import CliRunner

from contourmc.problems import gallery

ROOT = Path(__file__).parents[2]
RECORDS, PAGE = ROOT / "results" / "ablation" / "cells.jsonl", ROOT / "docs" / "gallery.md"
MIXTURE = gallery()["mixture"]
BUDGET = Budget(1000, 10)


def call(*arguments: object) -> str:
    app = Typer()
    app.command()(main)
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False).output


def record(method: str, seed: int, error: float) -> Record:
    return Record("mixture", method, seed, 1000, 10, "0", {"sampling": 1000}, error, 10 * seed, 20_000, {}, "")


def test_the_command_runs_all_methods_at_equal_evaluations_and_then_has_nothing_to_do(untyped, monkeypatch, tmp_path):
    """Without type checks, as `AlgorithmOne` has numbers for settings, and here they are traced."""
    monkeypatch.setattr("benchmarks.ablation.WIDTHS", (1.0,))
    monkeypatch.setattr("benchmarks.ablation.STEP_SIZES", (0.1, 0.03))
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- ablation -->\nOLD\n<!-- end of ablation -->\nAfter.\n")
    arguments = ["--problems", "mixture", "--seeds", 1, "--steps", 2000, "--out", tmp_path, "--page", page]
    first = call(*arguments)
    file = tmp_path / "cells.jsonl"
    lines = {line["method"]: line for line in map(json.loads, file.read_text().splitlines())}
    assert list(lines) == list(METHODS)
    assert all(method in first for method in METHODS)
    assert {line["evaluations"] for line in lines.values()} == {2 * 10 * 2000}
    assert {sum(line["parts"].values()) for line in lines.values()} == {2000}
    assert all(0 <= line["total_variation"] <= 1 for line in lines.values())
    assert lines["whole"]["mode_changes"] > lines["neither"]["mode_changes"]

    pilots = [lines[method]["parts"]["pilot"] for method in METHODS[:4]]
    assert len(set(pilots)) == 1
    assert pilots[0] > 0
    assert len({lines[method]["setting"]["step_size"] for method in METHODS[:4]}) == 1
    assert [lines[method]["setting"]["modes"] for method in METHODS[:4]] == [2, 0, 2, 0]
    assert [lines[method]["parts"]["learning"] > 0 for method in METHODS] == [True, True, False, False, False]

    written = page.read_text()
    assert written.startswith("Before.\n<!-- ablation -->\n10 chains × 2,000 steps, 40,000 evaluations")
    assert "\n| problem | whole | flattening alone | jumps alone | neither | CSGLD (paper) |\n" in written
    assert "\n| mixture | " in written
    assert "OLD" not in written
    assert written.endswith("<!-- end of ablation -->\nAfter.\n")

    before = file.read_bytes()
    second = call(*arguments)
    assert "seed 0" not in second
    assert file.read_bytes() == before
    assert page.read_text() == written


def test_the_page_is_made_from_the_committed_records(tmp_path):
    if not RECORDS.exists():  # as in the package of the sources
        pytest.skip("no records of measurements")
    page = tmp_path / "gallery.md"
    page.write_text(PAGE.read_text())
    call("--only-report", "--out", RECORDS.parent, "--page", page)
    assert page.read_text() == PAGE.read_text()


def test_a_chain_that_is_not_finite_counts_as_an_error_of_one():
    draws = np.broadcast_to(MIXTURE.draw(2000), (4, 2000)).copy()
    log_weights = np.zeros(draws.shape)
    exact = total_variation(MIXTURE, Result(draws, log_weights, {}, {}))
    assert exact < 0.05
    draws[1, 5] = np.nan
    assert total_variation(MIXTURE, Result(draws, log_weights, {}, {})) == pytest.approx(0.75 * exact + 0.25)
    log_weights[2, 7] = np.nan
    assert total_variation(MIXTURE, Result(draws, log_weights, {}, {})) == pytest.approx(0.5 * exact + 0.5)
    assert total_variation(MIXTURE, Result(draws * np.nan, log_weights, {}, {})) == 1.0
    assert mode_changes(MIXTURE, Result(draws * np.nan, log_weights, {}, {})) == 0.0


def test_changes_of_mode_are_counted_for_each_chain():
    draws = np.array([[-6.0, -5.0, 4.0, 5.0], [-6.0, 4.0, -6.0, 4.0], [-6.0, -6.0, -6.0, np.nan]])
    assert mode_changes(MIXTURE, Result(draws, np.zeros(draws.shape), {}, {})) == 2.0


def test_the_table_marks_ties_and_counts_by_the_differences_seed_by_seed():
    errors = {
        "whole": (0.010, 0.030, 0.020),
        "flattening alone": (0.011, 0.030, 0.020),  # a third of a thousandth above, by one standard error: a tie
        "jumps alone": (0.110, 0.131, 0.120),  # by a tenth in every seed
        "neither": (0.5, 0.5, 0.5),
    }
    found = table([record(method, seed, e) for method, row in errors.items() for seed, e in enumerate(row)], BUDGET)
    assert "| mixture | **0.020 ± 0.006** | **0.020 ± 0.005** | 0.120 ± 0.006 | 0.500 ± 0.000 |  |" in found
    assert "| runs off by more than 0.1 | 0 of 3 | 0 of 3 | 3 of 3 | 3 of 3 |  |" in found
    assert "**Flattening is needed on 1 of 1 problems.**" in found
    assert "on 1 (mixture). It exceeds it by less on none. On none `jumps alone` is at least as good" in found
    assert "| mixture | 10 | 10 | 10 | 10 |  |" in found
    assert "**Jumps are needed on 0 of 1 problems.**" in found
    assert "on none. It exceeds it by less on 1 (mixture). On none `flattening alone` is at least as good" in found


def test_one_seed_has_no_standard_error_and_nothing_is_counted():
    found = table([record("whole", 0, 0.02), record("jumps alone", 0, 0.01)], BUDGET)
    assert "| mixture | 0.020 |  | **0.010** |  |  |" in found
    assert "needed" not in found


def test_the_setting_of_csgld_is_found_once_for_all_seeds_of_a_version(tmp_path):
    records, setting = Records(tmp_path / "cells.jsonl"), {"low": 2.0, "width": 1.0, "step_size": 0.1, "bins": 50}
    first = record("CSGLD (paper)", 0, 0.1)._replace(setting=setting)
    records.add(first)
    again = Records(tmp_path / "cells.jsonl")
    assert again.found == {first[:6]: first}
    assert again.choice(first._replace(seed=1)[:6]) == (2.0, 1.0, 0.1)
    assert again.choice(first._replace(version="another")[:6]) is None
