"""Figure 1 of the paper: a mixture of two Gaussians, its flattened energy, θ, and the error of the mean."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contourmc.flattening import Scheme
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import csgld, ksgld
from contourmc.partition import Partition
from contourmc.path import Path
from contourmc.problems import GaussianMixture
from contourmc.sampling import sample
from contourmc.studies.base import Claim, Options, Outcome, Study
from contourmc.targets import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROBLEM = GaussianMixture()
TARGET = NoisyEnergy(PROBLEM.energy, gradient_variance=0.01)
OURS = Partition(low=1.5, width=1.0, bins=50)  # the lowest energy is 1.43
PAPERS = Partition(low=2.0, width=1.0, bins=50)
ZETAS = (0.5, 0.75, 1.0)
SCHEMES: tuple[tuple[Scheme, Partition], ...] = (("left", PAPERS), ("centred", OURS), ("right", OURS))


class Method(NamedTuple):
    """What a method did in all its runs.

    steps: the marks.  errors: running mean − truth, (runs, marks).
    theta: at the end.  visits: of each bin in the second half of the run.
    """

    steps: np.ndarray
    errors: np.ndarray
    theta: np.ndarray
    visits: np.ndarray

    @property
    def curve(self) -> np.ndarray:
        """The mean absolute error at every mark."""
        return np.maximum(np.abs(self.errors).mean(axis=0), 1e-9)  # 0 at the start; the axes are logarithmic


def kernels() -> dict[str, Kernel]:
    """The methods compared. At ζ = 0 CSGLD makes the very steps of SGLD, and counts visits of the bins."""
    ours: dict[str, Any] = dict(step_size=0.1, partition=OURS, scheme="right")
    papers: dict[str, Any] = dict(step_size=0.1, partition=PAPERS, scheme="left", weights="step", zeta=0.75)
    return {
        "sgld": csgld(**ours, zeta=0.0),
        "ksgld": ksgld(**ours, zeta=0.75, theta=PROBLEM.theta(OURS).tolist()),
        "csgld": csgld(**ours, zeta=0.75),
        "csgld_flat": csgld(**ours, zeta=1.0),
        "ksgld_step": ksgld(**papers, theta=PROBLEM.theta(PAPERS).tolist()),
        "csgld_step": csgld(**papers),
    }


def measure(kernel: Kernel, steps: int, runs: int, seed: int) -> Method:
    """Run a method; the same seed with fewer steps repeats its start, with marks closer together."""
    early, whole = (
        sample(TARGET, init=0.0, steps=count, chains=runs, seed=seed, kernel=kernel, burn_in=0, thin=count)
        for count in (steps // 100, steps)
    )
    later = whole.path.steps > early.path.steps[-1]
    marks = np.concatenate([early.path.steps, whole.path.steps[later]])
    errors = np.hstack([running_mean(early.path), running_mean(whole.path)[:, later]]) - PROBLEM.mean
    visits = np.asarray(whole.path.visits)
    half = visits.shape[1] // 2
    first_half = visits[:, half - 1] if half else 0  # a very short run has a single mark
    return Method(marks, errors, np.asarray(whole.theta), visits[:, -1] - first_half)


def running_mean(path: Path) -> np.ndarray:
    """The weighted mean of all steps up to each mark, (chains, marks)."""
    weights = np.exp(path.log_weights - path.log_weights.max(axis=1, keepdims=True))
    return np.cumsum(weights * path.means, axis=1) / np.cumsum(weights, axis=1)


def barriers(partition: Partition, zeta: float, scheme: Scheme) -> list[float]:
    """The barriers from −6 to 4 and from 4 to −6, in the trial energy of the true θ.

    A barrier is the greatest climb on the way: from any point to a later one. Where the trial energy is
    lowest at the mode and highest at the saddle, this is the difference of the two.
    """
    from contourmc.plots import flattened_energy

    x, energy, _ = PROBLEM.grid(38_001)
    between = (x >= -6) & (x <= 4)
    trial = flattened_energy(energy[between], PROBLEM.theta(partition), partition, zeta, scheme)
    return [float(np.max(way - np.minimum.accumulate(way))) for way in (trial, trial[::-1])]


def flatness(visits: np.ndarray) -> float:
    """The least over the largest count of visits, from bin 1 to the bin of the saddle (13.4).

    Bin 0 is left out: between the lowest energy and u₁ it is 0.07 wide, the others are 1.
    """
    x, energy, _ = PROBLEM.grid()
    saddle = energy[(x > -6) & (x < 4)].max()
    counts = visits.sum(axis=0)[1 : int(OURS.index(saddle)) + 1]
    return float(counts.min() / max(counts.max(), 1))


def average(by_run: np.ndarray) -> dict[str, float]:
    """The mean over runs and its standard error (0 for a single run)."""
    runs = len(by_run)
    return {"mean": float(by_run.mean()), "se": float(by_run.std(ddof=min(1, runs - 1)) / runs**0.5)}


def summarise(methods: dict[str, Method]) -> dict[str, Any]:
    """Every number of the methods, as plain data."""
    summary: dict[str, Any] = {}
    for name, method in methods.items():
        truth = PROBLEM.theta(PAPERS if name.endswith("step") else OURS)
        summary[name] = {
            "final_abs_error": average(np.abs(method.errors[:, -1])),
            "final_bias": average(method.errors[:, -1]),
            "runs_within_0.2": int(np.sum(np.abs(method.errors[:, -1]) < 0.2)),
            "theta_tv": average(np.abs(method.theta - truth).sum(axis=1) / 2),
            "theta": method.theta.mean(axis=0).tolist(),
            "theta_truth": truth.tolist(),
            "visit_shares": (method.visits.sum(axis=0) / method.visits.sum()).tolist(),
            "flatness": flatness(method.visits),
            "steps": method.steps.tolist(),
            "mean_abs_error": method.curve.tolist(),
        }
    return summary


def slowdown(slow: Method, fast: Method) -> tuple[float, float]:
    """How many times larger one error is than another, in the first hundredth of the steps and later on."""
    ratio = np.log(slow.curve / fast.curve)
    early = slow.steps <= slow.steps[-1] // 100
    return float(np.exp(ratio[early].mean())), float(np.exp(ratio[~early].mean()))


def run(options: Options) -> Outcome:
    """Sample with every method, and compare with quadrature and with the paper's words."""
    steps, runs = options.choose(steps=10_000_000, seeds=10, quick_steps=100_000, quick_seeds=4)
    named = enumerate(kernels().items())
    methods = {name: measure(kernel, steps, runs, seed) for seed, (name, kernel) in named}
    heights = {
        scheme: {f"{zeta:g}": barriers(partition, zeta, scheme) for zeta in (0.0, *ZETAS)}
        for scheme, partition in SCHEMES
    }
    found = summarise(methods)
    results = {"steps": steps, "runs": runs, "barriers": heights, **found}
    claims = [*_landscape_claims(heights, found), *_error_claims(methods, found)]
    return Outcome(claims, results, {"figure1": _figure(methods)}, _notes(heights, found, steps, runs))


def _landscape_claims(heights: dict[str, Any], found: dict[str, Any]) -> list[Claim]:
    before, after = heights["left"]["0"], heights["left"]["0.75"]
    barrier = [f"{b:.1f} → {a:.2f} leaving {x}" for b, a, x in zip(before, after, ("−6", "4"), strict=True)]
    rounds = any(round(b) == 12 and round(a) == 2 for b, a in zip(before, after, strict=True))
    tv, stepped = found["csgld"]["theta_tv"], found["csgld_step"]
    lowest = f"θ of the lowest bin {stepped['theta'][0]:.3f}, truth {stepped['theta_truth'][0]:.3f}"
    logs = np.log(found["csgld"]["theta_truth"][2:13])
    slope, correlation = np.polyfit(np.arange(11), logs, 1)[0], np.corrcoef(np.arange(11), logs)[0, 1]
    flat = {name: found[name]["flatness"] for name in ("sgld", "csgld", "csgld_flat")}
    ratios = f"{flat['csgld_flat']:.2f} at ζ = 1, {flat['csgld']:.3f} at ζ = 0.75, {flat['sgld']:.0e} for SGLD"
    matches = "the estimate of θ matches the ground truth very well"
    return [
        Claim("ζ = 0.75 reduces the energy barrier from 12 to as small as 2", f"`left`: {', '.join(barrier)}", rounds),
        Claim(matches, f"continuous weights: total variation distance {_pm(tv)}", tv["mean"] < 0.05),
        Claim(
            f"{matches}, with the paper's step weights and `left` scheme",
            f"total variation distance {_pm(stepped['theta_tv'])}; {lowest}",
            stepped["theta_tv"]["mean"] < 0.05,
        ),
        Claim(
            "θ decays exponentially fast with the index of the bin",
            f"bins 2 to 12: log θ falls by {-slope:.2f} a bin, correlation {correlation:.4f}",
            bool(correlation < -0.99),
        ),
        Claim(
            "ζ = 1 leads to a flat histogram of energy",
            f"least / most visited bin below the barrier: {ratios}",
            flat["csgld_flat"] > 0.5,
        ),
    ]


def _error_claims(methods: dict[str, Method], found: dict[str, Any]) -> list[Claim]:
    runs, steps = len(methods["sgld"].errors), methods["sgld"].steps[-1]
    error = {name: found[name]["final_abs_error"] for name in found}
    ended = {
        name: f"final error {_pm(error[name])}; {found[name]['runs_within_0.2']} of {runs} runs within 0.2"
        for name in found
    }
    early, late = slowdown(methods["csgld"], methods["ksgld"])
    _, late_step = slowdown(methods["csgld_step"], methods["ksgld_step"])
    bias, known = (found[name]["final_bias"] for name in ("csgld_step", "ksgld_step"))
    long_enough = steps >= 1_000_000  # "soon" has not come before
    return [
        Claim(
            "SGLD's error decays slowly and rarely converges",
            ended["sgld"],
            found["sgld"]["runs_within_0.2"] < runs / 2,
        ),
        Claim(
            "KSGLD (true θ) converges much faster than SGLD",
            ended["ksgld"],
            error["ksgld"]["mean"] < error["sgld"]["mean"] / 3,
        ),
        Claim(
            "early on CSGLD is slightly slower than KSGLD",
            f"first 1% of the steps: error {early:.1f} times KSGLD's",
            early > 1,
        ),
        Claim(
            "soon CSGLD is as efficient as KSGLD",
            f"after the first 1%: error {late:.2f} times KSGLD's; {ended['csgld']}",
            late < 1.5 if long_enough else None,
        ),
        Claim(
            "the weighted average converges to the mean, with the paper's step weights and `left` scheme",
            f"averaged over the runs, off by {_pm(bias)} (KSGLD with the same weights: {_pm(known)});"
            f" {ended['csgld_step']}; error {late_step:.2f} times that of this KSGLD",
            abs(bias["mean"]) < 3 * bias["se"] if long_enough else None,
        ),
    ]


def _pm(value: dict[str, float]) -> str:
    return f"{value['mean']:.3f} ± {value['se']:.3f}"


def _notes(heights: dict[str, Any], found: dict[str, Any], steps: int, runs: int) -> list[str]:
    rows = [f"| scheme | {' | '.join(f'ζ = {zeta:g}' for zeta in ZETAS)} |", "|---|---|---|---|"]
    for scheme, partition in SCHEMES:
        pairs = ("{:.2f}, {:.2f}".format(*heights[scheme][f"{zeta:g}"]) for zeta in ZETAS)
        rows.append(f"| `{scheme}`, u₁ = {partition.low:g} | {' | '.join(pairs)} |")
    before, shares = heights["left"]["0"], found["csgld_flat"]["visit_shares"]
    return [
        f"{runs} runs of {steps:,} steps; ± is one standard error over the runs. All start at 0, which is"
        " also the true mean, and nothing is left out as burn-in: the paper mentions none.",
        "KSGLD and CSGLD use u₁ = 1.5, the `right` scheme and continuous weights; the paper's variant u₁ = 2"
        " (the paper does not give u₁), the `left` scheme and step weights.",
        "**Barriers** from −6 to 4 and from 4 to −6, with the true θ: the greatest climb on the way, from"
        f" any point to a later one. Without flattening: {before[0]:.2f}, {before[1]:.2f}. At ζ = 1 the climbs are"
        " those of the saw teeth of log Ψ, and of the modes, which become hills.",
        "\n".join(rows),
        "**Histograms** are of the second half of the runs. Bin 0, only 0.07 wide, is not in the flatness;"
        f" its share at ζ = 1 is {shares[0]:.4f}, that of bin 1 {shares[1]:.4f}.",
    ]


def _figure(methods: dict[str, Method]) -> "Figure":
    import matplotlib.pyplot as plt

    from contourmc import plots

    with plt.rc_context({"font.size": 13, "legend.fontsize": 11.5, "axes.titlesize": 14}):
        figure, axes = plt.subplots(1, 3, figsize=(19, 6), layout="constrained")
        x = np.linspace(-11, 9, 4001)
        plots.plot_landscape(PROBLEM.energy, x, PROBLEM.theta(PAPERS), PAPERS, zetas=ZETAS, scheme="left", ax=axes[0])
        axes[0].legend(frameon=False, ncols=2, loc="upper center")
        axes[0].set(ylim=(0, 18), title="(a) Original and trial energies")
        _draw_theta(methods, axes[1])
        _draw_errors(methods, axes[2])
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


GAUSSIAN_MIXTURE = Study(
    "gaussian-mixture",
    "Figure 1: flattened energies, θ and the error of the mean on a mixture of two Gaussians.",
    "A mixture of two Gaussians (figure 1)",
    run,
)
