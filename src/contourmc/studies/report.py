"""The files of a study: its record, a report on the paper's claims, and the figures."""

import json
import platform
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from contourmc._core.whole_file import write_whole
from contourmc.studies.base import Claim, Options, Outcome, Record, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("the paper", "our measurement", "agrees if", "verdict")
VERDICTS = (
    "A verdict compares a 95% interval over seeds with the limit in the third column, which is ours. A claim agrees if"
    " the whole interval is on the claimed side, differs if the whole interval is on the other side, and is undecided"
    " otherwise."
)
_TOO_SHORT = "A shorter run than the full study: its numbers are too rough to judge the paper's claims."


def about(study: Study, options: Options, seconds: float, *, interrupted: bool) -> Record:
    """How a record was made."""
    return {
        "study": study.name,
        "length": options.size.length,
        "seeds": options.size.seeds,
        "quick": options.quick,
        "interrupted": interrupted,
        "seconds": round(seconds, 1),
        "jax": jax.__version__,
        "machine": platform.machine(),
    }


def is_conclusive(study: Study, made: Record) -> bool:
    """Whether a record is that of the whole study, so that claims are judged."""
    enough = made["length"] >= study.full.length and made["seeds"] >= study.full.seeds
    return enough and not made["quick"] and not made["interrupted"]


def write_record(record: Record, file: Path) -> None:
    """Write a record as JSON with every list of numbers on one line."""
    write_whole(file, "".join(_lines(record, 0)) + "\n")


def _lines(value: Any, depth: int) -> Iterator[str]:
    nested = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict | list) for one in value))
    if not nested or not value:
        yield json.dumps(value, ensure_ascii=False)
        return
    pairs = value.items() if isinstance(value, dict) else ((None, one) for one in value)
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    yield opened
    for i, (name, one) in enumerate(pairs):
        yield ("," if i else "") + "\n" + " " * (depth + 1)
        if name is not None:
            yield json.dumps(str(name), ensure_ascii=False) + ": "
        yield from _lines(one, depth + 1)
    yield "\n" + " " * depth + closed


def read_record(file: Path) -> Record:
    return json.loads(file.read_text(encoding="utf-8"))


def write_report(study: Study, record: Record, outcome: Outcome, out: Path) -> list[Path]:
    """Write report.md and every figure as PNG and PDF; returns the files."""
    file = out / "report.md"
    write_whole(file, _report(study, record["about"], outcome))
    return [file, *(one for name, drawing in outcome.figures.items() for one in save(drawing.draw(), out / name))]


def save(figure: "Figure", stem: Path, kinds: tuple[str, ...] = ("png", "pdf"), dpi: int = 130) -> list[Path]:
    """Write a figure, and close it."""
    import matplotlib.pyplot as plt

    files = [stem.with_suffix(f".{kind}") for kind in kinds]
    for file in files:
        write_figure(figure, file, dpi)
    plt.close(figure)
    return files


def write_figure(figure: "Figure", file: Path, dpi: int) -> None:
    """Write a figure to a file, whose ending says in which format."""
    content = BytesIO()
    figure.savefig(content, dpi=dpi, format=file.suffix[1:])
    write_whole(file, content.getvalue())


def row(claim: Claim, *, conclusive: bool) -> tuple[str, str, str, str]:
    """A claim as a row of the table."""
    if claim.verdict is None:
        return claim.paper, claim.ours, "–", "–"
    return claim.paper, claim.ours, claim.verdict.rule, claim.verdict.outcome if conclusive else "too short to judge"


def table(claims: list[tuple[str, ...]], columns: tuple[str, ...] = COLUMNS) -> list[str]:
    """Rows as the lines of a Markdown table."""
    return [_markdown(columns), "|---" * len(columns) + "|", *map(_markdown, claims)]


def _markdown(cells: tuple[str, ...]) -> str:
    escaped = (cell.replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _report(study: Study, made: Record, outcome: Outcome) -> str:
    conclusive = is_conclusive(study, made)
    lines = [f"# {study.title}", "", study.summary, ""]
    if not conclusive:
        lines += [_TOO_SHORT, ""]
    lines += table([row(claim, conclusive=conclusive) for claim in outcome.claims])
    lines += ["", *(f"{note}\n" for note in outcome.notes), *([f"{VERDICTS}\n"] if conclusive else [])]
    for name, drawing in outcome.figures.items():
        lines += [f"![{name}]({name}.png)", "", f"{drawing.caption}\n"]
    quick = " --quick" if made["quick"] else ""
    return "\n".join([*lines, f"Made by `contourmc reproduce {study.name}{quick}` in {made['seconds']:.0f} s."]) + "\n"
