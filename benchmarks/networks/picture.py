"""One picture: the NLL of every method on every data set."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from benchmarks.networks.methods import METHODS, REFERENCE
from benchmarks.networks.report import Summaries
from contourmc.studies.uci.table import mean_and_error

OURS, OTHERS = "#0072B2", "#7F7F7F"
CONTOUR = ("CSGHMC", "contourmc automatic")
CAPTION = (
    "Test NLL of every method at its best setting and at equal compute. Above: means ± standard errors over seeds,\n"
    f"with a small dot for each. Below: paired differences to {REFERENCE}; left of the line a method is better."
)


def shown(file: Path) -> str:
    """The picture in Markdown, with its caption."""
    return f"![Test NLL of every method, and paired differences]({file.name})\n\n{CAPTION}\n"


def draw(found: Summaries, file: Path) -> None:
    """Write the picture."""
    methods = [method for method in METHODS if any(method in row for row in found.values())]
    size = 2.5 + 3.6 * len(found), 1.5 + 0.75 * len(methods)
    figure, axes = plt.subplots(2, len(found), figsize=size, layout="constrained", squeeze=False)
    for column, (name, summaries) in enumerate(found.items()):
        above, below = axes[:, column]
        for place, method in enumerate(methods):
            if method in summaries:
                _draw(above, place, method, summaries[method].values.get("nll", []))
                _draw(below, place, method, summaries[method].difference)
        above.set_title(name, fontsize=14)
        above.set_xlabel("test NLL", fontsize=11)
        below.axvline(0, color="black", lw=1)
        below.set_xlabel(f"NLL minus {REFERENCE}'s\n← better", fontsize=11)
        for ax in (above, below):
            ax.set_ylim(len(methods) - 0.5, -0.5)
            ax.set_yticks(range(len(methods)), methods if column == 0 else [""] * len(methods), fontsize=11)
            ax.grid(axis="x", alpha=0.25, lw=0.5)
            ax.locator_params(axis="x", nbins=5)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    plt.close(figure)


def _draw(ax: Axes, place: int, method: str, values: list[float]) -> None:
    if values:
        mean, error = mean_and_error(values)
        color = OURS if method in CONTOUR else OTHERS
        ax.plot(values, np.full(len(values), place), ".", color=color, alpha=0.3, ms=5)
        bars = error if np.isfinite(error) else None
        ax.errorbar(mean, place, xerr=bars, fmt="o", color=color, ms=7, capsize=4)
