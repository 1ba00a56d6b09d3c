"""Figure 3: the target with nine modes in two dimensions, with the numbers that the paper's figure does not give."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc._core.describe import describe
from contourmc.engine.run import DivergenceError
from contourmc.flattening.partition import Partition
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import contour
from contourmc.kernels.dynamics import Dynamics
from contourmc.kernels.langevin import langevin
from contourmc.kernels.replica_exchange import replica_exchange
from contourmc.kernels.schedules import CyclicCosine, Polynomial
from contourmc.kernels.sgld import sgld
from contourmc.problems import NineModes
from contourmc.sampling.sample import sample
from contourmc.studies.algorithm_one import AlgorithmOne, noisy, run
from contourmc.studies.base import (
    Claim,
    Drawing,
    Options,
    Outcome,
    Record,
    Size,
    complete,
    difference,
    judge,
    over_seeds,
    share,
)
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEM = NineModes()
VARIANCE = 0.1  # of the noise on energies and gradients
TARGET = NoisyEnergy(PROBLEM.energy, gradient_variance=VARIANCE, energy_variance=VARIANCE)
THIN = 10
SEARCH_SEED, FINAL_SEED = 1000, 0
EXPLORATION = 0.25  # the share of a cycle before its sampling stage (Zhang et al. 2020)
CORNERS = [0, 2, 6, 8]  # of the nine cells
BINS, REACH = 90, 2.8  # of the pictures

# The numbers that a search varies: the step size, and what else the method has.
Numbers = tuple[Any, ...]


@dataclass(frozen=True)
class Stages:
    """The temperature of cyclical SGLD: 0 in the exploration stage of each cycle, 1 in its sampling stage."""

    period: int

    def sampling(self, step: Any) -> Any:
        """Whether a step is in the sampling stage; steps count from 1."""
        return ((step - 1) % self.period) >= EXPLORATION * self.period

    def __call__(self, step: Array) -> Array:
        return jnp.where(self.sampling(step), 1.0, 0.0)


@dataclass(frozen=True)
class Method:
    """make: the kernel with some numbers.
    papers: the kernel with the paper's settings, for a number of steps; None for a method that is not in the paper.
    grid: the twelve settings to search.
    """

    make: Callable[..., Kernel]
    papers: Callable[[int], Kernel | AlgorithmOne] | None
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
papers_omega = Polynomial(10.0, 0.8, 100.0, cap=0.003)  # of the supplement
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
    "cycSGLD\nstages": Method(
        lambda value, period: sgld(CyclicCosine(value, period), Stages(period)),
        lambda steps: sgld(CyclicCosine(0.005, max(1, steps // 20)), Stages(max(1, steps // 20))),
        _grid((0.005, 0.01, 0.02, 0.04), (1_000, 5_000, 20_000)),
    ),
    "reSGLD": Method(
        partial(_exchange, langevin),
        lambda steps: _exchange(sgld, 0.001, 3.0),
        _grid((0.01, 0.015, 0.02, 0.03), (3.0, 6.0, 10.0)),
    ),
    "CSGLD": Method(
        partial(_contour, langevin),
        lambda steps: AlgorithmOne(-6.5, 0.25, 100, step_size=0.001, zeta=0.75, omega=papers_omega),
        _grid((0.02, 0.025, 0.03), (0.75, 1.0), (1.0, 2.0)),
    ),
    "reSGLD\nmomentum": Method(partial(_exchange, HEAVY), None, _grid((0.006, 0.01, 0.015, 0.02), (3.0, 6.0, 10.0))),
    "CSGLD\nmomentum": Method(partial(_contour, HEAVY), None, _grid((0.006, 0.01, 0.015), (0.75, 1.0), (1.0, 2.0))),
    "reSGLD\nfirst order": Method(partial(_exchange, sgld), None, _grid((0.006, 0.01, 0.015, 0.02), (3.0, 6.0, 10.0))),
    "CSGLD\nfirst order": Method(partial(_contour, sgld), None, _grid((0.006, 0.01, 0.015), (0.75, 1.0), (1.0, 2.0))),
}
QUICK = ("reSGLD", "CSGLD")  # the methods that a quick run compares at their best settings
# Pairs of methods that take the same kind of steps, with the key and the words of the claim about them.
PAIRS = {
    ("CSGLD", "reSGLD"): ("best", "CSGLD is better than reSGLD"),
    ("CSGLD\nmomentum", "reSGLD\nmomentum"): ("best-momentum", "the same with momentum"),
    ("CSGLD\nfirst order", "reSGLD\nfirst order"): ("best-first-order", "the same with the first-order steps of SGLD"),
}


# --- Measurements ------------------------------------------------------------------------------------


def measure(options: Options, record: Record) -> None:
    """The paper's settings; a search with the same budget for each method; the best settings on fresh seeds."""
    size = options.size
    names, budget = (QUICK, 1) if options.quick else (tuple(METHODS), 12)
    for name, method in METHODS.items():
        if method.papers is not None:
            found = _measure(method.papers(size.length), size.length, size.seeds, FINAL_SEED)
            record.setdefault("papers_settings", {})[name] = found
    for name in names:
        record.setdefault("best_settings", {})[name] = _search(name, size, budget)
    record |= {"truth": PROBLEM.masses.tolist(), "length": size.length, "seeds": size.seeds}


def _measure(kernel: Kernel | AlgorithmOne, steps: int, seeds: int, seed: int) -> dict[str, Any]:
    """Total variation over the nine cells and modes found, for each seed; and the draws of the first as a histogram."""
    if isinstance(kernel, AlgorithmOne):
        draws, weights = _printed(kernel, steps, seeds, seed)
    else:
        samples = sample(
            TARGET, init=jnp.zeros(2), steps=steps, kernel=kernel, chains=seeds, seed=seed, thin=THIN,
            burn_in=steps // 20,
        )  # fmt: skip
        samples = complete(samples)
        draws, weights = samples.draws, samples.weights * seeds
        temperature = getattr(kernel, "temperature", 1.0)
        if isinstance(temperature, Stages):
            kept = np.asarray(temperature.sampling(samples.steps))
            draws, weights = draws[:, kept], weights[:, kept]
    diverged = int(np.sum(weights[:, -1] == 0))
    weights = weights / weights.sum(axis=1, keepdims=True)
    cells = PROBLEM.cell(draws)
    masses = np.stack([np.bincount(c, w, minlength=9) for c, w in zip(cells, weights, strict=True)])
    found = np.array([np.sum(np.bincount(c, minlength=9) * THIN >= 100) for c in cells])
    histogram, _, _ = np.histogram2d(*draws[0].T, bins=BINS, range=[[-REACH, REACH]] * 2, weights=weights[0])
    return {
        "settings": describe(kernel),
        "evaluations": steps * (1 if isinstance(kernel, AlgorithmOne) else kernel.evaluations),
        "total_variation": (np.abs(masses - PROBLEM.masses).sum(axis=1) / 2).tolist(),
        "modes_found": found.tolist(),
        "corners": (np.abs(masses - PROBLEM.masses)[:, CORNERS].sum(axis=1) / PROBLEM.masses[CORNERS].sum()).tolist(),
        "diverged": diverged,
        "histogram": np.round(1e5 * histogram).astype(int).tolist(),
    }


def _printed(algorithm: AlgorithmOne, steps: int, seeds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws and weights of Algorithm 1 as printed, after the same burn-in."""
    burn_in = steps // 20 // THIN * THIN
    path = run(
        algorithm, noisy(PROBLEM.energy, VARIANCE, VARIANCE), np.zeros(2), steps=(steps - burn_in) // THIN * THIN,
        every=THIN, before=burn_in, chains=seeds, seed=seed,
    )  # fmt: skip
    weights = np.where(path.finite, path.weight, 0.0)
    return np.where(path.finite[..., None], path.x, 0.0), weights


def _search(name: str, size: Size, budget: int) -> dict[str, Any]:
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
            scores[numbers] = float(np.mean(found["total_variation"]))
    kernel = method.make(*min(scores, key=lambda numbers: scores[numbers]))
    best = _measure(kernel, evaluations // kernel.evaluations, size.seeds, FINAL_SEED)
    del best["histogram"]
    return best | {"searched": [{"settings": list(one), "total_variation": score} for one, score in scores.items()]}


# --- What it says ------------------------------------------------------------------------------------


def conclude(record: Record) -> Outcome:
    length = f"{record['length']:,}"
    figures = {
        "figure3": Drawing(
            lambda: _panels(record["papers_settings"]),
            f"The paper's settings, {length} iterations from the centre: the truth, and one chain of each method,"
            " weighted. CSGLD is Algorithm 1 as printed: scheme left, step weights, ζ = 0.75, 100 bins of 0.25 from u₁"
            " = −6.5, which the paper does not give.",
        ),
        "comparison": Drawing(
            lambda: _bars(record),
            f"Total variation over the nine modes, means over {record['seeds']} seeds with standard errors: the paper's"
            f" settings at {length} iterations, and the best of twelve settings at {length} evaluations of the"
            " gradient, CSGLD with the scheme smooth and continuous weights.",
        ),
    }
    return Outcome(_claims(record), figures, _notes(record))


def _claims(record: Record) -> list[Claim]:
    papers, best, seeds = record["papers_settings"], record["best_settings"], record["seeds"]

    def told(found: dict[str, Any]) -> str:
        modes = np.array(found["modes_found"])
        return (
            f"{over_seeds(modes):.1f} modes, all nine in {np.sum(modes == 9)} of {seeds} seeds; total variation"
            f" {over_seeds(found['total_variation']):.3f}"
        )

    def paired(one: dict[str, Any], other: dict[str, Any]) -> Any:
        return over_seeds(np.subtract(one["total_variation"], other["total_variation"]))

    plain, cyclic, exchange, printed = (papers[name] for name in ("SGLD", "cycSGLD", "reSGLD", "CSGLD"))
    staged = papers["cycSGLD\nstages"]
    less, unit = "the difference of total variations", "in total variation, for the difference"
    claims = [
        Claim(
            "sgld",
            "SGLD only identifies three modes",
            told(plain),
            judge(over_seeds(plain["modes_found"]), above=2.5, below=3.5, unit="modes"),
        ),
        Claim(
            "cycsgld",
            "cycSGLD explores better than SGLD",
            f"{told(cyclic)}; {less} is {paired(cyclic, plain):+.3f}",
            judge(paired(cyclic, plain), below=0.0, unit=unit),
        ),
        Claim(
            "stages",
            "the same with an exploration stage without noise in the first quarter of each cycle (Zhang et al. 2020)",
            f"{told(staged)}; {less} is {paired(staged, plain):+.3f}",
            judge(paired(staged, plain), below=0.0, unit=unit),
        ),
        Claim(
            "cyc-not-enough",
            "cycSGLD is still not efficient enough: reSGLD yields a much better result",
            f"{less} of reSGLD and cycSGLD is {paired(exchange, cyclic):+.3f}",
            judge(paired(exchange, cyclic), below=0.0, unit=unit),
        ),
        Claim(
            "resgld-corners",
            "for reSGLD it becomes difficult to estimate a few modes on the corners",
            f"relative error of the masses of the four corners: reSGLD {over_seeds(exchange['corners']):.2f}, CSGLD"
            f" {over_seeds(printed['corners']):.2f}; reSGLD finds {over_seeds(exchange['modes_found']):.1f} modes",
            judge(over_seeds(exchange["corners"]), above=0.5, unit="for the relative error of reSGLD"),
        ),
        Claim(
            "csgld",
            "CSGLD achieves a remarkable performance, beyond reSGLD's",
            f"Algorithm 1 as printed: {told(printed)}; {less} of CSGLD and reSGLD is {paired(printed, exchange):+.3f}",
            judge(paired(printed, exchange), below=0.0, unit=unit),
        ),
        Claim(
            "all-nine",
            "CSGLD finds all nine modes (best settings; not in the paper)",
            told(best["CSGLD"]),
            judge(
                share(int(np.sum(np.array(best["CSGLD"]["modes_found"]) == 9)), seeds), above=0.5, unit="of the seeds"
            ),
        ),
    ]
    for (ours, other), (key, words) in PAIRS.items():
        if ours in best:
            one, two = (over_seeds(best[name]["total_variation"]) for name in (ours, other))
            claims.append(
                Claim(
                    key,
                    f"{words} (best settings, equal evaluations; not in the paper)",
                    f"CSGLD {one:.4f}, reSGLD {two:.4f}",
                    judge(difference(one, two), below=0.0, unit=unit),
                )
            )
    return claims


def _notes(record: Record) -> list[str]:
    steps = f"{record['length']:,}"
    return [
        f"With the paper's settings every method makes {steps} steps, each of which costs reSGLD two evaluations of the"
        f" gradient; the best settings are compared at {steps} evaluations for all. Total variation is over the cells"
        f" of the nine modes, against quadrature, for each of {record['seeds']} seeds; a mode counts as found with 100"
        " steps in its cell. All chains start at the centre; a twentieth of each run is burn-in.",
        "Best settings: every method had twelve settings, listed in the record, each tried on four seeds that the"
        " final comparison does not use. (A quick run tries one setting, of reSGLD and CSGLD only.)",
        "At the best settings both reSGLD and CSGLD use the second-order scheme for Langevin dynamics (`langevin`, one"
        " evaluation a step like SGLD); `first order` means the steps of SGLD. SGLD and cycSGLD keep these, whose"
        " error acts like a higher temperature. `stages` is cyclical SGLD as Zhang et al. (2020) define it: the first"
        " quarter of each cycle explores at temperature 0, and only the rest samples; the paper does not say whether"
        " it did so.",
    ]


# --- The figures -------------------------------------------------------------------------------------


def _panels(papers: Mapping[str, Any]) -> "Figure":
    """Figure 3: the truth, and one chain of each method at the paper's settings."""
    import matplotlib.pyplot as plt

    x, energy = PROBLEM.grid(301, REACH)
    figure, axes = plt.subplots(2, 3, figsize=(12, 8), layout="constrained")
    first, *others = axes.flat
    first.pcolormesh(x[..., 0], x[..., 1], np.exp(energy.min() - energy), cmap="viridis", rasterized=True)
    first.set_title("truth", fontsize=14)
    edges = np.linspace(-REACH, REACH, BINS + 1)
    for ax, (name, found) in zip(others, papers.items(), strict=True):
        ax.pcolormesh(edges, edges, np.array(found["histogram"]).T, cmap="viridis", rasterized=True)
        title = name.replace("\n", ", ")
        ax.set_title(f"{title}: {np.mean(found['modes_found']):.1f} modes per seed", fontsize=14)
    for ax in axes.flat:
        ax.set_xlabel("x₁", fontsize=13)
        ax.set(aspect="equal", xlim=(-REACH, REACH), ylim=(-REACH, REACH))
    for ax in axes[:, 0]:
        ax.set_ylabel("x₂", fontsize=13)
    return figure


def _bars(record: Record) -> "Figure":
    """Total variation of all methods, at the paper's settings and at their best."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(13, 5), layout="constrained")
    papers, best = record["papers_settings"], record["best_settings"]
    shown = [name for name in METHODS if name in papers or name in best]
    for shift, label, found, color in (
        (-0.2, "the paper's settings, equal iterations", papers, "#D55E00"),
        (0.2, "best settings, equal evaluations", best, "#0072B2"),
    ):
        places = [shown.index(name) + shift for name in found]
        measured = [over_seeds(one["total_variation"]) for one in found.values()]
        bars = ax.bar(
            places, [one.value for one in measured], 0.38, yerr=[one.error for one in measured], color=color,
            label=label, capsize=3,
        )  # fmt: skip
        ax.bar_label(bars, fmt="%.3f", padding=3, fontsize=10)
    ax.set_xticks(range(len(shown)), shown, fontsize=12)
    ax.set_ylabel("total variation over the nine modes", fontsize=13)
    ax.set_ylim(top=1.15 * ax.get_ylim()[1])
    ax.legend(frameon=False, fontsize=12)
    return figure
