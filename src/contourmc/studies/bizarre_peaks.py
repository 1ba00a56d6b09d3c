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
from contourmc.studies.base import Claim, Options, Outcome, Size, Verdict, complete, within
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
    """
    points, (_, grid_energies, probabilities) = stationary(), PROBLEM.grid(2_000_001)
    levels = np.array(list(points.values()))
    found: dict[str, Any] = {s: dict(peaks=0, farthest=0.0, shift=[np.inf, -np.inf], heights={}) for s in SCHEMES}
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
    return found


def _highest_near(peaks: list[Peak], energy: float, reach: float) -> Peak | None:
    """The highest of the peaks within reach of an energy, if there is one."""
    near = [peak for peak in peaks if abs(peak.energy - energy) < reach]
    return max(near, key=lambda peak: peak.height) if near else None


def kernels(quick: bool) -> dict[str, Kernel]:
    """CSGLD, and controls: θ known; θ ∝ e^(−u), which flattens without a peak; unless quick, also small steps and
    step weights.
    """
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
        "CSGLD, paper's step weights": csgld(**common, weights="step"),
    }
    skipped = ("CSGLD, ε = 0.02", "KSGLD, true θ, ε = 0.02", "CSGLD, paper's step weights") if quick else ()
    return {name: kernel for name, kernel in compared.items() if name not in skipped}


def estimate(kernel: Kernel, size: Size) -> dict[str, float]:
    """The mean and P(x < −1) with their standard errors over runs, and the crossings of −1 per run."""
    steps, runs = size.length, size.seeds
    result = complete(sample(TARGET, init=0.0, steps=steps, chains=runs, kernel=kernel, thin=max(1, steps // 20_000)))
    figures = {"crossings": float(np.mean(np.sum(np.diff(result.draws > -1, axis=1), axis=1)))}
    means, below = result.mean(by_chain=True), result.expectation(lambda x: x < -1, by_chain=True)
    for name, by_run in (("mean", np.asarray(means)), ("below", np.asarray(below))):
        figures[name] = float(by_run.mean())
        figures[f"{name}_se"] = float(by_run.std(ddof=min(1, runs - 1)) / runs**0.5)
    return figures


def run(options: Options, results: dict[str, Any]) -> Outcome:
    """Find the peaks, and see whether they disturb the estimates."""
    partitions = (QUICK_WIDTHS, QUICK_OFFSETS) if options.quick else (WIDTHS, OFFSETS)
    points, found = stationary(), scan(*partitions)
    peaks = peaks_by_scheme(PARTITION, PROBLEM.theta(PARTITION))
    shown = {scheme: _highest_near(some, points["x = -6"], 1.5) for scheme, some in peaks.items()}
    results |= {"stationary_energies": points, "scan": found}
    results["shown"] = {scheme: peak and peak._asdict() for scheme, peak in shown.items()}
    for name, kernel in kernels(options.quick).items():
        results.setdefault("estimates", {})[name] = estimate(kernel, options.size)
    estimates = results["estimates"]
    figures = {"bizarre_peaks": _figure(shown["left"], found)}
    return Outcome(_claims(shown, found, estimates), results, figures, _notes(found, estimates, options.size))


def _positions(peak: Peak) -> np.ndarray:
    """The two points around the mode at 4 that have the energy of the peak, one on each side."""
    x, energy, _ = PROBLEM.grid()
    sides = ((x > -1) & (x < 4), (x > 4) & (x < 10))
    return np.array([x[side][np.argmin(np.abs(energy[side] - peak.energy))] for side in sides])


def _claims(shown: dict[str, Peak | None], found: dict[str, Any], estimates: dict[str, Any]) -> list[Claim]:
    minimum, peak = stationary()["x = -6"], shown["left"]
    if peak is None:
        return [Claim("there is a bizarre peak", "none found", Verdict(False, "there is one"))]
    places = _positions(peak)
    x, energy, _ = PROBLEM.grid()
    slope = float(np.interp(places[1], x, np.gradient(energy, x)))
    bins = [int(PARTITION.index(jnp.asarray(u))) for u in (peak.energy - 0.002, minimum)]  # the grid's half step
    shifts = ", ".join(f"{p.energy - minimum:+.2f} (`{s}`)" for s, p in shown.items() if p)
    ranges = "; ".join(
        f"`{s}` {entry['peaks']} peaks, farthest {entry['farthest']:.2f} Δu" for s, entry in found.items()
    )
    heights = found["left"]["heights"]
    free, true = estimates["KSGLD, θ without peaks"], estimates["KSGLD, true θ"]
    gap, noise = true["mean"] - free["mean"], float(np.hypot(true["mean_se"], free["mean_se"]))
    return [
        Claim(
            "a bizarre peak at a point x that is no stationary point",
            f"x = {places[0]:.2f} and {places[1]:.2f}, {peak.height:.2f} high; U′ there is {slope:.2f}",
            Verdict(peak.height > 0.01 and abs(slope) > 0.1, "higher than 0.01, where |U′| > 0.1"),
        ),
        Claim(
            "x and −6 are in the same subregion",
            f"bins {bins[0]} and {bins[1]} (`left`, u₁ = {PARTITION.low:g}, Δu = {PARTITION.width:g})",
            Verdict(bins[0] == bins[1], "the same bin"),
        ),
        Claim(
            "x has the same energy as the local minimum at −6",
            f"U(−6) = {minimum:.2f}; U(x) − U(−6) = {shifts}: the same to within Δu",
            within(
                max(abs(p.energy - minimum) if p else np.inf for p in shown.values()), high=PARTITION.width, unit="off"
            ),
        ),
        Claim(
            "a bizarre peak always indicates a stationary point of the same energy",
            f"distance from the nearest stationary energy, over {len(heights)} widths and"
            f" {len(next(iter(heights.values())))} offsets of the bins: {ranges}",
            within(max(entry["farthest"] for entry in found.values()), high=1, unit="Δu away"),
        ),
        Claim(
            "(not in the paper: do the peaks disturb the estimate of the mean?)",
            f"with peaks {true['mean']:.3f} ± {true['mean_se']:.3f}, without {free['mean']:.3f} ±"
            f" {free['mean_se']:.3f}, truth {PROBLEM.mean:.3f}; the two are"
            f" {abs(gap) / (noise or np.inf):.1f} standard errors apart",
            None,
        ),
    ]


def _notes(found: dict[str, Any], estimates: dict[str, Any], size: Size) -> list[str]:
    heights = ["| Δu | mean height | largest | offsets with a peak |", "|---|---|---|---|"]
    for width, values in found["left"]["heights"].items():
        heights.append(
            f"| {width} | {np.mean(values):.2f} | {max(values):.2f} | {np.count_nonzero(values)} of {len(values)} |"
        )
    levels = np.array([list(entry["heights"].values()) for entry in found.values()])
    differ = np.abs(levels - levels[0]).max()
    table = ["| | mean of x | P(x < −1) | crossings per run |", "|---|---|---|---|"]
    table.append(f"| truth | {PROBLEM.mean:.3f} | {PROBLEM.weights[0]:.4f} | |")
    for name, numbers in estimates.items():
        mean = f"{numbers['mean']:.3f} ± {numbers['mean_se']:.3f}"
        below = f"{numbers['below']:.4f} ± {numbers['below_se']:.4f}"
        table.append(f"| {name} | {mean} | {below} | {numbers['crossings']:,.0f} |")
    shifts = ", ".join(f"{e['shift'][0]:+.2f} to {e['shift'][1]:+.2f} (`{s}`)" for s, e in found.items())
    return [
        f"The paper does not give u₁. The first three rows are for u₁ = {PARTITION.low:g}, which we chose because the"
        " peak is highest where U(−6) lies just above an edge; the fourth row and the table of heights try others.",
        "**Why.** At the energy of a local minimum a new region of space opens, so the bin that holds it (or the"
        " next, if the minimum is near its upper end) has more mass than its neighbours suggest: log θ has a bump."
        " The trial energy U + ζ·log Ψ(U) depends on U alone, and shows the bump wherever U has that value, also on"
        f" the slopes of the deeper mode. Where it lies, (U(x) − U(−6))/Δu over all partitions tried: {shifts}.",
        "**Finer bins do not remove it.** The density of states has a singularity (u − U(−6))^−½ there, which"
        f" finer bins resolve; in the limit, halving Δu adds ½ζ·log 2 = {0.5 * ZETA * np.log(2):.2f}. Heights for each"
        f" width, over the offsets of the bins, `left` (the other schemes differ from it by at most {differ:.3f}):",
        "\n".join(heights),
        f"**Estimates**, {size.seeds} runs of {size.length:,} steps, `left`, ε = 0.1, a tenth as burn-in; ± is one"
        " standard error:",
        "\n".join(table),
        "All chains start at 0; θ without peaks is θ(i) ∝ e^(−iΔu). Continuous weights undo any Ψ, with peaks or"
        " without. Two errors remain: that of a finite ε (compare KSGLD at two step sizes), and in CSGLD that of a θ"
        " still in motion, since the bins of a mode gain while a chain stays in it (compare CSGLD with KSGLD). Step"
        " weights do not undo Ψ within a bin. (A quick run omits the small steps and the step weights.)",
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
        ax.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.11))
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
