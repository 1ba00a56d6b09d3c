"""The measurements as tables: on the screen, as Markdown for the documentation, and as data."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.gallery.measure import METHODS, Measurement
from contourmc.problems import gallery

GOOD = 0.1  # total variation


@dataclass(frozen=True)
class Summary:
    """All seeds of a method on a problem. Of the runs that did not diverge, None if all did:
    error, worst: the mean and the largest.  evaluations, seconds: means.  compile_seconds: the largest.
    trusted: how many say of themselves that they look good; None for a method that cannot.
    """

    runs: int
    diverged: int
    error: float | None
    worst: float | None
    evaluations: float | None
    seconds: float | None
    compile_seconds: float | None
    trusted: int | None

    @property
    def cell(self) -> str:
        """The mean error, and the divergences in brackets."""
        bracket = f" ({self.diverged})" if self.diverged else ""
        return f"{_number(self.error, '.3f')}{bracket}"

    @property
    def good(self) -> bool:
        return self.worst is not None and self.worst <= GOOD and not self.diverged


def summarise(measurements: Iterable[Measurement]) -> Summary:
    """The summary of runs of one method on one problem."""
    runs = list(measurements)
    fine = [run for run in runs if not run.diverged]

    def over(name: str, reduce: Any) -> float | None:
        return float(reduce([getattr(run, name) for run in fine])) if fine else None

    verdicts = [run.trusted for run in fine if run.trusted is not None]
    return Summary(
        len(runs), len(runs) - len(fine), over("error", np.mean), over("error", max), over("evaluations", np.mean),
        over("seconds", np.mean), over("compile_seconds", max), sum(verdicts) if verdicts else None,
    )  # fmt: skip


def by_cell(measurements: Sequence[Measurement]) -> dict[str, dict[str, Summary]]:
    """The summary of every problem and method that was measured, in the gallery's order."""
    cells = {(run.problem, run.method) for run in measurements}
    return {
        problem: {
            method: summarise(run for run in measurements if (run.problem, run.method) == (problem, method))
            for method in METHODS
            if (problem, method) in cells
        }
        for problem in gallery()
        if any(problem == name for name, _ in cells)
    }


def error_table(summaries: dict[str, dict[str, Summary]]) -> Table:
    """Problems × methods, for the screen."""
    methods = [method for method in METHODS if any(method in row for row in summaries.values())]
    table = Table(title="Total variation of mode masses (diverged)", title_justify="left")
    table.add_column("problem")
    for method in methods:
        table.add_column(method, justify="right")
    for problem, row in summaries.items():
        cells = (row.get(method) for method in methods)
        table.add_row(problem, *("" if cell is None else _coloured(cell) for cell in cells))
    return table


def markdown(summaries: dict[str, dict[str, Summary]], settings: dict[str, Any]) -> str:
    """Everything that the documentation shows."""
    size = f"{settings['chains']} chains × {settings['evaluations']:,} gradient evaluations"
    lines = [
        f"{size}; seeds: {settings['seeds']}; all",
        "chains start in one mode. Error: total variation between the pooled mode masses and the truth, mean and worst",
        "over seeds. Diverged: runs with a number that is not finite, or an error; they are left out of the other",
        "columns. Trusted: runs whose `diagnose()` finds nothing wrong. Evaluations are those of a chain; seconds are",
        "without compilation, which is shown apart.",
        "",
        "| problem | method | error | worst | diverged | trusted | evaluations | seconds | compilation |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for problem, row in summaries.items():
        for method, cell in row.items():
            error = _number(cell.error, ".3f")
            cells = (
                problem, method, f"**{error}**" if cell.good else error, _number(cell.worst, ".3f"),
                f"{cell.diverged} of {cell.runs}",
                "" if cell.trusted is None else f"{cell.trusted} of {cell.runs}",
                _number(cell.evaluations, ",.0f"), _number(cell.seconds, ".1f"),
                _number(cell.compile_seconds, ".1f"),
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"Bold: no run diverged, and none is off by more than {GOOD}."]
    return "\n".join(lines) + "\n"


def write(folder: Path, measurements: Sequence[Measurement], settings: dict[str, Any]) -> None:
    """results.json and gallery.md, over those of an earlier call."""
    folder.mkdir(parents=True, exist_ok=True)
    data = settings | {"measurements": [run.plain() for run in measurements]}
    (folder / "results.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder / "gallery.md").write_text(markdown(by_cell(measurements), settings))


def _coloured(cell: Summary) -> str:
    return f"[green]{cell.cell}[/]" if cell.good else cell.cell


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
