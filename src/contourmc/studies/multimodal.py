"""Figure 3: the target with nine modes in two dimensions, with the numbers that the paper's figure does not give."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from contourmc._core.describe import describe
from contourmc.draws.samples import Samples
from contourmc.engine.run import DivergenceError
from contourmc.flattening.partition import Partition
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import contour, csgld
from contourmc.kernels.dynamics import Dynamics
from contourmc.kernels.langevin import langevin
from contourmc.kernels.replica_exchange import replica_exchange
from contourmc.kernels.schedules import CyclicCosine, Polynomial
from contourmc.kernels.sgld import sgld
from contourmc.problems import NineModes
from contourmc.sampling.sample import sample
from contourmc.studies.base import Claim, Options, Outcome, Size, Verdict, complete, within
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEM = NineModes()
VARIANCE = 0.1  # of the noise on energies and gradients
TARGET = NoisyEnergy(PROBLEM.energy, gradient_variance=VARIANCE, energy_variance=VARIANCE)
THIN = 10
SEARCH_SEED, FINAL_SEED = 1000, 0

# The numbers that a search varies: the step size, and what else the method has.
Numbers = tuple[Any, ...]


@dataclass(frozen=True)
class Method:
    """make: the kernel with some numbers.
    papers: the kernel with the paper's settings, for a number of steps; None for a method that is not in the paper.
    grid: the twelve settings to search.
    """

    make: Callable[..., Kernel]
    papers: Callable[[int], Kernel] | None
    grid: tuple[Numbers, ...]


def _exchange(dynamics: Callable[..., Dynamics], step_size: float, hot: float) -> Kernel:
    cold = dynamics(step_size, 1.0)
    return replica_exchange(cold, dynamics(step_size, hot), energy_variance=VARIANCE)


def _contour(dynamics: Callable[..., Dynamics], step_size: float, zeta: float, width: float) -> Kernel:
    """Bins from just above the second-lowest kind of mode to above the barriers, which reach an energy of 0.3."""
    return contour(dynamics(step_size), Partition(-5.5, width, 2 + round(8 / width)), zeta=zeta)


def _grid(*values: tuple[Any, ...]) -> tuple[Numbers, ...]:
    """All combinations; the last number varies fastest."""
    return tuple(product(*values))


STEPS12 = (0.001, 0.002, 0.003, 0.004, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02, 0.025, 0.03)
PAPERS_OMEGA = Polynomial(10.0, 0.8, 100.0, cap=0.003)
HEAVY = partial(langevin, momentum=0.8)
# At their best settings replica exchange and contour sampling use the second-order scheme for Langevin dynamics, which
# is better for both; the last two methods use SGLD's first-order steps, to show how much that matters. SGLD by itself
# does better with first-order steps, whose error acts like a higher temperature.
METHODS: Mapping[str, Method] = {
    "SGLD": Method(sgld, lambda steps: sgld(0.001), tuple((step,) for step in STEPS12)),
    "cycSGLD": Method(
        lambda value, period: sgld(CyclicCosine(value, period)),
        lambda steps: sgld(CyclicCosine(0.005, max(1, steps // 20))),
        _grid((0.005, 0.01, 0.02, 0.04), (1_000, 5_000, 20_000)),
    ),
    "reSGLD": Method(
        partial(_exchange, langevin),
        lambda steps: _exchange(sgld, 0.001, 3.0),
        _grid((0.01, 0.015, 0.02, 0.03), (3.0, 6.0, 10.0)),
    ),
    "CSGLD": Method(
        partial(_contour, langevin),
        lambda steps: csgld(
            0.001, Partition(-6.5, 0.25, 100), zeta=0.75, omega=PAPERS_OMEGA, scheme="left", weights="step"
        ),
        _grid((0.02, 0.025, 0.03), (0.75, 1.0), (1.0, 2.0)),
    ),
    "reSGLD\nmomentum": Method(partial(_exchange, HEAVY), None, _grid((0.006, 0.01, 0.015, 0.02), (3.0, 6.0, 10.0))),
    "CSGLD\nmomentum": Method(partial(_contour, HEAVY), None, _grid((0.006, 0.01, 0.015), (0.75, 1.0), (1.0, 2.0))),
    "reSGLD\nfirst order": Method(partial(_exchange, sgld), None, _grid((0.006, 0.01, 0.015, 0.02), (3.0, 6.0, 10.0))),
    "CSGLD\nfirst order": Method(partial(_contour, sgld), None, _grid((0.006, 0.01, 0.015), (0.75, 1.0), (1.0, 2.0))),
}
QUICK = ("reSGLD", "CSGLD")  # the methods that a quick run compares at their best settings
# Pairs of methods that take the same kind of steps, and what the claim about them is called.
PAIRS = {
    ("CSGLD", "reSGLD"): "CSGLD is at least as good as reSGLD",
    ("CSGLD\nmomentum", "reSGLD\nmomentum"): "the same with momentum",
    ("CSGLD\nfirst order", "reSGLD\nfirst order"): "the same with first-order steps, as in the paper",
}


def run(options: Options, results: dict[str, Any]) -> Outcome:
    """The paper's settings; a search with the same budget for each method; the best settings on fresh seeds."""
    size = options.size
    names, budget = (QUICK, 1) if options.quick else (tuple(METHODS), 12)
    papers: dict[str, Measured] = {}
    best: dict[str, Measured] = {}
    for name, method in METHODS.items():
        if method.papers is not None:
            papers[name] = _measure(method.papers(size.length), size.length, size.seeds, FINAL_SEED)
            results.setdefault("papers_settings", {})[name] = papers[name].numbers
    for name in names:
        best[name] = _search(name, size, budget)
        results.setdefault("best_settings", {})[name] = best[name].numbers
    results["truth"] = PROBLEM.masses.tolist()
    results["budget"] = {"settings": budget, "seeds": 4, "evaluations": size.length}
    figures = {"figure3": _panels(papers), "comparison": _bars(papers, best)}
    return Outcome(_claims(papers, best, size.seeds), results, figures, _notes(size))


@dataclass(frozen=True)
class Measured:
    """The numbers of a method over seeds, and its draws."""

    numbers: dict[str, Any]
    samples: Samples


def _measure(kernel: Kernel, steps: int, seeds: int, seed: int) -> Measured:
    """Total variation over the nine cells and modes found, for each seed."""
    samples = sample(
        TARGET, init=jnp.zeros(2), steps=steps, kernel=kernel, chains=seeds, seed=seed, thin=THIN,
        burn_in=steps // 20,
    )  # fmt: skip
    samples = complete(samples)
    cells, weights = PROBLEM.cell(samples.draws), samples.weights * seeds
    masses = np.stack([np.bincount(c, w, minlength=9) for c, w in zip(cells, weights, strict=True)])
    found = np.array([np.sum(np.bincount(c, minlength=9) * THIN >= 100) for c in cells])
    distance = np.abs(masses - PROBLEM.masses).sum(axis=1) / 2
    numbers = {
        "kernel": describe(kernel),
        "evaluations": steps * kernel.evaluations,
        "total_variation": float(distance.mean()),
        "standard_error": float(distance.std(ddof=1) / seeds**0.5) if seeds > 1 else None,
        "total_variation_pooled": float(np.abs(masses.mean(axis=0) - PROBLEM.masses).sum() / 2),
        "modes_found": float(found.mean()),
        "seeds_with_all_nine": int(np.sum(found == 9)),
        "seeds": seeds,
    }
    return Measured(numbers, samples)


def _search(name: str, size: Size, budget: int) -> Measured:
    """The best settings, chosen by total variation over four search seeds, and measured again on the final seeds."""
    method, evaluations = METHODS[name], size.length
    scores: dict[Numbers, float] = {}
    for numbers in method.grid[-budget:]:
        kernel = method.make(*numbers)
        try:
            found = _measure(kernel, evaluations // kernel.evaluations, 4, SEARCH_SEED)
        except DivergenceError:
            scores[numbers] = 1.0  # the largest total variation there is
        else:
            scores[numbers] = found.numbers["total_variation"]
    kernel = method.make(*min(scores, key=lambda numbers: scores[numbers]))
    best = _measure(kernel, evaluations // kernel.evaluations, size.seeds, FINAL_SEED)
    searched = [{"settings": list(numbers), "total_variation": score} for numbers, score in scores.items()]
    return Measured(best.numbers | {"searched": searched}, best.samples)


def _claims(papers: Mapping[str, Measured], best: Mapping[str, Measured], seeds: int) -> list[Claim]:
    def tell(measured: Measured) -> str:
        numbers = measured.numbers
        error = f" ± {numbers['standard_error']:.3f}" if numbers["standard_error"] else ""
        modes = f"{numbers['modes_found']:.1f} modes, all nine in {numbers['seeds_with_all_nine']} of {seeds} seeds"
        return f"{modes}; total variation {numbers['total_variation']:.3f}{error}"

    def distance(measured: Measured) -> float:
        return measured.numbers["total_variation"]

    def compared(one: Measured, other: Measured, high: float, name: str) -> Verdict:
        return within(distance(one) / distance(other), high=high, unit=f"times the total variation of {name}")

    sgld_, cyc, re, contour_ = (papers[name] for name in ("SGLD", "cycSGLD", "reSGLD", "CSGLD"))
    nine = best["CSGLD"].numbers["seeds_with_all_nine"]
    return [
        Claim("SGLD identifies only three modes", tell(sgld_), within(sgld_.numbers["modes_found"], 2.5, 3.5, "modes")),
        Claim(
            "cycSGLD explores better but not enough",
            tell(cyc),
            Verdict(distance(re) < distance(cyc) < distance(sgld_), "total variation between those of reSGLD and SGLD"),
        ),
        Claim("reSGLD is much better; corners are difficult", tell(re), compared(re, cyc, 0.5, "cycSGLD")),
        Claim("CSGLD achieves a remarkable performance", tell(contour_), compared(contour_, re, 1, "reSGLD")),
        Claim(
            "– (best settings) CSGLD finds all nine modes", tell(best["CSGLD"]), within(nine, low=seeds, unit="seeds")
        ),
        *(
            Claim(
                f"– (best settings, equal evaluations) {claim}",
                f"CSGLD {distance(best[ours]):.3f}, reSGLD {distance(best[other]):.3f}",
                compared(best[ours], best[other], 1, "reSGLD"),
            )
            for (ours, other), claim in PAIRS.items()
            if ours in best
        ),
    ]


def _notes(size: Size) -> list[str]:
    steps = f"{size.length:,}"
    return [
        f"With the paper's settings every method makes {steps} steps, each of which costs reSGLD two evaluations of"
        f" the gradient; the best settings are compared at {steps} evaluations for all. Total variation is over the"
        f" cells of the nine modes, against quadrature, for each of {size.seeds} seeds; a mode counts as found with 100"
        " steps in its cell.",
        "Best settings: every method had twelve settings, listed in results.json, each tried on four seeds that"
        " the final comparison does not use. (A quick run tries one setting, of reSGLD and CSGLD only.) All chains"
        " start at the centre; a twentieth of each run is burn-in.",
        "At the best settings both reSGLD and CSGLD use the second-order scheme for Langevin dynamics (`langevin`, one"
        " evaluation a step like SGLD); `first order` means the steps of SGLD. SGLD and cycSGLD keep these: their error"
        " acts like a higher temperature, without which the two would not cross.",
    ]


def _panels(papers: Mapping[str, Measured]) -> "Figure":
    """Figure 3: the truth, and one chain of each method at the paper's settings, resampled by its weights."""
    import matplotlib.pyplot as plt

    x, energy = PROBLEM.grid(301, 2.8)
    figure, grid = plt.subplots(2, 3, figsize=(12, 8), layout="constrained")
    grid[1, 0].remove()
    axes = [grid[0, 0], *grid[:, 1:].flat]
    axes[0].pcolormesh(x[..., 0], x[..., 1], np.exp(energy.min() - energy), cmap="viridis", rasterized=True)
    axes[0].set_title("truth", fontsize=15)
    for ax, (name, measured) in zip(axes[1:], papers.items(), strict=True):
        draws = measured.samples.draws[0]
        weights = measured.samples.weights[0]
        chosen = np.random.default_rng(0).choice(len(draws), len(draws), p=weights / weights.sum())
        ax.hist2d(*draws[chosen].T, bins=90, range=[[-2.8, 2.8]] * 2, cmap="viridis", rasterized=True)
        ax.set_title(f"{name}: {measured.numbers['modes_found']:.1f} modes per seed", fontsize=15)
    for ax in axes:
        ax.set_xlabel("x₁", fontsize=13)
        ax.set(aspect="equal", xlim=(-2.8, 2.8), ylim=(-2.8, 2.8))
    axes[0].set_ylabel("x₂", fontsize=13)
    return figure


def _bars(papers: Mapping[str, Measured], best: Mapping[str, Measured]) -> "Figure":
    """Total variation of all methods, at the paper's settings and at their best."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(12, 5), layout="constrained")
    shown = [name for name in METHODS if name in papers or name in best]
    for shift, label, measured, color in (
        (-0.2, "the paper's settings, equal iterations", papers, "#D55E00"),
        (0.2, "best settings, equal evaluations", best, "#0072B2"),
    ):
        places = [shown.index(name) + shift for name in measured]
        heights = [one.numbers["total_variation"] for one in measured.values()]
        errors = [one.numbers["standard_error"] or 0.0 for one in measured.values()]
        bars = ax.bar(places, heights, 0.38, yerr=errors, color=color, label=label, capsize=3)
        ax.bar_label(bars, fmt="%.3f", padding=3, fontsize=11)
    ax.set_xticks(range(len(shown)), shown, fontsize=12)
    ax.set_ylabel("total variation over the nine modes", fontsize=13)
    ax.legend(frameon=False, fontsize=12)
    return figure
