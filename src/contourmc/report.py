"""The report of a run: what was found, how far to trust it, a picture, and the draws themselves."""

import json
from pathlib import Path
from typing import Any

from contourmc._core.describe import describe
from contourmc.draws.samples import Samples
from contourmc.draws.summary import Summary

SHOWN = 20  # the most coordinates in the table
MARGINALS = 6  # the most coordinates in the picture


def write_report(samples: Samples, folder: Path, title: str) -> list[Path]:
    """Write report.md, summary.json, picture.png and draws.nc; returns the files."""
    found = samples.summary()
    summary = summarise(samples, found)
    files = [folder / name for name in ("report.md", "summary.json", "picture.png", "draws.nc")]
    files[0].write_text(_markdown(samples, found, title), encoding="utf-8")
    files[1].write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    _picture(samples, list(found.rows), files[2])
    samples.save(files[3])
    return files


def summarise(samples: Samples, found: Summary) -> dict[str, Any]:
    """The numbers of a run, as plain data: every coordinate, the modes, the diagnosis, the settings."""
    diagnosis = samples.diagnose()
    coordinates = {
        name: {
            "mean": row.mean,
            "standard_error": row.error,
            "standard_deviation": row.deviation,
            "quantiles": row.quantiles,
            "effective_sample_size": row.ess,
            "rhat": row.rhat,
        }
        for name, row in found.rows.items()
    }
    return describe(
        {
            "coordinates": coordinates,
            "modes": [] if samples.basins is None else [mode._asdict() for mode in samples.modes()],
            "ok": diagnosis.ok,
            "diagnosis": str(diagnosis).splitlines(),
            "interrupted": samples.interrupted,
            "seconds": samples.seconds,
            "compile_seconds": samples.compile_seconds,
            "settings": samples.settings,
        }
    )


def _markdown(samples: Samples, found: Summary, title: str) -> str:
    settings, rows = samples.settings, found.rows
    lines = [f"# {title}", "", str(samples.diagnose()), ""]
    lines += ["| coordinate | mean | ± | sd | 5% | 50% | 95% | ESS | R̂ |", "|---" * 9 + "|"]
    for name, row in list(rows.items())[:SHOWN]:
        shown = " | ".join(f"{cell:.4g}" for cell in (row.mean, row.error, row.deviation, *row.quantiles))
        lines.append(f"| {name} | {shown} | {row.ess:,.0f} | {row.rhat:.2f} |")
    if len(rows) > SHOWN:
        lines += ["", f"… and {len(rows) - SHOWN} more, in summary.json."]
    if samples.basins is not None:
        lines += ["", "| mode | mass | ± | lowest energy |", "|---|---|---|---|"]
        for i, mode in enumerate(samples.modes(), 1):
            lines.append(f"| {i} | {mode.mass:.3f} | {mode.error:.3f} | {mode.energy:.4g} |")
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


def _picture(samples: Samples, names: list[str], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from contourmc import plots

    rows = 1 + -(-(min(len(names), MARGINALS) + (len(names) > 1)) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(15, 4 * rows), layout="constrained", squeeze=False)
    plots.plot_energies(samples, ax=axes[0, 0])
    plots.plot_trace(samples, ax=axes[0, 1])
    plots.plot_theta(samples, ax=axes[0, 2])
    places = list(axes[1:].ravel())
    for name in names[:MARGINALS]:
        plots.plot_marginal(samples, name, ax=places.pop(0))
    if len(names) > 1:
        plots.plot_density(samples, ax=places.pop(0))
    for axis in places:
        axis.set_axis_off()
    figure.savefig(file, dpi=110)
    plt.close(figure)
