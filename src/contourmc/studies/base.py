"""What a study is: a function that runs an experiment of the paper and says how it compares."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """What is asked for; None stands for the paper's or the study's own number.

    steps: of each chain.
    epochs: passes through the data, for a study on data.
    seeds: independent repetitions.
    quick: the same code in under a minute, with fewer steps and seeds.
    data: the local folder of the data sets.
    """

    steps: int | None = None
    epochs: int | None = None
    seeds: int | None = None
    quick: bool = False
    data: Path | None = None

    def choose(self, *, steps: int, seeds: int, quick_steps: int, quick_seeds: int) -> tuple[int, int]:
        """The number of steps and seeds: as asked for, else the quick or the full numbers."""
        default_steps, default_seeds = (quick_steps, quick_seeds) if self.quick else (steps, seeds)
        return self.steps or default_steps, self.seeds or default_seeds


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we measured, and whether the two agree (None: not to be compared)."""

    paper: str
    ours: str
    agrees: bool | None


@dataclass(frozen=True)
class Outcome:
    """What came of a study.

    claims: the paper's statements beside our measurements.
    results: every number, as plain data.
    figures: by file name without an ending.
    notes: paragraphs of Markdown below the table of claims.
    """

    claims: Sequence[Claim]
    results: Mapping[str, Any]
    figures: Mapping[str, "Figure"] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Study:
    """name: on the command line.  summary: one line.  title: of the report.  run: the experiment itself."""

    name: str
    summary: str
    title: str
    run: Callable[[Options], Outcome]


def write(study: Study, options: Options, outcome: Outcome, seconds: float, out: Path) -> list[Path]:
    """results.json, report.md and every figure as PNG and PDF; returns the files."""
    about = {
        "study": study.name,
        "quick": options.quick,
        "seconds": round(seconds, 1),
        "jax": jax.__version__,
        "machine": platform.machine(),
    }
    files = [out / "results.json", out / "report.md"]
    files[0].write_text(json.dumps({"about": about, **outcome.results}, indent=2) + "\n")
    files[1].write_text(_report(study, options, outcome, seconds))
    for name, figure in outcome.figures.items():
        for ending in ("png", "pdf"):
            file = out / f"{name}.{ending}"
            figure.savefig(file, dpi=130)
            files.append(file)
    return files


_VERDICTS = (
    "The paper states most of this in words. A verdict compares our measurement with a threshold of our own, which"
    " stands in the source of the study; several were set after first results had been seen."
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
