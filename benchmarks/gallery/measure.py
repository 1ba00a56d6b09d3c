"""Running every method on a problem: the search for its settings, the seeds, and what is recorded."""

import math
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax

from benchmarks.gallery import langevin
from benchmarks.gallery.cells import Cell, Cells, Measurement
from benchmarks.gallery.outcome import Budget, Outcome, Tuning, mass_error
from benchmarks.gallery.peers import AUTOMATIC, PEERS, Peer, version_of
from contourmc.problems import Problem

SEARCH_SEED = 1_000_000  # not one of those that are measured


@dataclass(frozen=True)
class Seeds:
    """How many repetitions: ours, of contourmc; peers, of every other method."""

    ours: int
    peers: int

    def of(self, method: str) -> range:
        return range(self.ours if method == AUTOMATIC else self.peers)


@dataclass(frozen=True)
class Task:
    """A problem with a budget, and where its measurements go."""

    problem: Problem
    budget: Budget
    cells: Cells

    def cell(self, method: str, seed: int) -> Cell:
        return Cell(self.problem.name, method, seed, self.budget.steps, self.budget.chains)

    def missing(self, method: str, seeds: range) -> list[int]:
        """The seeds that this version of the method has not been measured with."""
        return [seed for seed in seeds if self.cells.find(self.cell(method, seed), version_of(method)) is None]

    def measured(self, method: str) -> list[Measurement]:
        """All seeds of a method that are there, in their order."""
        found = (run for run in self.cells.of(self.budget) if run.cell.problem == self.problem.name)
        return sorted((run for run in found if run.cell.method == method), key=lambda run: run.cell.seed)

    def tunings(self) -> dict[int, Tuning]:
        """What contourmc chose, by its seeds."""
        runs = self.measured(AUTOMATIC)
        return {run.cell.seed: Tuning.from_plain(run.tuning) for run in runs if run.tuning is not None}


def measure(task: Task, methods: tuple[str, ...], seeds: Seeds) -> Iterator[Measurement]:
    """Every method with every seed that is not there yet; each is kept before the next begins.

    contourmc goes first, even if it is not asked for, where peers need its tuning.
    """
    missing = {method: task.missing(method, seeds.of(method)) for method in methods if method != AUTOMATIC}
    tuned = any(left for method, left in missing.items() if PEERS[method].settings)
    wanted = max(seeds.ours * (AUTOMATIC in methods), seeds.peers * tuned)
    for seed in task.missing(AUTOMATIC, range(wanted)):
        yield _kept(task, _automatic(task, seed))
    for method, left in missing.items():
        if left:
            yield from (_kept(task, run) for run in _measure_peer(task, method, left))


def _kept(task: Task, measurement: Measurement) -> Measurement:
    task.cells.add(measurement)
    return measurement


def _measure_peer(task: Task, method: str, seeds: list[int]) -> Iterator[Measurement]:
    peer, tunings, setting = PEERS[method], task.tunings(), "tunes itself"
    first = next(iter(tunings.values()), None)
    if peer.settings is not None and first is not None:
        setting = chosen_before(task, method, first) or search(task, peer, first)
    for seed in seeds:
        tuning = tunings.get(seed, first)  # another seed's where contourmc failed on this one
        if peer.settings is not None and tuning is None:
            why = "contourmc gave no step size and partition"
            yield Measurement(task.cell(method, seed), version_of(method), machine(), message=why)
            continue
        run = partial(peer.run, task.problem, setting, tuning, task.budget, seed)
        yield record(task, method, seed, run, setting)


def chosen_before(task: Task, method: str, tuning: Tuning) -> Any:
    """The setting that an earlier call found in its search, None if there was none."""
    settings = PEERS[method].settings
    choices = {str(setting): setting for setting in settings(tuning)} if settings else {}
    return next((choices[run.setting] for run in task.measured(method) if run.setting in choices), None)


def _automatic(task: Task, seed: int) -> Measurement:
    tunings: list[Tuning] = []

    def run() -> Outcome:
        samples = langevin.automatic(task.problem, task.budget, seed)
        tunings.append(langevin.tuning_of(samples))
        return langevin.automatic_outcome(samples)

    found = record(task, AUTOMATIC, seed, run)
    return replace(found, setting=str(tunings[0]), tuning=tunings[0].plain()) if tunings else found


def search(task: Task, peer: Peer, tuning: Tuning) -> Any:
    """The setting with the smallest error in a short run: the first of equals, and the last if all diverge.

    It is told the truth, and its evaluations are not counted: both are to the peer's advantage.
    """
    assert peer.settings is not None
    short = Budget(max(100, task.budget.steps // peer.share), task.budget.chains)
    settings = peer.settings(tuning)
    trials = [
        record(task, "search", SEARCH_SEED, lambda s=s: peer.run(task.problem, s, tuning, short, SEARCH_SEED))
        for s in settings
    ]
    errors = [math.inf if trial.error is None else trial.error for trial in trials]
    return settings[errors.index(min(errors))] if min(errors) < math.inf else settings[-1]


def record(task: Task, method: str, seed: int, run: Callable[[], Outcome], setting: Any = "") -> Measurement:
    """The measurement of one run; whatever goes wrong in it becomes a divergence with a message."""
    start = Measurement(task.cell(method, seed), version_of(method), machine(), str(setting))
    try:
        outcome = run()
        error = mass_error(task.problem, outcome.positions, outcome.log_weights, outcome.comparable_weights)
    except Exception as failure:
        return replace(start, message=f"{type(failure).__name__}: {failure}")
    return replace(
        start, error=error, evaluations=outcome.evaluations, seconds=outcome.seconds,
        compile_seconds=outcome.compile_seconds, log_evidence=_finite(outcome.log_evidence),
        log_evidence_error=_finite(outcome.log_evidence_error), trusted=outcome.trusted,
    )  # fmt: skip


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def machine() -> str:
    return f"{platform.machine()}, JAX {jax.__version__} on {jax.default_backend()}"
