"""The demo: SGLD and CSGLD side by side on the paper's mixture, as a table, a picture and a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from contourmc import __version__
from contourmc._core.whole_file import write_whole
from contourmc.draws.samples import Samples
from contourmc.flattening.partition import Partition
from contourmc.kernels.contour import csgld
from contourmc.kernels.sgld import sgld
from contourmc.problems import GaussianMixture
from contourmc.sampling.sample import sample
from contourmc.studies.base import complete
from contourmc.studies.report import write_figure
from contourmc.targets.energies import NoisyEnergy

# The paper does not say where the partition begins, nor which scheme it used for the mixture. The lowest energy is
# 1.43; of four values of `low` and three schemes, tried with 60 chains each, this choice had the smallest error.
PARTITION = Partition(low=1.5, width=1.0, bins=50)


def run_demo(out: Path, steps: int, chains: int, seed: int, console: Console) -> dict[str, Any]:
    """Sample, print the table, and write demo.png and results.json into the folder; returns the results.

    Ctrl-C ends it; results.json then says so, and has the runs that were finished, if there are any.
    """
    problem = GaussianMixture()
    target = NoisyEnergy(problem.energy, gradient_variance=0.01)
    thin = max(1, steps // 20_000)
    kernels = {
        "sgld": sgld(step_size=0.1),
        "csgld": csgld(step_size=0.1, zeta=0.75, partition=PARTITION, scheme="right"),
    }
    head = Text.assemble((f"contourmc {__version__}", "bold"), ": 0.4·N(−6, 1) + 0.6·N(4, 1)")
    console.print(head, f"{chains} chains of {steps:,} steps each", sep=", ")
    runs: dict[str, Samples] = {}
    try:
        for name, kernel in kernels.items():
            run = sample(
                target, init=0.0, steps=steps, chains=chains, seed=seed, thin=thin, kernel=kernel,
                burn_in=steps // 10,
            )  # fmt: skip
            runs[name] = complete(run)
    except KeyboardInterrupt:
        if runs:
            _write(runs, problem, out / "results.json", interrupted=True)
        raise
    results = _write(runs, problem, out / "results.json", interrupted=False)
    console.print(_table(results))
    console.print(str(runs["csgld"].diagnose()))
    _figure(runs, problem, out / "demo.png")
    return results


def _write(runs: dict[str, Samples], problem: GaussianMixture, file: Path, interrupted: bool) -> dict[str, Any]:
    """Write the results of the runs; returns them."""
    results: dict[str, Any] = {name: measure(run, problem) for name, run in runs.items()}
    results |= {"settings": {name: run.settings for name, run in runs.items()}, "interrupted": interrupted}
    write_whole(file, json.dumps(results, indent=2) + "\n")
    return results


def measure(run: Samples, problem: GaussianMixture) -> dict[str, float]:
    """How a run on a mixture of two modes compares with the truth."""
    means = np.asarray(run.mean(by_chain=True))
    sides = np.sign(run.draws)
    chain_steps = int(run.trajectory.steps[-1]) * run.chains
    numbers = {
        "mean": float(means.mean()),
        "mean_abs_error": float(np.abs(means - problem.mean).mean()),
        "probability_below_0": float(run.expectation(lambda x: x < 0)),
        "crossings_per_chain": float(np.mean(np.sum(sides[:, 1:] != sides[:, :-1], axis=1))),
        "effective_sample_size": float(run.ess()),
        "seconds": run.seconds,
        "compile_seconds": run.compile_seconds,
        "steps_per_second": chain_steps / run.seconds,
    }
    if run.theta is not None:
        distance = np.abs(run.theta - problem.theta(PARTITION)).sum(axis=1) / 2
        numbers["theta_tv"] = float(distance.mean())
    return numbers


def _table(results: dict[str, Any]) -> Table:
    table = Table(title="Truth: mean 0, P(x < 0) = 0.4", title_justify="left")
    table.add_column("")
    for name in ("SGLD", "CSGLD"):
        table.add_column(name, justify="right")
    rows = (
        ("mean of x", "mean", "{:.3f}"),
        ("|error of the mean|, averaged over chains", "mean_abs_error", "{:.3f}"),
        ("P(x < 0)", "probability_below_0", "{:.3f}"),
        ("θ against quadrature, total variation", "theta_tv", "{:.3f}"),
        ("crossings between the modes, per chain", "crossings_per_chain", "{:,.1f}"),
        ("effective sample size", "effective_sample_size", "{:,.0f}"),
        ("seconds", "seconds", "{:.1f}"),
        ("seconds to compile", "compile_seconds", "{:.1f}"),
        ("steps per second, all chains", "steps_per_second", "{:,.0f}"),
    )
    for label, key, form in rows:
        cells = (results[name].get(key) for name in ("sgld", "csgld"))
        table.add_row(label, *("–" if cell is None else form.format(cell) for cell in cells))
    return table


def _figure(runs: dict[str, Samples], problem: GaussianMixture, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from contourmc import plots

    x, _, probability = problem.grid(4001)
    shown = (x > -11) & (x < 9)
    truth = (x[shown], probability[shown] / (x[1] - x[0]))
    edges = np.linspace(-11, 9, 101)
    theta = problem.theta(PARTITION)
    run = runs["csgld"]
    with plt.rc_context({"font.size": 12, "axes.titlesize": 12.5}):
        figure, axes = plt.subplots(2, 3, figsize=(13.5, 6.6), layout="constrained")
        plots.plot_landscape(problem.energy, x[shown], theta, PARTITION, scheme="right", ax=axes[0, 0])
        axes[0, 0].set_ylim(0, 19)
        for axis, name, color in ((axes[0, 1], "sgld", plots.ORANGE), (axes[0, 2], "csgld", plots.BLUE)):
            plots.plot_marginal(runs[name], density=truth, bins=edges, color=color, label="all chains", ax=axis)
            error = np.abs(np.asarray(runs[name].mean(by_chain=True)) - problem.mean).mean()
            axis.set_title(f"{name.upper()}: mean of x off by {error:.2f} in a chain")
        axes[0, 1].sharey(axes[0, 2])
        plots.plot_theta(run, theta, ax=axes[1, 0])
        axes[1, 0].set(xlim=(PARTITION.low - 1, 40), ylim=(1e-14, 2))
        plots.plot_energies(run, ax=axes[1, 1])
        axes[1, 1].set_ylim(top=300)  # room for the legend
        axes[1, 1].legend(frameon=False, loc="upper right")
        plots.plot_trace(run, ax=axes[1, 2])
        write_figure(figure, file, dpi=110)
    plt.close(figure)
