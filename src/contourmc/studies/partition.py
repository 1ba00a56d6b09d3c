"""Where the energy partition begins, and how many bins it has: what the paper leaves to the user."""

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc.flattening import theta as flattening
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.kernels.contour import Weights, csgld
from contourmc.problems import GaussianMixture
from contourmc.problems.gaussian_mixture import bin_probabilities
from contourmc.sampling.sample import sample
from contourmc.studies.algorithm import FlatLastBin
from contourmc.studies.algorithm_one import noisy, papers_omega, run
from contourmc.studies.base import (
    Claim,
    Drawing,
    Measured,
    Options,
    Outcome,
    Record,
    complete,
    difference,
    exact,
    judge,
    over_seeds,
    with_error,
)
from contourmc.studies.trajectories import mode_crossings
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIXTURES = {"0.4, 0.6": GaussianMixture(), "1/6, 5/6": GaussianMixture(weights=(1 / 6, 5 / 6))}
SCHEMES: tuple[Scheme, ...] = ("left", "centred", "right", "smooth")
_PAPERS: tuple[Literal["left", "right"], ...] = ("left", "right")  # of the paper and of its supplement
STARTS, QUICK_STARTS = (1.5, 1.7, 2.0, 2.5, 2.7, 3.0, 4.0, 5.0), (2.0, 4.0)
FINE = np.round(np.arange(1.5, 5.01, 0.1), 2)
BINS, QUICK_BINS = (4, 10, 30, 100, 300, 1000, 3000), (10, 100)
SPAN = 50.0  # of energy, which the bins divide
CROSSING_STEPS = 40_000
COLORS = {"left": "#D55E00", "centred": "#E69F00", "right": "#CC79A7", "smooth": "#0072B2"}
PRINTED, OURS = "Algorithm 1, flat last bin", "the library's defaults"
ZETA = 0.75
LARGE = 0.5  # a bias of the mean of x: a tenth of its standard deviation


# --- Measurements ------------------------------------------------------------------------------------


def measure(options: Options, record: Record) -> None:
    """The bias by quadrature; then chains for every start of the partition, and for every number of bins."""
    steps, chains = options.size.length, max(2, options.size.seeds)
    for mixture, problem in MIXTURES.items():
        record.setdefault("quadrature", {})[mixture] = {
            scheme: [bias_of_step_weights(problem, Partition(float(low), 1.0, 50), scheme) for low in FINE]
            for scheme in SCHEMES
        }
    starts = QUICK_STARTS if options.quick else STARTS
    for mixture, problem in list(MIXTURES.items())[: 1 if options.quick else None]:
        found = record.setdefault("scan", {}).setdefault(mixture, {})
        for scheme in SCHEMES[-1:] if options.quick else SCHEMES:
            for weights in get_args(Weights):
                found[f"{scheme}, {weights} weights"] = [
                    _sampled(problem, Partition(low, 1.0, 50), steps, chains, scheme, weights) for low in starts
                ]
        for scheme in _PAPERS:
            found[f"{scheme}, printed"] = [
                _printed(problem, FlatLastBin(low, 1.0, 50, zeta=ZETA, scheme=scheme), steps, chains) for low in starts
            ]
    problem = MIXTURES["0.4, 0.6"]
    for bins in QUICK_BINS if options.quick else BINS:
        width = SPAN / bins
        found = record.setdefault("bins", {}).setdefault(str(bins), {})
        low = 1.43 + 0.5 * min(width, 1.0)  # in the middle of the first bin above the lowest energy, or near it
        found[PRINTED] = _printed(problem, FlatLastBin(low, width, bins, zeta=ZETA), steps, chains)
        found[OURS] = _sampled(problem, Partition(low, width, bins), steps, chains, "smooth", "continuous")
    record |= {
        "starts": list(starts), "steps": steps, "chains": chains,
        "truth": {name: round(one.mean, 12) for name, one in MIXTURES.items()},
    }  # fmt: skip


def bias_of_step_weights(problem: GaussianMixture, partition: Partition, scheme: Scheme) -> float:
    """The bias of the mean of x for ε → 0 and k → ∞: draws of π/Ψ^ζ, weighted by θ^ζ(J), with the true θ."""
    x, energy, probability = _grid(problem)
    theta = bin_probabilities(energy, probability, partition)
    with jax.enable_x64(True):
        log = flattening.log_theta(jnp.asarray(theta, jnp.float64))
        log_psi = _log_psi(log, partition, jnp.asarray(energy), scheme)
        excess = np.asarray(log.levels)[np.asarray(partition.index(jnp.asarray(energy)))] - np.asarray(log_psi)
    weighted = probability * np.exp(ZETA * excess)
    return float(weighted @ x / weighted.sum() - probability @ x)


@cache
def _grid(problem: GaussianMixture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return problem.grid(40_001)


@partial(jax.jit, static_argnames="scheme")
def _log_psi(theta: flattening.LogTheta, partition: Partition, energies: Array, scheme: Scheme) -> Array:
    return jax.vmap(lambda u: flattening.interpolate(theta, partition, u, scheme)[0])(energies)


def _sampled(
    problem: GaussianMixture, partition: Partition, steps: int, chains: int, scheme: Scheme, weights: Weights
) -> dict[str, Any]:
    kernel = csgld(0.1, partition, zeta=ZETA, omega=papers_omega, scheme=scheme, weights=weights)
    target = NoisyEnergy(problem.energy, gradient_variance=0.01)
    samples = complete(sample(target, init=0.0, steps=steps, kernel=kernel, chains=chains, burn_in=0, thin=10))
    means = np.sum(samples.weights * samples.draws, axis=1) * chains
    return _numbers(means - problem.mean, samples.draws, steps, samples.multipliers)


def _printed(problem: GaussianMixture, algorithm: FlatLastBin, steps: int, chains: int) -> dict[str, Any]:
    path = run(algorithm, noisy(problem.energy, 0.01), 0.0, steps=steps, every=10, chains=chains, seed=0)
    alive = path.finite[:, -1]
    errors = path.running_mean()[alive, -1] - problem.mean
    return _numbers(errors, path.x[alive], steps, path.multiplier[alive])


def _numbers(errors: np.ndarray, x: np.ndarray, steps: int, multipliers: np.ndarray) -> dict[str, Any]:
    """Of each finite chain: the error of the mean, crossings in 40,000 steps, and the extreme multipliers."""
    crossings = np.array([mode_crossings(chain)[0] for chain in x]) * CROSSING_STEPS / steps
    extreme = np.quantile(np.abs(multipliers), 0.999, axis=1) if len(x) else np.array([])
    return {
        "error": np.round(errors, 5).tolist(),
        "crossings": np.round(crossings, 3).tolist(),
        "extreme": np.round(extreme, 3).tolist(),
    }


# --- What it says ------------------------------------------------------------------------------------


def conclude(record: Record) -> Outcome:
    about = f"ε = 0.1, ζ = {ZETA:g}, Δu = 1, m = 50, {record['chains']} chains of {record['steps']:,} steps"
    figures = {
        "partition_start": Drawing(
            lambda: _draw_starts(record),
            "The error of the mean of x, and crossings between the modes in 40,000 steps, against u₁, for both"
            f" mixtures and all schemes; {about}. Lines: step weights, by quadrature. Open markers: chains with step"
            " weights; filled: with continuous weights. Dotted verticals: the energies of the two minima.",
        ),
        "partition_bins": Drawing(
            lambda: _draw_bins(record),
            f"The number of bins m over {SPAN:g} units of energy, mixture of 0.4 and 0.6, ε = 0.1, ζ = {ZETA:g},"
            f" {record['chains']} chains of {record['steps']:,} steps: Algorithm 1 with a flat last bin (left, step"
            " weights) and the library's defaults (smooth, continuous weights).",
        ),
    }
    return Outcome(_claims(record), figures, _notes(record))


def _claims(record: Record) -> list[Claim]:
    claims = []
    for mixture, found in record["quadrature"].items():
        worst = {scheme: max(map(abs, values)) for scheme, values in found.items()}
        low, high = min(found["left"]), max(found["left"])
        key = _short(mixture)
        claims.append(
            Claim(
                f"start-{key}",
                "the weighted average with θ^ζ(J) estimates the mean, whatever u₁ (the paper gives no rule for u₁, and"
                " does not say this)",
                f"mixture of {mixture}, quadrature with the true θ, u₁ from {FINE[0]:g} to {FINE[-1]:g}: the bias is"
                f" {low:+.2f} to {high:+.2f} for the scheme left; its size is up to "
                + ", ".join(f"{value:.2f} ({scheme})" for scheme, value in worst.items()),
                judge(
                    exact(worst["left"]), below=LARGE, unit="for the largest bias, a tenth of the standard deviation"
                ),
            )
        )
    for key, method, says in (
        ("learnt", "left, printed", "the same with θ learnt: Algorithm 1 with a flat last bin (not in the paper)"),
        ("continuous", "smooth, continuous weights", "the same by the library's defaults (not in the paper)"),
    ):
        claims += [
            _worst(f"{key}-{_short(mixture)}", says, mixture, found[method], record["starts"])
            for mixture, found in record["scan"].items()
        ]
    for mixture, found in record["scan"].items():
        sizes = {
            scheme: [over_seeds(np.abs(one["error"])) for one in found[f"{scheme}, printed"]] for scheme in _PAPERS
        }
        claims.append(
            Claim(
                f"right-{_short(mixture)}",
                "the alternative scheme leads to a better treatment of Ψ for the subregions that contain stationary"
                " points",
                f"mixture of {mixture}, Algorithm 1 with a flat last bin, mean absolute error of the mean over all u₁: "
                + ", ".join(f"{scheme} {_over_starts(row):.2f}" for scheme, row in sizes.items()),
                judge(difference(*map(_over_starts, reversed(sizes.values()))), below=0.0, unit="for right less left"),
            )
        )
    printed = record["scan"]["0.4, 0.6"]
    crossings = {scheme: [over_seeds(one["crossings"]) for one in printed[f"{scheme}, printed"]] for scheme in _PAPERS}
    gap = difference(_over_starts(crossings["right"]), _over_starts(crossings["left"]))
    claims.append(
        Claim(
            "right-crossings",
            "the same, by crossings (not in the paper)",
            f"crossings per chain in {CROSSING_STEPS:,} steps at u₁ ="
            f" {', '.join(f'{low:g}' for low in record['starts'])}: "
            + "; ".join(
                f"{scheme} {', '.join(f'{one.value:.0f}' for one in row)}" for scheme, row in crossings.items()
            ),
            judge(gap, above=0.0, unit="for the mean gain in crossings of right over left, over all u₁"),
        )
    )
    return claims + _bins_claims(record)


def _short(mixture: str) -> str:
    return "even" if mixture.startswith("0.4") else "uneven"


def _over_starts(cells: list[Measured]) -> Measured:
    """The mean over all u₁, whose runs are independent."""
    error = float(np.sqrt(np.sum([one.error**2 for one in cells])) / len(cells))
    return with_error(float(np.mean([one.value for one in cells])), error, cells[0].freedom)


def _worst(key: str, says: str, mixture: str, cells: list[dict[str, Any]], starts: list[float]) -> Claim:
    """Whether the error of the mean stays small at every u₁; the interval is widened for so many comparisons."""
    errors = [over_seeds(one["error"]) for one in cells]
    worst = max(errors, key=lambda one: abs(one.value))
    size = with_error(abs(worst.value), worst.error, worst.freedom, comparisons=len(errors))
    told = ", ".join(f"{one:+.2f}" for one in errors)
    return Claim(
        key,
        says,
        f"mixture of {mixture}, chains: the error of the mean is {told} at u₁ ="
        f" {', '.join(f'{low:g}' for low in starts)}",
        judge(size, below=LARGE, unit="for the largest of these errors"),
    )


def _bins_claims(record: Record) -> list[Claim]:
    claims, advised = [], [bins for bins in record["bins"] if 10 <= int(bins) <= 1000]
    for name, key in ((PRINTED, "bins"), (OURS, "bins-ours")):
        errors = {bins: over_seeds(np.abs(found[name]["error"])) for bins, found in record["bins"].items()}
        worst = max((errors[bins] for bins in advised), key=lambda one: one.value)
        claims.append(
            Claim(
                key,
                "10 to 1,000 subregions balance stability and discretisation error"
                + ("" if name == PRINTED else " (the library's defaults; not in the paper)"),
                f"{name}: mean absolute error of the mean of x "
                + ", ".join(f"{one:.2f} (m = {bins})" for bins, one in errors.items()),
                judge(worst, below=LARGE, unit="for the largest of them at 10 ≤ m ≤ 1,000"),
            )
        )
    extreme = {bins: over_seeds(found[PRINTED]["extreme"]) for bins, found in record["bins"].items()}
    few, many = extreme[advised[0]], extreme[advised[-1]]
    gap = difference(many, few)
    claims.append(
        Claim(
            "bouncy",
            "a fine partition leads to large bouncy jumps (large gradient multipliers)",
            "|multiplier| is exceeded in 0.1% of the steps by "
            + ", ".join(f"{one.value:.0f} (m = {bins})" for bins, one in extreme.items()),
            judge(gap, above=0.0, unit=f"for the growth from m = {advised[0]} to {advised[-1]}"),
        )
    )
    return claims


def _notes(record: Record) -> list[str]:
    rows = ["| mixture | | " + " | ".join(f"u₁ = {low:g}" for low in record["starts"]) + " |"]
    rows.append("|---|---" + "|---" * len(record["starts"]) + "|")
    for mixture, found in record["scan"].items():
        for name, cells in found.items():
            texts = [f"{over_seeds(one['error']):+.2f}" for one in cells]
            rows.append(f"| {mixture} | {name} | {' | '.join(texts)} |")
    return [
        "**How to choose u₁.** With continuous weights the partition has no bias of its own, and u₁ may lie anywhere"
        " from just above the lowest energy to about one Δu above it. Below the lowest energy, bin 0 is empty and its"
        " θ falls without limit. Far above it, the modes lie in the unbounded bin 0, where the schemes left, centred"
        " and smooth flatten nothing, and where the line of the scheme right rises without limit, so that single"
        " weights dominate. With step weights no rule helps: the bias depends on where the energies of the minima lie"
        " in their bins, which a user does not know. What continuous weights leave, such as the errors of 0.2 to 0.3"
        " on the mixture of 1/6 and 5/6, is the error of a finite ε and of a θ that is still in motion.",
        "**Why the automatic run does not depend on it.** It begins its partition at the median energy that the pilot"
        " saw in the deepest mode at temperature 1, extends it downwards when chains find lower energies, uses"
        " continuous weights and the scheme smooth, and fixes θ before it samples.",
        f"Error of the weighted mean of x ± one standard error, {record['chains']} chains of {record['steps']:,} steps,"
        " all from x = 0, no burn-in:",
        "\n".join(rows),
    ]


# --- The figures -------------------------------------------------------------------------------------


def _draw_starts(record: Record) -> "Figure":
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    with plt.rc_context({"font.size": 12}):
        figure, axes = plt.subplots(2, 2, figsize=(13, 9), layout="constrained", sharex=True)
        for column, (mixture, problem) in zip(axes.T, MIXTURES.items(), strict=True):
            above, below = column
            for scheme in SCHEMES:
                above.plot(FINE, record["quadrature"][mixture][scheme], color=COLORS[scheme], lw=1.5, alpha=0.7)
            for name, cells in record["scan"].get(mixture, {}).items():
                scheme, kind = name.split(", ")
                if kind == "printed":
                    continue
                style: dict[str, Any] = dict(color=COLORS[scheme], marker="o", ms=6, ls="", capsize=2)
                style |= {"mfc": "none"} if kind.startswith("step") else {}
                shift = 0.03 * (SCHEMES.index(scheme) - 1.5)
                for axis, key in ((above, "error"), (below, "crossings")):
                    found = [over_seeds(one[key]) for one in cells]
                    at = np.array(record["starts"]) + shift
                    axis.errorbar(at, [one.value for one in found], [one.error for one in found], **style)
            for axis in column:
                for mode in problem.means:
                    axis.axvline(float(problem.energy(jnp.asarray(mode))), color="0.4", ls=":", lw=1)
            above.axhline(0, color="k", lw=1)
            above.set_title(f"mixture of {mixture}")
            below.set_xlabel("u₁, where the partition begins")
            below.set_yscale("symlog", linthresh=10)
            below.set_ylim(bottom=0)
        axes[0, 0].set_ylabel("error of the mean of x")
        axes[1, 0].set_ylabel("crossings in 40,000 steps")
        handles = [Line2D([], [], color=COLORS[s], marker="o", label=s) for s in SCHEMES]
        handles += [
            Line2D([], [], color="0.3", marker="o", ls="", mfc="none", label="step weights"),
            Line2D([], [], color="0.3", marker="o", ls="", label="continuous weights"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
    return figure


def _draw_bins(record: Record) -> "Figure":
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 12}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
        numbers = [int(bins) for bins in record["bins"]]
        for name, color in ((PRINTED, "#D55E00"), (OURS, "#0072B2")):
            for axis, key in ((left, "error"), (right, "extreme")):
                found = [over_seeds(np.abs(one[name][key])) for one in record["bins"].values()]
                values, errors = [one.value for one in found], [one.error for one in found]
                axis.errorbar(numbers, values, errors, color=color, marker="o", capsize=3, label=name)
        for axis in (left, right):
            axis.axvspan(10, 1000, color="0.92", lw=0, zorder=0)
            axis.set(xscale="log", yscale="log", xlabel="number of bins m")
        left.set_ylabel("mean absolute error of the mean of x")
        right.set_ylabel("|multiplier| exceeded in 0.1% of the steps")
        left.set_title("Shaded: the paper's advice")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure
