"""The files of a study: its numbers, a report on the paper's claims, and the figures."""

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from contourmc.studies.base import Claim, Options, Outcome, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("the paper", "our measurement", "agrees if", "verdict")
_VERDICTS = (
    "The paper states most of these claims in words. A verdict compares our measurement with a tolerance that we chose;"
    " several were set after the first results had been seen."
)
_TOO_SHORT = "A shorter run than the full study: its numbers are too rough to judge the paper's claims."


def write(study: Study, options: Options, outcome: Outcome, seconds: float, out: Path) -> list[Path]:
    """Write results.json, report.md and every figure as PNG and PDF; returns the files."""
    about = {
        "study": study.name,
        "length": options.size.length,
        "seeds": options.size.seeds,
        "quick": options.quick,
        "interrupted": outcome.interrupted,
        "seconds": round(seconds, 1),
        "jax": jax.__version__,
        "machine": platform.machine(),
    }
    files = [out / "results.json", out / "report.md"]
    files[0].write_text(json.dumps({"about": about, **outcome.results}, indent=2) + "\n", encoding="utf-8")
    files[1].write_text(_report(study, options, outcome, seconds), encoding="utf-8")
    files += [file for name, figure in outcome.figures.items() for file in _save(figure, out / name)]
    return files


def row(claim: Claim, options: Options) -> tuple[str, str, str, str]:
    """A claim as a row of the table."""
    if claim.verdict is None:
        return claim.paper, claim.ours, "–", "–"
    words = {True: "agrees", False: "differs", None: "too noisy to tell"}
    verdict = words[claim.verdict.agrees] if options.conclusive else "too short to judge"
    return claim.paper, claim.ours, claim.verdict.tolerance, verdict


def _save(figure: "Figure", stem: Path) -> list[Path]:
    """Write a figure as PNG and PDF, and close it."""
    import matplotlib.pyplot as plt

    files = [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
    for file in files:
        figure.savefig(file, dpi=130)
    plt.close(figure)
    return files


def _report(study: Study, options: Options, outcome: Outcome, seconds: float) -> str:
    made = f"Made by `contourmc reproduce {study.name}{' --quick' if options.quick else ''}` in {seconds:.0f} s."
    lines = [f"# {study.title}", "", study.summary, ""]
    if outcome.interrupted:
        lines += ["**Interrupted**: no claim is judged; results.json has what had been measured by then.", "", made]
        return "\n".join(lines) + "\n"
    if not options.conclusive:
        lines += [_TOO_SHORT, ""]
    lines += [_markdown(COLUMNS), "|---" * len(COLUMNS) + "|"]
    lines += [_markdown(row(claim, options)) for claim in outcome.claims]
    lines += ["", *(f"{note}\n" for note in outcome.notes), *([f"{_VERDICTS}\n"] if options.conclusive else [])]
    lines += [f"![{name}]({name}.png)\n" for name in outcome.figures]
    return "\n".join([*lines, made]) + "\n"


def _markdown(cells: tuple[str, ...]) -> str:
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
