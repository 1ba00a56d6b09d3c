"""One picture of all methods: error against evaluations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from benchmarks.gallery.outcome import Budget
from benchmarks.gallery.peers import AUTOMATIC, METHODS
from benchmarks.gallery.summary import Summaries, Summary

CAPTION = (
    "Error against evaluations of the density, where a gradient counts as one more. Left: the mode masses, right:\n"
    "log Z; above: the median of the problems, below: the worst of them. Runs that gave no number count as 1 on the\n"
    "left, and as an arrow at the top on the right; methods that do not estimate log Z are on the left alone."
)
COLORS = (
    "#0072B2", "#9a9a9a", "#009E73", "#56B4E9", "#555555", "#CC79A7",
    "#7B3FA0", "#D55E00", "#E69F00", "#C00000", "#7A4A12",
)  # fmt: skip
MARKERS = "osD^vPX<>hp"
# The largest total variation counts for a run that diverged; a log Z that is missing has no such bound.
PANELS = (
    (
        "error of the mode masses (total variation)",
        (1e-3, 1.2),
        lambda cell: 1.0 if cell.error is None else _mean_error(cell),
    ),
    ("error of log Z", (5e-4, 1e3), lambda cell: np.inf if cell.evidence_error is None else cell.evidence_error),
)
OVER_PROBLEMS = (("median of the problems", np.median), ("the worst problem", np.max))


def shown(file: Path) -> str:
    """The picture in Markdown, with its caption."""
    return f"![Error against evaluations, all methods]({file.name})\n\n{CAPTION}\n"


def draw(found: dict[Budget, Summaries], file: Path) -> list[str]:
    """Write the picture; gives the methods left out of it for want of runs on some of contourmc's problems."""
    figure, axes = plt.subplots(2, 2, figsize=(11.5, 8), layout="constrained", sharex=True)
    left_out: set[str] = set()
    for row, (over, reduce) in enumerate(OVER_PROBLEMS):
        for column, (what, limits, value) in enumerate(PANELS):
            ax = axes[row, column]
            for method in METHODS:
                left_out |= _draw_method(ax, method, found, value, reduce, limits[1])
            ax.set(xscale="log", yscale="log", ylim=limits, title=over, ylabel=what)
            ax.grid(alpha=0.25, which="both", lw=0.5)
    for ax in axes[1]:
        ax.set_xlabel("evaluations of the density (a gradient counts as one more)")
    lines = {line.get_label(): line for ax in axes.flat for line in ax.lines}
    shown = [method for method in METHODS if method in lines]
    figure.legend([lines[method] for method in shown], shown, loc="outside right center", frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    plt.close(figure)
    return sorted(left_out)


def _draw_method(
    ax: Axes,
    method: str,
    found: dict[Budget, Summaries],
    value: Callable[[Summary], float],
    reduce: Callable[..., float],
    top: float,
) -> set[str]:
    """A line through the budgets; an arrow at the top for a value beyond it."""
    points, left_out = [], set()
    for summaries in found.values():
        needed = [problem for problem, row in summaries.items() if AUTOMATIC in row]
        cells = [summaries[problem][method] for problem in needed if method in summaries[problem]]
        if not cells or len(cells) < len(needed):
            left_out |= {method} if cells else set()
            continue
        spent = [cell.evaluations for cell in cells if cell.evaluations is not None]
        if spent and not all(np.isinf(value(cell)) for cell in cells):
            points.append((float(np.exp(np.mean(np.log(spent)))), float(reduce([value(cell) for cell in cells]))))
    if points:
        x, y = np.array(sorted(points)).T
        index, ours = METHODS.index(method), method == AUTOMATIC
        style: dict[str, Any] = dict(color=COLORS[index % len(COLORS)], lw=3 if ours else 1.3, zorder=3 if ours else 2)
        ax.plot(x, np.minimum(y, top), marker=MARKERS[index % len(MARKERS)], ms=8 if ours else 6, label=method, **style)
        ax.plot(x[y > top], np.full((y > top).sum(), 0.85 * top), "^", ms=11, mfc="none", color=style["color"])
    return left_out


def _mean_error(cell: Summary) -> float:
    """Over all seeds."""
    assert cell.error is not None
    return (cell.error * (cell.runs - cell.diverged) + cell.diverged) / cell.runs
