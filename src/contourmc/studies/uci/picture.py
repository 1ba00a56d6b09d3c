"""The picture of Table 1: our RMSE of every method and the paper's, and the paired differences."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from contourmc.studies.base import over_seeds
from contourmc.studies.uci.cells import BASELINES, METHODS, Cell
from contourmc.studies.uci.recipes import PAPERS_TABLE, TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, GREY, ORANGE = "#0072B2", "#7F7F7F", "#D55E00"
LEAST = 0.01  # of the RMSE, which the axis of differences shows at least
OURS, THEIRS = "ours: mean ± standard error, and a dot for each split", "the paper's: mean ± standard deviation"


def draw(cells: Mapping[str, Mapping[str, Cell | None]]) -> "Figure":
    """Above, the RMSE of every method; below, the contour methods minus their samplers without flattening."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(cells), figsize=(2.4 + 3.4 * len(cells), 7.5), layout="constrained", squeeze=False, height_ratios=(2, 1)
    )
    for column, (name, methods) in enumerate(cells.items()):
        _draw_methods(axes[0, column], methods, name)
        _draw_differences(axes[1, column], methods)
    pairs = [f"{contour} − {baseline}" for contour, baseline in BASELINES.items()]
    for row, labels in enumerate((list(METHODS), pairs)):
        axes[row, 0].set_yticks(range(len(labels)), labels, fontsize=13)
        for ax in axes[row, 1:]:
            ax.set_yticks(range(len(labels)), [""] * len(labels))
    marks = axes[0, 0].plot([], [], "o", color=GREY, markersize=8)
    marks += axes[0, 0].plot([], [], "D", color=ORANGE, markerfacecolor="white", markersize=7)
    figure.legend(marks, (OURS, THEIRS), loc="outside upper center", ncols=2 if len(cells) > 1 else 1, fontsize=13)
    return figure


def _draw_methods(ax: "Axes", methods: Mapping[str, Cell | None], name: str) -> None:
    for place, method in enumerate(METHODS):
        cell, theirs = methods[method], PAPERS_TABLE[method].get(name)
        if cell is not None:
            _draw_splits(ax, cell.rmse, place - 0.12, BLUE if method in BASELINES else GREY)
        if theirs is not None:
            ax.errorbar(
                theirs[0], place + 0.2, xerr=theirs[1], fmt="D", color=ORANGE, markerfacecolor="white", markersize=7,
                capsize=4,
            )  # fmt: skip
    ax.axhline(2.5, color="#BBBBBB", linewidth=1)
    ax.set_title(TITLES[name], fontsize=15)
    ax.set_xlabel("test RMSE", fontsize=13)
    ax.tick_params(axis="x", labelsize=11)
    ax.set_ylim(5.6, -0.6)


def _draw_differences(ax: "Axes", methods: Mapping[str, Cell | None]) -> None:
    for place, (contour, baseline) in enumerate(BASELINES.items()):
        first, second = methods[contour], methods[baseline]
        if first is not None and second is not None:
            _draw_splits(ax, np.subtract(first.rmse, second.rmse), place, BLUE)
            least = LEAST * float(np.mean(second.rmse))  # differences by rounding errors stay at 0
            ax.plot([-least, least], [place, place], alpha=0.0)
    ax.axvline(0, color="black", linewidth=1)
    ax.set_xlabel("paired difference of RMSE\n← contour better", fontsize=12)
    ax.tick_params(axis="x", labelsize=11)
    ax.set_ylim(1.5, -0.5)
    ax.locator_params(axis="x", nbins=4)


def _draw_splits(ax: "Axes", values: list[float] | np.ndarray, place: float, color: str) -> None:
    mean = over_seeds(values)
    ax.plot(values, np.full(len(values), place), ".", color=color, alpha=0.35)
    ax.errorbar(mean.value, place, xerr=mean.error, fmt="o", color=color, markersize=8, capsize=4)
