"""The report of a run: what was found, how far to trust it, a picture, and the draws themselves."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.flatten_util
import numpy as np

from contourmc.draws.basins import Basins
from contourmc.draws.samples import Samples

SHOWN = 20  # the most coordinates in the table
MARGINALS = 6  # the most coordinates in the picture


def write_report(samples: Samples, folder: Path, title: str) -> list[Path]:
    """Write report.md, summary.json, picture.png and draws.nc; returns the files."""
    summary = summarise(samples)
    files = [folder / name for name in ("report.md", "summary.json", "picture.png", "draws.nc")]
    files[0].write_text(_markdown(samples, summary, title), encoding="utf-8")
    files[1].write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    _picture(samples, summary, files[2])
    samples.save(files[3])
    return files


def summarise(samples: Samples) -> dict[str, Any]:
    """The numbers of a run, as plain data: every coordinate, the modes, the diagnosis, the settings."""
    mean, error, variance = map(_flat, (samples.mean(), samples.standard_error(), samples.variance()))
    quantiles = np.concatenate([leaf.reshape(3, -1) for leaf in _leaves(samples.quantile([0.05, 0.5, 0.95]))], axis=1)
    ess = _flat(samples.ess())
    coordinates = {
        name: {
            "mean": float(mean[i]),
            "standard_error": float(error[i]),
            "standard_deviation": float(max(variance[i], 0.0) ** 0.5),
            "quantiles": [float(q) for q in quantiles[:, i]],
            "effective_sample_size": float(ess[i]),
        }
        for i, name in enumerate(_names(samples))
    }
    diagnosis = samples.diagnose()
    return {
        "coordinates": coordinates,
        "modes": [] if samples.basins is None else _modes(samples, samples.basins),
        "ok": diagnosis.ok,
        "diagnosis": str(diagnosis).splitlines(),
        "seconds": samples.seconds,
        "compile_seconds": samples.compile_seconds,
        "settings": samples.settings,
    }


def _modes(samples: Samples, basins: Basins) -> list[dict[str, Any]]:
    """Each minimum that the pilot found, with the mass of the draws nearest to it; the largest mass first."""
    masses = basins.masses(samples.draws, samples.weights)
    shares = masses.sum(axis=1, keepdims=True)
    within_chains = masses / np.where(shares > 0, shares, 1.0)
    found = [
        {
            "mass": float(masses[:, i].sum()),
            "spread_over_chains": float(within_chains[:, i].std(ddof=1)) if samples.chains > 1 else None,
            "energy": float(basins.energies[i]),
            "minimum": jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i], float).tolist(), basins.minima),
        }
        for i in range(len(basins.energies))
    ]
    return sorted(found, key=lambda mode: -mode["mass"])


def _markdown(samples: Samples, summary: dict[str, Any], title: str) -> str:
    settings = samples.settings
    lines = [f"# {title}", "", *summary["diagnosis"], "", "| coordinate | mean | ± | sd | 5% | 50% | 95% | ESS |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for name, numbers in list(summary["coordinates"].items())[:SHOWN]:
        cells = (numbers["mean"], numbers["standard_error"], numbers["standard_deviation"], *numbers["quantiles"])
        shown = " | ".join(f"{cell:.4g}" for cell in cells)
        lines.append(f"| {name} | {shown} | {numbers['effective_sample_size']:,.0f} |")
    if len(summary["coordinates"]) > SHOWN:
        lines += ["", f"… and {len(summary['coordinates']) - SHOWN} more, in summary.json."]
    if summary["modes"]:
        lines += ["", "| mode | mass | spread over chains | lowest energy |", "|---|---|---|---|"]
        for i, mode in enumerate(summary["modes"], 1):
            spread = mode["spread_over_chains"]
            lines.append(
                f"| {i} | {mode['mass']:.3f} | {'' if spread is None else f'{spread:.3f}'} | {mode['energy']:.4g} |"
            )
    lines += ["", "![the run](picture.png)", "", "## How it was made", ""]
    lines.append(
        f"{samples.chains} chains of {samples.trajectory.steps[-1]:,} steps, seed {settings['seed']}, in"
        f" {samples.seconds:.1f} s, plus {samples.compile_seconds:.1f} s to compile."
    )
    chosen, partition = settings.get("automatic"), samples.partition
    if chosen is not None and partition is not None:
        lines += ["", f"- step size {settings['step_size']:.3g}, in units of each coordinate's scale squared"]
        lines.append(
            f"- energies flattened from {partition.low:.4g} to {partition.high:.4g}, in {partition.bins} bins of width"
            f" {partition.width:.3g}"
        )
        if "pilot_steps" in chosen:
            lines.append(
                f"- chosen by a pilot of {chosen['pilot_steps']:,} steps a chain, accepting"
                f" {chosen['acceptance']:.0%}; walkers left their basin at temperature {chosen['temperature']:g}"
            )
        lines += [f"- {change}" for change in chosen["changes"]]
    return "\n".join(lines) + "\n"


def _picture(samples: Samples, summary: dict[str, Any], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from contourmc import plots

    names = list(summary["coordinates"])
    marginals = min(len(names), MARGINALS)
    rows = 1 + -(-(marginals + (len(names) > 1)) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(15, 4 * rows), layout="constrained", squeeze=False)
    plots.plot_energies(samples, ax=axes[0, 0])
    plots.plot_trace(samples, ax=axes[0, 1])
    plots.plot_theta(samples, ax=axes[0, 2])
    places = list(axes[1:].ravel())
    for i in range(marginals):
        axis = places.pop(0)
        plots.plot_marginal(samples, lambda x, i=i: _flat_jax(x)[i], ax=axis)
        axis.set(xlabel=names[i], title=f"Marginal of {names[i]}")
    if len(names) > 1:
        axis = places.pop(0)
        plots.plot_density(samples, lambda x: _flat_jax(x)[0], lambda x: _flat_jax(x)[1], ax=axis)
        axis.set(xlabel=names[0], ylabel=names[1])
    for axis in places:
        axis.set_axis_off()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _names(samples: Samples) -> list[str]:
    """A name for every number of a position: its path in the pytree and its index in the array."""
    names = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(samples.draws):
        stem = jax.tree_util.keystr(path, simple=True, separator=".") or "x"
        shape = leaf.shape[2:]
        names += [stem + (f"[{', '.join(map(str, index))}]" if index else "") for index in np.ndindex(shape)]
    return names


def _leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf, float) for leaf in jax.tree.leaves(tree)]


def _flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in _leaves(tree)])


def _flat_jax(position: Any) -> Any:
    return jax.flatten_util.ravel_pytree(position)[0]
