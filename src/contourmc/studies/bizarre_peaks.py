"""The paper's supplement: bizarre peaks in the flattened energy of 1/6·N(−6, 1) + 5/6·N(4, 1)."""

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import csgld, ksgld
from contourmc.problems import GaussianMixture
from contourmc.problems.gaussian_mixture import bin_probabilities
from contourmc.sampling.sample import sample
from contourmc.studies.algorithm import FlatLastBin
from contourmc.studies.algorithm_one import noisy, run
from contourmc.studies.base import (
    Claim,
    Drawing,
    Options,
    Outcome,
    Record,
    Size,
    complete,
    difference,
    exact,
    judge,
    over_seeds,
    with_error,
)
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEM = GaussianMixture(weights=(1 / 6, 5 / 6))
TARGET = NoisyEnergy(PROBLEM.energy, gradient_variance=0.01)
PARTITION = Partition(low=1.7, width=1.0, bins=50)  # U(−6) = 2.71 just above an edge: the peak is largest
ZETA = 0.75
SCHEMES: tuple[Scheme, ...] = ("left", "centred", "right")
WIDTHS, QUICK_WIDTHS = (1.0, 0.5, 0.25, 0.125), (1.0, 0.25)
OFFSETS, QUICK_OFFSETS = (0.01, 0.21, 0.41, 0.61, 0.81), (0.01, 0.61)  # where U(−6) lies in its bin
PRINTED = "Algorithm 1, flat last bin"


class Peak(NamedTuple):
    """A local maximum of the trial energy as a function of U: its energy U, and its height.

    The height is what one must climb to the top, coming from the easier side: from the lowest point between the
    peak and higher ground.
    """

    energy: float
    height: float


def stationary() -> dict[str, float]:
    """The energies of U at its stationary points: both minima and the saddle."""
    x, energy, _ = PROBLEM.grid()
    left, right = energy[x < -3].min(), energy[x > 2].min()
    return {"x = -6": float(left), "x = 4": float(right), "saddle": float(energy[abs(x) < 2].max())}


def find_peaks(energies: np.ndarray, trial: np.ndarray, least: float = 0.01) -> list[Peak]:
    """The local maxima of the trial energy whose height is at least `least`."""

    def height(top: int) -> float:
        drops = []
        for way in (trial[top - 1 :: -1], trial[top + 1 :]):
            higher = np.flatnonzero(way > trial[top])
            drops.append(trial[top] - way[: higher[0] if higher.size else None].min())
        return float(min(drops))

    tops = (np.flatnonzero((trial[1:-1] > trial[:-2]) & (trial[1:-1] >= trial[2:])) + 1).tolist()
    peaks = (Peak(float(energies[top]), height(top)) for top in tops)
    return [peak for peak in peaks if peak.height > least]


def peaks_by_scheme(partition: Partition, theta: np.ndarray) -> dict[str, list[Peak]]:
    """The peaks between the lowest energy and the saddle."""
    from contourmc.plots import flattened_energy

    points = stationary()
    energies = np.linspace(points["x = 4"], points["saddle"], 8001)
    return {s: find_peaks(energies, flattened_energy(energies, theta, partition, ZETA, s)) for s in SCHEMES}


def scan(widths: tuple[float, ...], offsets: tuple[float, ...]) -> dict[str, Any]:
    """The peaks for every width Δu and every offset of the bins, by scheme.

    peaks: how many there are.
    farthest: the largest distance of a peak from the nearest stationary energy, in bins.
    shift: the smallest and the largest (energy of the peak − U(−6)) / Δu.
    heights: of the peaks near U(−6), by width, for every offset; 0 without a peak.
    same_bin: in how many partitions the peak near U(−6) is in the bin of U(−6), of how many that have one.
    """
    points, (_, grid_energies, probabilities) = stationary(), PROBLEM.grid(2_000_001)
    levels = np.array(list(points.values()))
    found: dict[str, Any] = {
        s: dict(peaks=0, farthest=0.0, shift=[1e9, -1e9], same_bin=[0, 0], heights={}) for s in SCHEMES
    }
    for width, offset in itertools.product(widths, offsets):
        edge = points["x = -6"] - offset * width
        low = edge - width * np.floor((edge - points["x = 4"]) / width - 0.1)  # bin 0 must not be empty
        partition = Partition(low, width, int(50 / width))
        theta = bin_probabilities(grid_energies, probabilities, partition)
        for scheme, peaks in peaks_by_scheme(partition, theta).items():
            entry, near = found[scheme], _highest_near(peaks, points["x = -6"], 1.5 * width)
            away = [float(np.abs(levels - peak.energy).min()) / width for peak in peaks]
            entry["peaks"] += len(peaks)
            entry["farthest"] = max(entry["farthest"], *away, 0.0)
            entry["heights"].setdefault(f"{width:g}", []).append(near.height if near else 0.0)
            if near:
                shift = (near.energy - points["x = -6"]) / width
                entry["shift"] = [min(entry["shift"][0], shift), max(entry["shift"][1], shift)]
                bins = [int(partition.index(jnp.asarray(u))) for u in (near.energy - 2e-3 * width, points["x = -6"])]
                entry["same_bin"] = [entry["same_bin"][0] + (bins[0] == bins[1]), entry["same_bin"][1] + 1]
    return found


def _highest_near(peaks: list[Peak], energy: float, reach: float) -> Peak | None:
    """The highest of the peaks within reach of an energy, if there is one."""
    near = [peak for peak in peaks if abs(peak.energy - energy) < reach]
    return max(near, key=lambda peak: peak.height) if near else None


def kernels(quick: bool) -> dict[str, Kernel]:
    """CSGLD, and controls: θ known; θ ∝ e^(−u), which flattens without a peak; unless quick, also small steps."""
    setup: dict[str, Any] = dict(partition=PARTITION, zeta=ZETA, scheme="left")
    common: dict[str, Any] = dict(**setup, step_size=0.1)
    true_theta = PROBLEM.theta(PARTITION).tolist()
    smooth = np.exp(-PARTITION.width * np.arange(PARTITION.bins))
    compared = {
        "CSGLD": csgld(**common),
        "CSGLD, ε = 0.02": csgld(**setup, step_size=0.02),
        "KSGLD, true θ": ksgld(**common, theta=true_theta),
        "KSGLD, true θ, ε = 0.02": ksgld(**setup, step_size=0.02, theta=true_theta),
        "KSGLD, θ without peaks": ksgld(**common, theta=(smooth / smooth.sum()).tolist()),
    }
    skipped = ("CSGLD, ε = 0.02", "KSGLD, true θ, ε = 0.02") if quick else ()
    return {name: kernel for name, kernel in compared.items() if name not in skipped}


def estimate(kernel: Kernel, size: Size) -> dict[str, Any]:
    """The mean and P(x < −1) of every run, and the crossings of −1 per run."""
    steps, runs = size.length, size.seeds
    result = complete(sample(TARGET, init=0.0, steps=steps, chains=runs, kernel=kernel, thin=max(1, steps // 20_000)))
    return {
        "mean": np.asarray(result.mean(by_chain=True)).tolist(),
        "below": np.asarray(result.expectation(lambda x: x < -1, by_chain=True)).tolist(),
        "crossings": float(np.mean(np.sum(np.diff(result.draws > -1, axis=1), axis=1))),
    }


def _estimate_printed(size: Size) -> dict[str, Any]:
    """The same of the reference implementation, with the paper's weights; a tenth is burn-in, as for the others."""
    every = max(1, size.length // 20_000)
    algorithm = FlatLastBin(PARTITION.low, PARTITION.width, PARTITION.bins, zeta=ZETA)
    path = run(
        algorithm, noisy(PROBLEM.energy, 0.01), 0.0, steps=size.length, every=every, chains=size.seeds, seed=0
    )  # fmt: skip
    later = path.steps > size.length // 10
    weights = path.weight[:, later] / path.weight[:, later].sum(axis=1, keepdims=True)
    return {
        "mean": ((path.total * path.mean)[:, later].sum(axis=1) / path.total[:, later].sum(axis=1)).tolist(),
        "below": np.sum(weights * (path.x[:, later] < -1), axis=1).tolist(),
        "crossings": float(np.mean(np.sum(np.diff(path.x[:, later] > -1, axis=1), axis=1))),
    }


def measure(options: Options, record: Record) -> None:
    """Find the peaks, and see whether they disturb the estimates."""
    partitions = (QUICK_WIDTHS, QUICK_OFFSETS) if options.quick else (WIDTHS, OFFSETS)
    points, found = stationary(), scan(*partitions)
    peaks = peaks_by_scheme(PARTITION, PROBLEM.theta(PARTITION))
    shown = {scheme: _highest_near(some, points["x = -6"], 1.5) for scheme, some in peaks.items()}
    record |= {"stationary_energies": points, "scan": found, "length": options.size.length, "runs": options.size.seeds}
    record["shown"] = {scheme: list(peak) if peak else None for scheme, peak in shown.items()}
    for name, kernel in kernels(options.quick).items():
        record.setdefault("estimates", {})[name] = estimate(kernel, options.size)
    record["estimates"][PRINTED] = _estimate_printed(options.size)


def conclude(record: Record) -> Outcome:
    shown = {scheme: Peak(*peak) if peak else None for scheme, peak in record["shown"].items()}
    drawing = Drawing(
        lambda: _figure(shown["left"], record["scan"]),
        f"Left: the energy, and the trial energy U + ζ log Ψ for the true θ: scheme left, ζ = {ZETA:g}, u₁ ="
        f" {PARTITION.low:g}, Δu = {PARTITION.width:g}. Right: the height of the peak near U(−6) for finer bins, over"
        " five offsets of the bins, scheme left.",
    )
    claims = _claims(shown, record["scan"], record["estimates"])
    return Outcome(claims, {"bizarre_peaks": drawing}, _notes(record))


def _positions(peak: Peak) -> np.ndarray:
    """The two points around the mode at 4 that have the energy of the peak, one on each side."""
    x, energy, _ = PROBLEM.grid()
    sides = ((x > -1) & (x < 4), (x > 4) & (x < 10))
    return np.array([x[side][np.argmin(np.abs(energy[side] - peak.energy))] for side in sides])


def _claims(shown: dict[str, Peak | None], found: dict[str, Any], estimates: dict[str, Any]) -> list[Claim]:
    minimum, peak = stationary()["x = -6"], shown["left"]
    if peak is None:
        return [Claim("peak", "there is a bizarre peak", "none found", judge(exact(0.0), above=0.1))]
    places = _positions(peak)
    x, energy, _ = PROBLEM.grid()
    slope = float(np.interp(places[1], x, np.gradient(energy, x)))
    left = found["left"]
    ranges = "; ".join(
        f"`{s}` {entry['peaks']} peaks, farthest {entry['farthest']:.2f} Δu" for s, entry in found.items()
    )
    heights = left["heights"]
    tallest = [max(values) for values in heights.values()]
    free, true = (over_seeds(estimates[name]["mean"]) for name in ("KSGLD, θ without peaks", "KSGLD, true θ"))
    gap = difference(true, free)
    printed = over_seeds(estimates[PRINTED]["mean"])
    partitions = f"{len(heights)} widths and {len(next(iter(heights.values())))} offsets of the bins"
    return [
        Claim(
            "peak",
            "the trial energy has a bizarre peak at a point x that is no stationary point of U",
            f"x = {places[0]:.2f} and {places[1]:.2f}, {peak.height:.2f} high; U′ there is {slope:.2f}",
            judge(exact(min(peak.height, abs(slope))), above=0.1, unit="for the height of the peak and for |U′|"),
        ),
        Claim(
            "same-bin",
            "x and −6 belong to the same subregion",
            f"in {left['same_bin'][0]} of {left['same_bin'][1]} partitions with a peak near U(−6), over {partitions},"
            " scheme left",
            judge(exact(left["same_bin"][0] / left["same_bin"][1]), above=0.5, unit="of the partitions"),
        ),
        Claim(
            "same-energy",
            "x has the same energy as the local minimum at −6",
            f"U(−6) = {minimum:.2f}; (U(x) − U(−6))/Δu is {left['shift'][0]:+.2f} to {left['shift'][1]:+.2f} over"
            f" {partitions}, scheme left: the distance shrinks with Δu",
            judge(exact(max(map(abs, left["shift"]))), below=1.0, unit="for |U(x) − U(−6)| / Δu"),
        ),
        Claim(
            "always",
            "a bizarre peak always indicates a stationary point of the same energy",
            f"distance from the nearest stationary energy, over {partitions}: {ranges}",
            judge(
                exact(max(entry["farthest"] for entry in found.values())),
                below=1.0,
                unit="Δu, the width of a bin",
            ),
        ),
        Claim(
            "finer",
            "finer bins do not remove the peak (not in the paper)",
            f"the highest peak near U(−6) is {tallest[0]:.2f} at Δu = {next(iter(heights))} and {tallest[-1]:.2f} at Δu"
            f" = {list(heights)[-1]}, scheme left",
            judge(exact(tallest[-1] - tallest[0]), above=0.0, unit="for the growth of the highest peak"),
        ),
        Claim(
            "harmless",
            "the peaks do not disturb weighted averages (not in the paper)",
            f"weighted mean of x with θ known, continuous weights: {true:.3f} with peaks, {free:.3f} without, truth"
            f" {PROBLEM.mean:.3f}",
            judge(
                gap, above=-0.1, below=0.1, unit="for the difference of the two means; the standard deviation is 3.9"
            ),
        ),
        Claim(
            "mean",
            "CSGLD's weighted average converges on this mixture, too (not in the paper; Algorithm 1 with a flat last"
            " bin)",
            f"weighted mean of x: {printed:.3f}, truth {PROBLEM.mean:.3f}; the library, same scheme, continuous"
            f" weights: {over_seeds(estimates['CSGLD']['mean']):.3f}",
            judge(with_error(printed.value - PROBLEM.mean, printed.error), above=-0.1, below=0.1, unit="for its bias"),
        ),
    ]


def _notes(record: Record) -> list[str]:
    found, estimates = record["scan"], record["estimates"]
    heights = ["| Δu | mean height | largest | offsets with a peak |", "|---|---|---|---|"]
    for width, values in found["left"]["heights"].items():
        heights.append(
            f"| {width} | {np.mean(values):.2f} | {max(values):.2f} | {np.count_nonzero(values)} of {len(values)} |"
        )
    table = ["| | mean of x | P(x < −1) | crossings per run |", "|---|---|---|---|"]
    table.append(f"| truth | {PROBLEM.mean:.3f} | {PROBLEM.weights[0]:.4f} | |")
    for name, numbers in estimates.items():
        mean, below = over_seeds(numbers["mean"]), over_seeds(numbers["below"])
        table.append(f"| {name} | {mean:.3f} | {below:.4f} | {numbers['crossings']:,.0f} |")
    return [
        f"The paper does not give u₁. The figure and the estimates are for u₁ = {PARTITION.low:g}, where U(−6) lies"
        " just above an edge and the peak is highest; the claims about energies and bins are for all widths and"
        " offsets tried.",
        "**Why.** At the energy of a local minimum a new region of space opens, so the bin that holds it (or the next,"
        " if the minimum is near its upper end) has more mass than its neighbours suggest: log θ has a bump. The trial"
        " energy U + ζ·log Ψ(U) depends on U alone, and shows the bump wherever U has that value, also on the slopes"
        " of the deeper mode.",
        "**Finer bins do not remove it.** The density of states has a singularity (u − U(−6))^−½ there, which finer"
        f" bins resolve; in the limit, halving Δu adds ½ζ·log 2 = {0.5 * ZETA * np.log(2):.2f}. Heights for each width,"
        " over the offsets of the bins, scheme left:",
        "\n".join(heights),
        f"**Estimates**, {record['runs']} runs of {record['length']:,} steps, scheme left, ε = 0.1, a tenth as burn-in;"
        " ± is one standard error. θ without peaks is θ(i) ∝ e^(−iΔu).",
        "\n".join(table),
        "Continuous weights undo any Ψ, with peaks or without. Two errors remain: the error of a finite ε (compare"
        " KSGLD at two step sizes), and in CSGLD the error of a θ still in motion (compare CSGLD with KSGLD). Step"
        " weights do not undo Ψ within a bin.",
    ]


def _figure(peak: Peak | None, found: dict[str, Any]) -> "Figure":
    import matplotlib.pyplot as plt

    from contourmc import plots

    minimum, theta = stationary()["x = -6"], PROBLEM.theta(PARTITION)
    with plt.rc_context({"font.size": 13, "legend.fontsize": 12, "axes.titlesize": 14}):
        figure, (ax, right) = plt.subplots(1, 2, figsize=(15, 6), layout="constrained", width_ratios=(2, 1))
        x, energy, _ = PROBLEM.grid(40_001)
        near = (x > -9.5) & (x < 8)
        x, energy = x[near], energy[near]
        trial = plots.flattened_energy(energy, theta, PARTITION, ZETA, "left")
        bottom = PARTITION.low + PARTITION.width * np.floor((minimum - PARTITION.low) / PARTITION.width)
        ax.axhspan(bottom, bottom + PARTITION.width, color=plots.GREEN, alpha=0.12, lw=0, label="bin of U(−6)")
        ax.axhline(minimum, color=plots.GREEN, ls="--", lw=1.5, label=f"U(−6) = {minimum:.2f}")
        ax.plot(x, energy, color=plots.GREY, lw=2.5, label="original energy U")
        ax.plot(x, trial, color=plots.BLUE, lw=2.5, label="trial energy, ζ = 0.75")
        if peak is not None:
            places = _positions(peak)
            ax.plot(places, np.interp(places, x, trial), "v", color=plots.ORANGE, ms=11, label="bizarre peak")
            ax.plot(places, np.interp(places, x, energy), "o", color=plots.ORANGE, ms=8, label="U at the peak")
        ax.set(xlabel="x", ylabel="energy", ylim=(0.5, 9), title="The peak is in the energy bin of the minimum at −6")
        ax.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.11), fontsize=11)
        heights = found["left"]["heights"]
        widths = [float(width) for width in heights]
        right.plot(widths, [max(v) for v in heights.values()], "o-", color=plots.ORANGE, label="largest")
        right.plot(widths, [np.mean(v) for v in heights.values()], "s-", color=plots.BLUE, label="mean")
        right.set(xscale="log", xlabel="bin width Δu", ylabel="height of the peak", ylim=(0, None))
        right.set_xticks(widths, [f"{width:g}" for width in widths])
        right.set_xticks([], minor=True)
        right.set_title("Finer bins do not remove it")
        right.legend(frameon=False, title="over offsets of the bins")
    return figure
