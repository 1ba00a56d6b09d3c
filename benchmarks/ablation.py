"""What each part of contourmc contributes, on every problem of the gallery: `python -m benchmarks.ablation`.

`cm.sample(energy, init=…, steps=…)` is an automatic run. A pilot (the warm-up stage, a tenth of the steps) finds the
step size, the scales, the energy partition and the modes. The chains then learn θ, which flattens the energy landscape,
and sample with θ fixed. Between Langevin steps with a Metropolis test they propose jumps from mode to mode. This
benchmark removes one part at a time:

    whole               the automatic run, with default settings
    flattening alone    the automatic run without jumps: same pilot, θ learnt and fixed in the same way
    jumps alone         the same pilot, Langevin steps and jumps, without flattening: every draw has the same weight
    neither             the same pilot and Langevin steps, without jumps and flattening: the control
    CSGLD (paper)       Algorithm 1 of Deng, Lin & Liang (2020) as printed, `contourmc.studies.algorithm_one`

Every chain of every method makes the same number of steps, each with one energy and one gradient. The steps of the
pilot count. The methods `jumps alone` and `neither` have no θ to learn: they start where the pilot left its chains at a
high temperature, discard the first tenth of the steps that remain, and sample for longer than the whole does.

CSGLD has the paper's ζ = 0.75, ω_k = 1/(k^0.6 + 100) and 50 bins, and no pilot. Its first tenth is discarded. Partition
and step size are the best of a scan, which favours CSGLD: the scan compares with the true answer, its runs are as long
as the measured ones, and its evaluations are not counted. It has seeds of its own and all combinations of

    low         the 10%, 50%, 90% and 99% quantile of the energies of an automatic run
    width       0.25, 0.5, 1, 2 and 4, in units of energy
    step size   0.3, 0.1, 0.03, 0.01 and 0.003, in squared units of a coordinate

and repeats the five best on three more seeds. The smallest mean error wins.

The error is the total variation between the estimated and the true mode probabilities. A chain with a number that is
not finite counts as an error of 1. Every run is one line of cells.jsonl, written as soon as the run ends, and a second
call makes only the runs that are missing.
"""

import math
import os
import platform
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import typer
from jaxtyping import Array
from rich.console import Console

import contourmc as cm
from benchmarks import page
from benchmarks.gallery.measure import SEARCH_SEED
from benchmarks.gallery.outcome import WITH_GRADIENT, Budget, mass_error, thinned
from benchmarks.gallery.summary import GOOD
from benchmarks.kept_lines import KeptLines
from benchmarks.options import choose
from contourmc.kernels.dynamics import Flattenable
from contourmc.kernels.jumps import Jumps
from contourmc.problems import Problem, gallery
from contourmc.studies.algorithm_one import AlgorithmOne, Noise, State, noisy
from contourmc.tuning.adaptive_run import AdaptiveRun, Now
from contourmc.tuning.adaptive_state import AdaptiveState
from contourmc.tuning.chosen_kernel import chosen_kernel
from contourmc.tuning.conclusions import Conclusions

CHAINS = 10
METHODS = ("whole", "flattening alone", "jumps alone", "neither", "CSGLD (paper)")
WHOLE, FLATTENING, JUMPS, NEITHER, CSGLD = METHODS

# The scan of CSGLD.
BINS = 50
QUANTILES = (0.1, 0.5, 0.9, 0.99)
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
STEP_SIZES = (0.3, 0.1, 0.03, 0.01, 0.003)
FINALISTS, FINAL_SEEDS = 5, 3


Cell = tuple[str, str, int, int, int, str]  # the first six fields of a record


class Record(NamedTuple):
    """A run: problem, method and seed, steps and number of its chains, the version that made it, and its result.

    parts: the steps of each chain in each part of the run.
    total_variation: the error of the mode probabilities.
    mode_changes: how often a chain is in another mode than at its draw before, on average over the chains.
    evaluations: of the density, by all chains; a gradient counts as one more.
    setting: what the pilot, or the scan of CSGLD, chose.
    """

    problem: str
    method: str
    seed: int
    steps: int
    chains: int
    version: str
    parts: dict[str, int]
    total_variation: float
    mode_changes: float
    evaluations: int
    setting: dict[str, float]
    machine: str


class Result(NamedTuple):
    """What a method returns: see `Record`. `comparable`: whether weights of different chains can be compared."""

    draws: np.ndarray
    log_weights: np.ndarray
    parts: dict[str, int]
    setting: dict[str, float]
    comparable: bool = False


class WithoutJumps(AdaptiveRun):
    """An automatic run whose pilot passes on no modes to jump between."""

    def _begin_learning(self, state: AdaptiveState) -> Now:
        found = state.found
        without = found if found is None else found._replace(means=None, factors=None)
        return super()._begin_learning(state._replace(found=without))


def automatic(problem: Problem, budget: Budget, seed: int, *, jumps: bool) -> Result:
    """The automatic run, with or without jumps."""
    run = _begin(problem, budget, seed)
    if not jumps:
        run = WithoutJumps(run.target, run.starts, run.keys, run.length, partition=None, step_size=None)
    run.advance()
    state, samples = run.state, run.samples()
    found, partition = state.found, samples.partition
    assert found is not None
    assert partition is not None
    learning = state.spent - found.steps
    parts = {"pilot": found.steps, "learning": learning, "burn_in": 0, "sampling": run.steps - state.spent}
    setting = {"low": partition.low, "width": partition.width, "bins": partition.bins}
    return _result(samples, parts, _setting(found) | setting)


def without_flattening(problem: Problem, budget: Budget, seed: int, *, jumps: bool) -> Result:
    """The Langevin steps that the automatic run chose, with or without its jumps, from where its pilot ended."""
    found, dynamics = _after_pilot(problem, budget, seed)
    if not jumps and isinstance(dynamics, Jumps):
        dynamics = dynamics.dynamics
    steps = budget.steps - found.steps
    samples = cm.sample(
        problem.energy, init=found.starts, per_chain_init=True, steps=steps, kernel=dynamics, chains=budget.chains,
        seed=seed, progress=False,
    )  # fmt: skip
    burn_in = samples.settings["burn_in"]
    parts = {"pilot": found.steps, "learning": 0, "burn_in": burn_in, "sampling": steps - burn_in}
    return _result(samples, parts, _setting(found) | ({} if jumps else {"modes": 0}))


def _begin(problem: Problem, budget: Budget, seed: int) -> AdaptiveRun:
    start = jnp.asarray(problem.start)
    run = cm.start(problem.energy, init=start, steps=budget.steps, chains=budget.chains, seed=seed)
    assert isinstance(run, AdaptiveRun)
    return run


@lru_cache(maxsize=1)
def _after_pilot(problem: Problem, budget: Budget, seed: int) -> tuple[Conclusions, Flattenable]:
    """The conclusions of the pilot of an automatic run, and how its chains move."""
    run = _begin(problem, budget, seed)
    while (found := run.state.found) is None:
        run.advance(1)
    return found, chosen_kernel(run.state, None, exact=True).dynamics


def _setting(found: Conclusions) -> dict[str, float]:
    return {"step_size": found.step_size, "modes": 0 if found.means is None else len(found.means)}


def _result(samples: cm.Samples, parts: dict[str, int], setting: dict[str, float]) -> Result:
    return Result(np.asarray(samples.draws), samples.log_weights, parts, setting, samples.comparable_weights)


class Choice(NamedTuple):
    """A partition with `BINS` bins, and a step size."""

    low: float
    width: float
    step_size: float


def csgld(problem: Problem, budget: Budget, seed: int, choice: Choice) -> Result:
    """Algorithm 1 of the paper, in double precision, with the weights θ^ζ(J)."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), budget.chains)
        draws, log_weights = map(np.asarray, _csgld_chains(problem, budget)(keys, *choice))
    first = draws.shape[1] // 10
    burn_in = first * thinned(0.9 * budget.steps)
    parts = {"pilot": 0, "learning": 0, "burn_in": burn_in, "sampling": budget.steps - burn_in}
    return Result(draws[:, first:], log_weights[:, first:], parts, {**choice._asdict(), "bins": BINS})


@lru_cache(maxsize=1)
def _csgld_chains(problem: Problem, budget: Budget) -> Any:
    """The compiled chains, as a function of their keys and the numbers of a `Choice`; a draw in every few steps."""
    target, start, thin = noisy(problem.energy), jnp.asarray(problem.start, float), thinned(0.9 * budget.steps)

    def noise(key: Array, *shape: int) -> Noise:
        moves = jax.random.normal(key, (*shape, *start.shape))
        return Noise(moves, jnp.zeros_like(moves), jnp.zeros(shape))

    def chain(key: Array, low: Any, width: Any, step_size: Any) -> tuple[Array, Array]:
        algorithm = AlgorithmOne(low, width, BINS, step_size)

        def one_draw(state: State, key: Array) -> tuple[State, tuple[Array, Array]]:
            state, _ = jax.lax.scan(lambda state, w: (algorithm.step(state, w, target), None), state, noise(key, thin))
            return state, (state.x, jnp.log(algorithm.weight(state.theta, state.energy)))

        first, later = jax.random.split(key)
        state = algorithm.init(start, noise(first), target)
        return jax.lax.scan(one_draw, state, jax.random.split(later, budget.steps // thin))[1]

    return jax.jit(jax.vmap(chain, (0, None, None, None)))


def best_choice(problem: Problem, budget: Budget) -> Choice:
    """The setting with the smallest error on the seeds of the scan, `SEARCH_SEED` and those after it."""

    def error(choice: Choice, number: int = 0) -> float:
        return total_variation(problem, csgld(problem, budget, SEARCH_SEED + number, choice))

    run = _begin(problem, budget, SEARCH_SEED)
    run.advance()
    samples = run.samples()
    order = np.argsort(samples.energies, axis=None)
    energies, below = samples.energies.ravel()[order], np.cumsum(samples.weights.ravel()[order])
    lows = [float(energies[np.searchsorted(below, quantile)]) for quantile in QUANTILES]
    ranked = sorted((Choice(*setting) for setting in product(lows, WIDTHS, STEP_SIZES)), key=error)
    return min(ranked[:FINALISTS], key=lambda choice: sum(error(choice, n) for n in range(1 + FINAL_SEEDS)))


def total_variation(problem: Problem, result: Result) -> float:
    """The error of the mode probabilities, pooled over chains; a chain that is not finite counts as an error of 1."""
    finite = _finite(result)
    share, draws, log_weights = float(finite.mean()), result.draws[finite], result.log_weights[finite]
    return 1 - share + (share * mass_error(problem, draws, log_weights, result.comparable) if share else 0.0)


def mode_changes(problem: Problem, result: Result) -> float:
    """How often a chain changes its mode between its draws, on average over the chains that are finite."""
    draws = result.draws[_finite(result)]
    return float((np.diff(problem.mode(draws.astype(float)), axis=1) != 0).sum() / max(1, len(draws)))


def _finite(result: Result) -> np.ndarray:
    """Which chains are finite."""
    draws = result.draws.reshape(len(result.draws), -1)
    return np.isfinite(draws).all(axis=1) & np.isfinite(result.log_weights.max(axis=1))


class Records:
    """The records of a file, by their cells. If two records have the same cell, the later one counts."""

    def __init__(self, file: Path) -> None:
        self._lines = KeptLines(file)
        self.found = {record[:6]: record for record in (Record(**line) for line in self._lines)}

    def add(self, record: Record) -> None:
        """Write a record to the file."""
        self._lines.add(record._asdict())
        self.found[record[:6]] = record

    def choice(self, cell: Cell) -> Choice | None:
        """The setting of CSGLD that was chosen for another seed of a cell."""
        for one in self.found.values():
            if one._replace(seed=cell[2])[:6] == cell:
                return Choice(*(one.setting[name] for name in Choice._fields))
        return None


def measure(problem: Problem, budget: Budget, seeds: range, records: Records) -> Iterator[Record]:
    """Make the runs of a problem that are missing. Each is written to the file before the next one begins."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, JAX {jax.__version__} on {jax.default_backend()}"
    for seed in seeds:  # the methods in turn, so that the pilot of a seed is made once
        for method in METHODS:
            cell = problem.name, method, seed, budget.steps, budget.chains, cm.__version__
            if cell not in records.found:
                result = _run(problem, budget, cell, records)
                error, changes = total_variation(problem, result), mode_changes(problem, result)
                spent = WITH_GRADIENT * budget.chains * sum(result.parts.values())
                records.add(record := Record(*cell, result.parts, error, changes, spent, result.setting, machine))
                yield record


def _run(problem: Problem, budget: Budget, cell: Cell, records: Records) -> Result:
    method, seed = cell[1:3]
    if method == CSGLD:
        return csgld(problem, budget, seed, records.choice(cell) or best_choice(problem, budget))
    run = automatic if method in (WHOLE, FLATTENING) else without_flattening
    return run(problem, budget, seed, jumps=method in (WHOLE, JUMPS))


Row = dict[str, dict[int, float]]  # a number of every method on a problem, by method and seed


def table(records: list[Record], budget: Budget) -> str:
    """The part of the page: a row a problem, and what follows from it."""
    errors = _rows(records, lambda record: record.total_variation)
    changes = _rows(records, lambda record: record.mode_changes)
    seeds = max((len(numbers) for row in errors.values() for numbers in row.values()), default=0)
    head = [f"| problem | {' | '.join(METHODS)} |", "|---|" + "--:|" * len(METHODS)]
    lines = [
        f"{budget.chains} chains × {budget.steps:,} steps, {budget.evaluations:,} evaluations for each method, {seeds}"
        f" seed{'' if seeds == 1 else 's'}: total variation between the estimated and the true mode probabilities, mean"
        " ± standard error over the seeds. Bold: the smallest mean of the row, and every other within one standard"
        " error of the difference, which is taken seed by seed.", "",
        *head, *(f"| {problem} | {' | '.join(_errors(row))} |" for problem, row in errors.items()),
        f"| runs off by more than {GOOD} | {' | '.join(_off(errors, method) for method in METHODS)} |", "",
        *_needed(errors, "Flattening is", JUMPS), *_needed(errors, "Jumps are", FLATTENING),
        "How often a chain changes its mode between the draws that it retains, mean over chains and seeds:", "",
        *head, *(f"| {problem} | {' | '.join(_changes(row))} |" for problem, row in changes.items()),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _rows(records: list[Record], number: Callable[[Record], float]) -> dict[str, Row]:
    rows: dict[str, Row] = {problem: {method: {} for method in METHODS} for problem in gallery()}
    for record in records:
        rows[record.problem][record.method][record.seed] = number(record)
    return {problem: row for problem, row in rows.items() if any(row.values())}


def _errors(row: Row) -> list[str]:
    means = {method: _mean(list(numbers.values())) for method, numbers in row.items()}
    best = min((method for method in METHODS if row[method]), key=lambda method: means[method][0])
    cells = []
    for method, (mean, error) in means.items():
        text = "" if math.isnan(mean) else f"{mean:.3f}" if math.isnan(error) else f"{mean:.3f} ± {error:.3f}"
        above, within = _difference(row[method], row[best])
        cells.append(f"**{text}**" if method == best or above <= within else text)
    return cells


def _off(errors: dict[str, Row], method: str) -> str:
    runs = [error for row in errors.values() for error in row[method].values()]
    return f"{sum(error > GOOD for error in runs)} of {len(runs)}" if runs else ""


def _changes(row: Row) -> list[str]:
    means = (_mean(list(numbers.values()))[0] for numbers in row.values())
    return ["" if math.isnan(mean) else f"{mean:,.0f}" if mean >= 10 else f"{mean:.1f}" for mean in means]


def _needed(rows: dict[str, Row], part: str, without: str) -> list[str]:
    """On which problems a part is needed, by the method without it."""
    found = {problem: _difference(row[without], row[WHOLE]) for problem, row in rows.items()}
    found = {problem: pair for problem, pair in found.items() if not math.isnan(pair[1])}
    needed = [problem for problem, (above, error) in found.items() if above > 2 * error]
    good = [problem for problem, (above, _) in found.items() if above <= 0]
    groups = needed, [problem for problem in found if problem not in needed + good], good
    more, less, better = (f"{len(group)} ({', '.join(group)})" if group else "none" for group in groups)
    return [
        f"**{part} needed on {len(needed)} of {len(found)} problems.** The error of `{without}` exceeds the error of"
        f" the whole by more than two standard errors of the difference on {more}. It exceeds it by less on {less}."
        f" On {better} `{without}` is at least as good as the whole.", "",
    ] if found else []  # fmt: skip


def _difference(a: dict[int, float], b: dict[int, float]) -> tuple[float, float]:
    """The mean of a − b over the seeds of both, and its standard error."""
    return _mean([a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())])


def _mean(values: list[float]) -> tuple[float, float]:
    """The mean and its standard error; NaN where there are too few values."""
    mean = float(np.mean(values)) if values else math.nan
    return mean, float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else math.nan


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each method on each problem.")] = 3,
    problems: Annotated[str | None, typer.Option(help="Names, separated by commas; all unless given.")] = None,
    steps: Annotated[int, typer.Option(min=1000, help="Steps of each chain, with the steps of the pilot.")] = 30_000,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Make no run; only write the table of the runs that are there.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for cells.jsonl and the table.")] = Path("results/ablation"),
    report_page: Annotated[
        Path | None, typer.Option("--page", help="A Markdown page to fill; ablation.md in the folder unless given.")
    ] = None,
) -> None:
    """What each part of contourmc contributes, on every problem of the gallery."""
    console, budget = Console(), Budget(steps, CHAINS)
    chosen = choose("problems", problems, tuple(gallery()))
    records = Records(out / "cells.jsonl")
    for name in () if only_report else chosen:
        for run in measure(gallery()[name], budget, range(seeds), records):
            console.print(f"{name:22} {run.method:17} seed {run.seed}  {run.total_variation:.3f}", highlight=False)
    of_budget = [one for one in records.found.values() if (one.steps, one.chains) == (steps, CHAINS)]
    target = report_page or out / "ablation.md"
    page.fill(target, {"ablation": table([one for one in of_budget if one.problem in chosen], budget)})
    console.print(f"Every number: {out / 'cells.jsonl'}; table: {target}")


if __name__ == "__main__":
    typer.run(main)
