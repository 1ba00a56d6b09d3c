"""The figures of the study."""

from typing import TYPE_CHECKING, Any

import numpy as np

from contourmc.studies.theory.setting import COLORS, NAMES, SYMBOLS, truth

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_learning(learning: dict[str, Any]) -> "Figure":
    """Left: E‖θ − θ⋆‖² against k, with its floors. Right: its variance part against ω."""
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 13}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(14, 6.5), layout="constrained")
        for variant, name in NAMES.items():
            if name not in learning:
                continue
            row, style = learning[name], dict(color=COLORS[variant], marker=".", ms=6, lw=1)
            error = row["mean_square_standard_error"]
            left.errorbar(row["steps"], row["mean_square"], error, label=name, elinewidth=0.7, **style)
            if row["floor"][0] > 0:
                left.axhline(row["floor"][0], color=COLORS[variant], ls=":", lw=2)
            label = "{}: {:.2f} ± {:.2f}".format(name, *row["rate"])
            right.plot(row["omega"], row["variance"], label=label, **style)
        omega = np.array(next(iter(learning.values()))["omega"])
        middle = np.exp(np.mean([np.log(np.array(row["variance"]) / omega) for row in learning.values()]))
        right.plot(omega, middle * omega, color="k", lw=1.5, ls="--", label="∝ ω: the theorem")
        left.plot([], [], color="0.3", ls=":", lw=2, label="‖E θ − θ⋆‖² at the end")
        left.set(xlabel="step k", ylabel="E‖θ − θ⋆‖²", title="Theorem 1: the error of θ along the run")
        right.set(xlabel="ω, learning rate of θ", ylabel="E‖θ − E θ‖²", title="Its variance against ω")
        for axis in (left, right):
            axis.set(xscale="log", yscale="log")
            axis.xaxis.set_minor_formatter("")
        left.legend(frameon=False, fontsize=12)
        right.legend(frameon=False, fontsize=12, title="fitted power of ω", loc="upper left")
        right.set_ylim(top=6 * right.get_ylim()[1])
    return figure


def draw_estimates(estimates: dict[str, Any]) -> "Figure":
    """Bias of two weighted averages (rows) along three sweeps (columns)."""
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 13}):
        figure, axes = plt.subplots(2, 3, figsize=(15, 9), layout="constrained", sharey="row", sharex="col")
        for column, (sweep, part) in zip(axes.T, estimates.items(), strict=True):
            for axis, observable in zip(column, truth(), strict=True):
                _draw(axis, sweep, part, observable)
            column[0].set_title(f"Theorem 2: {SYMBOLS[sweep]}")
            column[1].set_xlabel(SYMBOLS[sweep])
        for axis, observable in zip(axes[:, 0], truth(), strict=True):
            axis.set_ylabel(f"bias of {observable}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=12)
    return figure


def _draw(axis: "Axes", sweep: str, part: dict[str, Any], observable: str) -> None:
    """One panel; the variants are drawn a little apart, so that no error bar hides another."""
    values = np.array(part["values"])
    axis.axhline(0, color="k", lw=1)
    for scheme, row in part["step_bias_by_quadrature"].items():
        label = f"{scheme}, step weights: by quadrature, ε → 0"
        exact = [bias[observable] for bias in row]
        axis.plot(values, exact, color=COLORS[scheme, "step"], ls=":", lw=2, label=label)
    for i, (variant, name) in enumerate(NAMES.items()):
        if name not in part["errors"]:
            continue
        cells = [row[observable] for row in part["errors"][name]]
        bias, error = ([cell[key] for cell in cells] for key in ("bias", "standard_error"))
        apart = values + 0.03 * (i - 1.5) if sweep == "energy_variance" else values * 1.04 ** (i - 1.5)
        marker = "s" if variant[1] == "step" else "o"
        axis.errorbar(apart, bias, error, color=COLORS[variant], marker=marker, ms=5, capsize=3, label=name)
    if sweep != "energy_variance":
        axis.set_xscale("log")
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.minorticks_off()
