"""Figure 1 of the paper: a mixture of two Gaussians, its flattened energy, θ, and the error of the mean."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from contourmc.draws.trajectory import Trajectory
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import csgld, ksgld
from contourmc.problems import GaussianMixture
from contourmc.sampling.start import start
from contourmc.studies.algorithm import FlatLastBin
from contourmc.studies.algorithm_one import AlgorithmOne, noisy, papers_omega, run
from contourmc.studies.base import (
    Claim,
    Drawing,
    Measured,
    Options,
    Outcome,
    Record,
    Size,
    exact,
    judge,
    over_seeds,
    ratio,
    share,
    with_error,
)
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROBLEM = GaussianMixture()
TARGET = NoisyEnergy(PROBLEM.energy, gradient_variance=0.01)
OURS = Partition(low=1.5, width=1.0, bins=50)  # the lowest energy is 1.43
PAPERS = Partition(low=2.0, width=1.0, bins=50)  # the paper does not give u₁
ZETAS = (0.5, 0.75, 1.0)
SCHEMES: tuple[tuple[Scheme, Partition], ...] = (("left", PAPERS), ("right", PAPERS), ("smooth", OURS))
CLOSE = 0.2  # a run within it has found the mean, 0; the standard deviation of x is 5
PRINTED, AMENDED = "Algorithm 1 as printed", "Algorithm 1, flat last bin"
FLATTENED = "Algorithm 1, flat last bin, ζ = 1"


class Method(NamedTuple):
    """The result of a method, from all its runs.

    steps: the marks.  errors: running mean − truth, (runs, marks); NaN after a run has diverged.
    theta: at the end.  visits: to each bin in the second half of the run.
    """

    steps: np.ndarray
    errors: np.ndarray
    theta: np.ndarray
    visits: np.ndarray


# --- Measurements ------------------------------------------------------------------------------------


def kernels() -> dict[str, Kernel]:
    """The library's methods. At ζ = 0 CSGLD makes the same steps as SGLD, and counts the visits to each bin."""
    ours: dict[str, Any] = dict(step_size=0.1, partition=OURS)
    papers: dict[str, Any] = dict(step_size=0.1, partition=PAPERS, scheme="left", weights="step", zeta=0.75)
    return {
        "sgld": csgld(**ours, zeta=0.0),
        "ksgld": ksgld(**ours, zeta=0.75, theta=PROBLEM.theta(OURS).tolist()),
        "csgld": csgld(**ours, zeta=0.75, omega=papers_omega),
        "csgld_flat": csgld(**ours, zeta=1.0, omega=papers_omega),
        "ksgld_step": ksgld(**papers, theta=PROBLEM.theta(PAPERS).tolist()),
    }


def measure(options: Options, record: Record) -> None:
    """Barriers by quadrature; then every method on the mixture."""
    record["barriers"] = {
        scheme: {f"{zeta:g}": barriers(partition, zeta, scheme) for zeta in (0.0, *ZETAS)}
        for scheme, partition in SCHEMES
    }
    methods = record["methods"] = {}
    for seed, (name, kernel) in enumerate(kernels().items()):
        methods[name] = summarise(_sampled(kernel, options.size, seed), PAPERS if name.endswith("step") else OURS)
    for name, kind, zeta in (
        (PRINTED, AlgorithmOne, 0.75),
        (AMENDED, FlatLastBin, 0.75),
        (FLATTENED, FlatLastBin, 1.0),
    ):
        methods[name] = summarise(_printed(kind, zeta, options.size), PAPERS)
    record |= {"length": options.size.length, "runs": options.size.seeds}


def _sampled(kernel: Kernel, size: Size, seed: int) -> Method:
    """Run a method. The first hundredth of its steps has marks of its own, closer together than the others."""
    steps, runs = size.length, size.seeds
    early = steps // 100
    every = 1024 * -(-early // 25_600)
    marks, means = [], []
    with start(TARGET, init=0.0, steps=steps, chains=runs, seed=seed, kernel=kernel, burn_in=0, thin=steps) as ongoing:
        for mark in (*range(every, early, every), early):
            ongoing.advance(mark - ongoing.step)
            marks.append(mark)
            means.append(_running_mean(ongoing.samples().trajectory)[:, -1:])
        ongoing.advance()
        trajectory, theta = ongoing.samples().trajectory, ongoing.samples().theta
    later = trajectory.steps > early
    errors = np.hstack([*means, _running_mean(trajectory)[:, later]]) - PROBLEM.mean
    visits = np.asarray(trajectory.visits)
    half = visits.shape[1] // 2
    first_half = visits[:, half - 1] if half else 0  # a very short run has a single mark
    return Method(np.append(marks, trajectory.steps[later]), errors, np.asarray(theta), visits[:, -1] - first_half)


def _running_mean(trajectory: Trajectory) -> np.ndarray:
    """The weighted mean of all steps up to each mark, (chains, marks)."""
    weights = np.exp(trajectory.log_weights - trajectory.log_weights.max(axis=1, keepdims=True))
    return np.cumsum(weights * trajectory.means, axis=1) / np.cumsum(weights, axis=1)


def _printed(kind: type[AlgorithmOne], zeta: float, size: Size) -> Method:
    """The reference implementation, with 1,000 marks, of which the first 50 and every tenth are kept."""
    every = max(1, size.length // 1000)
    algorithm = kind(PAPERS.low, PAPERS.width, PAPERS.bins, zeta=zeta)
    path = run(algorithm, noisy(PROBLEM.energy, 0.01), 0.0, steps=size.length, every=every, chains=size.seeds, seed=5)
    errors = np.where(path.finite, path.running_mean() - PROBLEM.mean, np.nan)
    kept = np.union1d(np.arange(min(50, len(path.steps))), np.arange(9, len(path.steps), 10))
    return Method(path.steps[kept], errors[:, kept], path.theta[:, -1], path.visits)


def summarise(method: Method, partition: Partition) -> dict[str, Any]:
    """The numbers of a method, as plain data; runs that have diverged are left out of all but their count."""
    truth = PROBLEM.theta(partition)
    finite = np.isfinite(method.errors)
    final = method.errors[finite[:, -1], -1]
    counts = np.maximum(finite.sum(axis=0), 1)
    errors = np.where(finite, np.abs(method.errors), 0.0)
    mean = errors.sum(axis=0) / counts
    spread = np.sqrt(np.where(finite, (errors - mean) ** 2, 0.0).sum(axis=0) / counts)
    alive = finite[:, -1]
    return {
        "final": final.tolist(),
        "finite": finite.sum(axis=0).tolist(),
        "theta_tv": (np.abs(method.theta[alive] - truth).sum(axis=1) / 2).tolist(),
        "theta": method.theta[alive].mean(axis=0).tolist() if alive.any() else None,
        "visits": _rounded(method.visits[alive].sum(axis=0) / max(1, method.visits[alive].sum()), 9),
        "flatness": [flatness(one) for one in method.visits[alive]],
        "steps": method.steps.tolist(),
        "error": [round(value, 5) if count else None for value, count in zip(mean, finite.sum(axis=0), strict=True)],
        "spread": _rounded(spread, 5),
        "log_error": _rounded(np.log(np.maximum(np.where(finite, np.abs(method.errors), np.nan), 1e-9)), 3),
    }


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    return np.where(np.isfinite(values), np.round(values, digits), 0.0).tolist()


def barriers(partition: Partition, zeta: float, scheme: Scheme) -> list[float]:
    """The barriers from −6 to 4 and from 4 to −6, in the trial energy of the true θ.

    A barrier is the greatest climb on the way, from any point to a later one. Where the trial energy is lowest
    at the mode and highest at the saddle, it is the difference between the two.
    """
    from contourmc.plots import flattened_energy

    x, energy, _ = PROBLEM.grid(38_001)
    between = (x >= -6) & (x <= 4)
    trial = flattened_energy(energy[between], PROBLEM.theta(partition), partition, zeta, scheme)
    return [float(np.max(way - np.minimum.accumulate(way))) for way in (trial, trial[::-1])]


def flatness(visits: np.ndarray) -> float:
    """The smallest count of visits divided by the largest, from bin 1 to the bin of the saddle (U = 13.4).

    Bin 0 does not count: from the lowest energy to u₁ it is only 0.07 wide, the others are 1.
    """
    x, energy, _ = PROBLEM.grid()
    saddle = energy[(x > -6) & (x < 4)].max()
    counts = visits[1 : int(OURS.index(saddle)) + 1]
    return float(counts.min() / max(counts.max(), 1))


# --- What it says ------------------------------------------------------------------------------------


def conclude(record: Record) -> Outcome:
    figure = Drawing(
        lambda: _figure(record),
        "(a) Original and trial energies for the true θ, as in the paper: scheme left, u₁ = 2, Δu = 1, the first 12"
        " bins. (b) The true θ, θ learnt at ζ = 0.75, and the shares of visits to the bins, by the library's defaults"
        " (scheme smooth, continuous weights, u₁ = 1.5). (c) Mean absolute error of the weighted mean of x over"
        f" {record['runs']} runs, bands of one standard deviation; the curve of Algorithm 1 as printed ends where half"
        " of its runs have diverged.",
    )
    return Outcome([*_landscape_claims(record), *_error_claims(record)], {"figure1": figure}, _notes(record))


def _landscape_claims(record: Record) -> list[Claim]:
    """Barriers, θ, and the histogram of energies."""
    methods = record["methods"]
    before, after = record["barriers"]["left"]["0"][1], record["barriers"]["left"]["0.75"][1]
    flat = {name: over_seeds(methods[name]["flatness"]) for name in (FLATTENED, AMENDED, "csgld_flat", "csgld", "sgld")}
    logs = np.log(PROBLEM.theta(OURS)[2:13])
    slope, correlation = np.polyfit(np.arange(11), logs, 1)[0], np.corrcoef(np.arange(11), logs)[0, 1]
    distance = {name: _over_runs(methods[name]["theta_tv"]) for name in ("csgld", AMENDED)}
    lowest = methods[AMENDED]["theta"]
    truth = PROBLEM.theta(PAPERS)[0]
    return [
        Claim(
            "barrier",
            "ζ = 0.75 reduces the energy barrier from 12 to as small as 2",
            f"out of the deeper mode at 4, scheme left, u₁ = {PAPERS.low:g}: {before:.2f} → {after:.2f}; out of the"
            f" mode at −6: {record['barriers']['left']['0'][0]:.2f} → {record['barriers']['left']['0.75'][0]:.2f}",
            judge(exact(after), above=1.0, below=3.0, unit="for the barrier out of the deeper mode (12.0 before)"),
        ),
        Claim(
            "theta",
            "the estimate of θ matches the ground truth very well (ζ = 0.75)",
            f"Algorithm 1 with a flat last bin: total variation {distance[AMENDED]:.3f}, θ of the lowest bin"
            f" {lowest[0] if lowest else float('nan'):.3f} for a true {truth:.3f}",
            judge(distance[AMENDED], below=0.05, unit="in total variation"),
        ),
        Claim(
            "theta-ours",
            "the same, with continuous weights (not in the paper)",
            f"total variation {distance['csgld']:.3f}",
            judge(distance["csgld"], below=0.05, unit="in total variation"),
        ),
        Claim(
            "decay",
            "θ decays exponentially fast with the index of the bin",
            f"bins 2 to 12: log θ falls by {-slope:.2f} a bin, correlation {correlation:.4f}",
            judge(exact(correlation), below=-0.99, unit="for the correlation of log θ with the index"),
        ),
        Claim(
            "flat",
            "ζ = 1 leads to a flat histogram of energies",
            "Algorithm 1 with a flat last bin, visits of the least over the most visited bin below the saddle:"
            f" {flat[FLATTENED]:.2f} at ζ = 1, {flat[AMENDED]:.3f} at ζ = 0.75, {flat['sgld'].value:.0e} for SGLD",
            judge(flat[FLATTENED], above=0.5, unit="for least over most at ζ = 1"),
        ),
        Claim(
            "flat-ours",
            "the same with the library's defaults (not in the paper)",
            f"{flat['csgld_flat']:.2f} at ζ = 1, {flat['csgld']:.3f} at ζ = 0.75",
            judge(flat["csgld_flat"], above=0.5, unit="for least over most at ζ = 1"),
        ),
    ]


def _over_runs(values: list[float]) -> Measured:
    return over_seeds(values) if values else over_seeds([float("nan")])


def _error_claims(record: Record) -> list[Claim]:
    """The error of the mean."""
    methods, runs = record["methods"], record["runs"]
    error = {name: _over_runs(np.abs(found["final"]).tolist()) for name, found in methods.items()}
    close = {name: int(np.sum(np.abs(found["final"]) < CLOSE)) for name, found in methods.items()}

    def ended(name: str) -> str:
        return f"final error {error[name]:.3f}, {close[name]} of {runs} runs within {CLOSE:g}"

    printed = methods[PRINTED]
    bias, known = over_seeds(methods[AMENDED]["final"]), over_seeds(methods["ksgld_step"]["final"])
    claims = [
        Claim(
            "sgld",
            "SGLD's error decays slowly and rarely converges",
            ended("sgld"),
            judge(share(close["sgld"], runs), below=0.5, unit=f"of the runs within {CLOSE:g}"),
        ),
        Claim(
            "printed",
            "CSGLD's weighted average of x converges (Algorithm 1 as printed)",
            f"{printed['finite'][-1]} of {runs} runs are finite after {record['length']:,} steps",
            judge(share(printed["finite"][-1], runs), above=0.5, unit="of the runs end with a number"),
        ),
        Claim(
            "step-weights",
            "CSGLD's weighted average of x converges to the mean, with the paper's step weights",
            f"Algorithm 1 with a flat last bin, u₁ = {PAPERS.low:g}: off by {bias:.3f}, {ended(AMENDED)}; KSGLD with"
            f" the same weights is off by {known:.3f}",
            judge(bias, above=-0.1, below=0.1, unit="for the bias of the mean; the standard deviation of x is 5"),
        ),
        Claim(
            "continuous-weights",
            "the same, with continuous weights (not in the paper)",
            f"off by {over_seeds(methods['csgld']['final']):.3f}, {ended('csgld')}",
            judge(over_seeds(methods["csgld"]["final"]), above=-0.1, below=0.1, unit="for the bias of the mean"),
        ),
    ]
    for suffix, known_theta, learnt, which in (
        ("", "ksgld_step", AMENDED, "step weights, Algorithm 1 with a flat last bin"),
        ("-ours", "ksgld", "csgld", "the library's defaults; not in the paper"),
    ):
        gain = _log_ratio(methods[known_theta]["final"], methods["sgld"]["final"])
        early, late = _slowdown(methods[learnt], methods[known_theta])
        claims += [
            Claim(
                f"ksgld{suffix}",
                f"KSGLD (θ known) converges much faster than SGLD ({which})",
                ended(known_theta),
                judge(gain, below=float(np.log(1 / 3)), rule="below a third of SGLD's error"),
            ),
            Claim(
                f"early{suffix}",
                f"in the early period CSGLD converges slightly slower than KSGLD ({which})",
                f"first 1% of the steps: error {_as_ratio(early)} times KSGLD's",
                judge(early, above=0.0, below=float(np.log(1.5)), rule="above 1 and below 1.5 times KSGLD's error"),
            ),
            Claim(
                f"late{suffix}",
                f"soon CSGLD becomes as efficient as KSGLD ({which})",
                f"after the first 1%: error {_as_ratio(late)} times KSGLD's; {ended(learnt)}",
                judge(late, below=float(np.log(1.25)), rule="below 1.25 times KSGLD's error"),
            ),
        ]
    return claims


def _as_ratio(logarithm: Measured) -> str:
    """A ratio and its interval, from its logarithm."""
    low, value, high = np.exp([logarithm.low, logarithm.value, logarithm.high])
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def _log_ratio(one: list[float], other: list[float]) -> Measured:
    """The logarithm of the ratio of mean absolute errors of two methods, with independent runs."""
    return _logarithm(ratio(over_seeds(np.abs(one)), over_seeds(np.abs(other))))


def _slowdown(slow: dict[str, Any], fast: dict[str, Any]) -> tuple[Measured, Measured]:
    """The logarithm of the ratio of the errors of two methods, in the first hundredth of the steps and after it.

    The error of each is the mean absolute error at marks of equal spacing in log k, with its scatter over the runs.
    """
    last, found = slow["steps"][-1], []
    for low, high in ((last / 1000, last / 100), (last / 100, last)):
        marks = np.geomspace(low, high, 20)
        means = []
        for one in (slow, fast):
            errors = np.exp(np.array(one["log_error"]))
            at = np.stack([np.interp(np.log(marks), np.log(one["steps"]), row) for row in errors])
            means.append(over_seeds(at.mean(axis=1)))
        found.append(_logarithm(ratio(*means)))
    return found[0], found[1]


def _logarithm(value: Measured) -> Measured:
    """To first order in the error."""
    return with_error(float(np.log(value.value)), value.error / value.value, value.freedom)


def _notes(record: Record) -> list[str]:
    """How it was measured, and the table of barriers."""
    heights = record["barriers"]
    table = [f"| scheme | {' | '.join(f'ζ = {zeta:g}' for zeta in ZETAS)} |", "|---|---|---|---|"]
    for scheme, partition in SCHEMES:
        pairs = ("{:.2f}, {:.2f}".format(*heights[scheme][f"{zeta:g}"]) for zeta in ZETAS)
        table.append(f"| `{scheme}`, u₁ = {partition.low:g} | {' | '.join(pairs)} |")
    before, shares = heights["left"]["0"], record["methods"]["csgld_flat"]["visits"]
    return [
        f"{record['runs']} runs of {record['length']:,} steps from x = 0, which is also the true mean; no burn-in,"
        " since the paper mentions none; ± is one standard error over the runs. The paper's algorithm is the reference"
        " implementation, as printed and with multiplier 1 in the last bin. KSGLD, and CSGLD without further words,"
        " are the library's defaults at the paper's ε, Δu, m and ω. The paper does not give u₁: we take 2 for its"
        " algorithm, and 1.5, just above the lowest energy of 1.43, for ours.",
        "**Barriers** from −6 to 4 and from 4 to −6, with the true θ: the greatest climb on the way, from any point to"
        f" a later one. Without flattening: {before[0]:.2f}, {before[1]:.2f}. At ζ = 1 the climbs are those of the saw"
        " teeth of log Ψ, and the modes have become hills.",
        "\n".join(table),
        "**Histograms** are of the second half of the runs. The flatness leaves out bin 0, which is 0.07 wide; its"
        f" share at ζ = 1 is {shares[0]:.4f}, the share of bin 1 {shares[1]:.4f}.",
    ]


# --- The figure --------------------------------------------------------------------------------------


def _figure(record: Record) -> "Figure":
    import matplotlib.pyplot as plt

    from contourmc import plots

    with plt.rc_context({"font.size": 13, "legend.fontsize": 11, "axes.titlesize": 14}):
        figure, axes = plt.subplot_mosaic("ab\ncc", figsize=(13, 11), layout="constrained")
        x = np.linspace(-11.5, 9.5, 4001)
        inside = np.flatnonzero(np.asarray(PROBLEM.energy(jnp.asarray(x))) <= PAPERS.low + 11 * PAPERS.width)  # 12 bins
        x = x[inside[0] : inside[-1] + 1]
        plots.plot_landscape(PROBLEM.energy, x, PROBLEM.theta(PAPERS), PAPERS, zetas=ZETAS, scheme="left", ax=axes["a"])
        axes["a"].legend(frameon=False, ncols=2, loc="upper center")
        axes["a"].set(ylim=(0, 18), title="(a) Original and trial energies")
        _draw_theta(record["methods"], axes["b"])
        _draw_errors(record["methods"], axes["c"])
    return figure


def _draw_theta(methods: dict[str, Any], ax: "Axes") -> None:
    from contourmc import plots

    bins = 20
    centres = OURS.low + OURS.width * (np.arange(bins) - 0.5)
    edges = OURS.low + OURS.width * (np.arange(bins + 1) - 1)
    for name, label, color in (
        ("sgld", "visits, SGLD", plots.GREY),
        ("csgld", "visits, CSGLD ζ = 0.75", plots.ORANGE),
        ("csgld_flat", "visits, CSGLD ζ = 1", "#CC79A7"),
    ):
        ax.stairs(methods[name]["visits"][:bins], edges, color=color, lw=2, label=label)
    ax.plot(centres, PROBLEM.theta(OURS)[:bins], "k+", ms=12, mew=1.5, label="true θ")
    ax.plot(centres, methods["csgld"]["theta"][:bins], "o", color=plots.BLUE, ms=6, mfc="none", mew=1.8,
            label="θ learnt, ζ = 0.75")  # fmt: skip
    ax.set(yscale="log", ylim=(1e-10, 100), xlabel="energy", ylabel="share of the bin")
    ax.set_title("(b) θ and visits of the energy bins")
    ax.legend(frameon=False, ncols=2, loc="upper right")


def _draw_errors(methods: dict[str, Any], ax: "Axes") -> None:
    from contourmc import plots

    for name, label, color in (
        ("sgld", "SGLD", plots.GREY),
        (PRINTED, "CSGLD: Algorithm 1 as printed", plots.RED),
        (AMENDED, "CSGLD: Algorithm 1, flat last bin", plots.ORANGE),
        ("ksgld", "KSGLD (θ known), continuous weights", plots.GREEN),
        ("csgld", "CSGLD: the library, continuous weights", plots.BLUE),
    ):
        found = methods[name]
        finite = np.array(found["finite"])
        kept = np.flatnonzero(finite > finite[0] / 2)  # the mean of few survivors says little
        steps, error, spread = (np.array(found[key], float)[kept] for key in ("steps", "error", "spread"))
        error = np.maximum(error, 1e-3)
        ax.plot(steps, error, color=color, lw=2, label=label)
        ax.fill_between(steps, np.maximum(error - spread, 1e-3), error + spread, color=color, alpha=0.12, lw=0)
        if len(kept) < len(finite):
            ax.plot(steps[-1], error[-1], "x", color=color, ms=12, mew=3)
            ax.annotate(
                "half of the runs\nhave diverged", (steps[-1], error[-1]), (0, -42), textcoords="offset points",
                color=color, ha="center",
            )  # fmt: skip
    ax.set(xscale="log", yscale="log", ylim=(0.01, 12), xlabel="iteration", ylabel="|error of the mean of x|")
    ax.set_title("(c) Error of the mean (band: one standard deviation over runs)")
    ax.legend(frameon=False, loc="lower left")
