"""Figure 1: trial energies, θ with the visits to the bins, and the error of the mean."""

from typing import TYPE_CHECKING

import numpy as np

from contourmc.studies.gaussian_mixture.experiment import OURS, PAPERS, PROBLEM, ZETAS, Method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_figure(methods: dict[str, Method]) -> "Figure":
    import matplotlib.pyplot as plt

    from contourmc import plots

    with plt.rc_context({"font.size": 13, "legend.fontsize": 11.5, "axes.titlesize": 14}):
        figure, axes = plt.subplot_mosaic("ab\ncc", figsize=(13, 11), layout="constrained")
        x = np.linspace(-11, 9, 4001)
        plots.plot_landscape(PROBLEM.energy, x, PROBLEM.theta(PAPERS), PAPERS, zetas=ZETAS, scheme="left", ax=axes["a"])
        axes["a"].legend(frameon=False, ncols=2, loc="upper center")
        axes["a"].set(ylim=(0, 18), title="(a) Original and trial energies")
        _draw_theta(methods, axes["b"])
        _draw_errors(methods, axes["c"])
    return figure


def _draw_theta(methods: dict[str, Method], ax: "Axes") -> None:
    from contourmc import plots

    bins = 20
    centres = OURS.low + OURS.width * (np.arange(bins) - 0.5)
    edges = OURS.low + OURS.width * (np.arange(bins + 1) - 1)
    for name, label, color in (
        ("sgld", "visits, SGLD", plots.GREY),
        ("csgld", "visits, CSGLD ζ = 0.75", plots.ORANGE),
        ("csgld_flat", "visits, CSGLD ζ = 1", plots.GREEN),
    ):
        visits = methods[name].visits.sum(axis=0)
        ax.stairs(visits[:bins] / visits.sum(), edges, color=color, lw=2, label=label)
    ax.plot(centres, PROBLEM.theta(OURS)[:bins], "k+", ms=12, mew=1.5, label="true θ")
    ax.plot(centres, methods["csgld"].theta.mean(axis=0)[:bins], "o", color=plots.BLUE, ms=6, mfc="none",
            mew=1.8, label="θ learnt, ζ = 0.75")  # fmt: skip
    ax.set(yscale="log", ylim=(1e-10, 30), xlabel="energy", ylabel="share of the bin")
    ax.set_title("(b) θ and visits of the energy bins")
    ax.legend(frameon=False, ncols=2, loc="upper right")


def _draw_errors(methods: dict[str, Method], ax: "Axes") -> None:
    from contourmc import plots

    for name, label, color in (
        ("sgld", "SGLD", plots.GREY),
        ("csgld_step", "CSGLD, paper's step weights", plots.ORANGE),
        ("ksgld", "KSGLD (θ known)", plots.GREEN),
        ("csgld", "CSGLD, continuous weights", plots.BLUE),
    ):
        method = methods[name]
        spread = np.abs(method.errors).std(axis=0)
        ax.plot(method.steps, method.curve, color=color, lw=2, label=label)
        ax.fill_between(
            method.steps, np.maximum(method.curve - spread, 1e-3), method.curve + spread, color=color,
            alpha=0.15, lw=0,
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", ylim=(0.01, 12), xlabel="iteration", ylabel="|error of the mean of x|")
    ax.set_title("(c) Error of the mean (band: 1 sd over runs)")
    ax.legend(frameon=False, loc="lower left")
