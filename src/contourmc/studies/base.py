"""What a study is: an experiment of the paper, run again and compared with what the paper says."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """What the user asked for; None stands for the study's default.

    steps: of each chain.
    epochs: passes through the data, for a study on data.
    seeds: independent repetitions.
    quick: the same code in well under a minute, with fewer steps and seeds.
    data: the local folder of the data sets.
    """

    steps: int | None = None
    epochs: int | None = None
    seeds: int | None = None
    quick: bool = False
    data: Path | None = None

    def choose(self, *, steps: int, seeds: int, quick_steps: int, quick_seeds: int) -> tuple[int, int]:
        """The number of steps and seeds: as asked for, or else the quick or the full numbers."""
        default_steps, default_seeds = (quick_steps, quick_seeds) if self.quick else (steps, seeds)
        return self.steps or default_steps, self.seeds or default_seeds


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we measured, and whether the two agree (None: no verdict)."""

    paper: str
    ours: str
    agrees: bool | None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a study.

    claims: the paper's claims, each with our measurement.
    results: every number, as plain data.
    figures: by file name without extension.
    notes: paragraphs of Markdown below the table of claims.
    """

    claims: Sequence[Claim]
    results: Mapping[str, Any]
    figures: Mapping[str, "Figure"] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Study:
    """name: on the command line.
    summary: one line about it.
    title: of the report.
    module: where its function `run`, from Options to an Outcome, is; imported when the study runs.
    """

    name: str
    summary: str
    title: str
    module: str

    def run(self, options: Options) -> Outcome:
        """Run the experiment."""
        return import_module(self.module).run(options)


def write(study: Study, options: Options, outcome: Outcome, seconds: float, out: Path) -> list[Path]:
    """Write results.json, report.md and every figure as PNG and PDF; returns the files."""
    about = {
        "study": study.name,
        "quick": options.quick,
        "seconds": round(seconds, 1),
        "jax": jax.__version__,
        "machine": platform.machine(),
    }
    files = [out / "results.json", out / "report.md"]
    files[0].write_text(json.dumps({"about": about, **outcome.results}, indent=2) + "\n", encoding="utf-8")
    files[1].write_text(_report(study, options, outcome, seconds), encoding="utf-8")
    files += [file for name, figure in outcome.figures.items() for file in _save(figure, out / name)]
    return files


def _save(figure: "Figure", stem: Path) -> list[Path]:
    """Write a figure as PNG and PDF, and close it."""
    import matplotlib.pyplot as plt

    files = [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
    for file in files:
        figure.savefig(file, dpi=130)
    plt.close(figure)
    return files


_VERDICTS = (
    "The paper states most of these claims in words. A verdict compares our measurement with a threshold that we chose;"
    " it is in the source of the study. Several thresholds were set after the first results had been seen."
)


def _report(study: Study, options: Options, outcome: Outcome, seconds: float) -> str:
    verdict = {True: "agrees", False: "**differs**", None: "–"}
    lines = [f"# {study.title}", "", study.summary, ""]
    if options.quick:
        lines += ["A quick run: the same code with fewer steps and seeds. Its numbers are rough.", ""]
    lines += ["| the paper | our measurement | |", "|---|---|---|"]
    lines += [f"| {claim.paper} | {claim.ours} | {verdict[claim.agrees]} |" for claim in outcome.claims]
    lines += ["", *(f"{note}\n" for note in outcome.notes), f"{_VERDICTS}\n"]
    lines += [f"![{name}]({name}.png)\n" for name in outcome.figures]
    lines += [f"Made by `contourmc reproduce {study.name}{' --quick' if options.quick else ''}` in {seconds:.0f} s."]
    return "\n".join(lines) + "\n"
