"""Every method on a data set: a search for its setting on training data, and then, once, the test sets."""

import math
import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax
import numpy as np

import contourmc as cm
from benchmarks.networks.cells import Cell, Cells, Measurement, Part, in_words
from benchmarks.networks.data import DataSet, Rows, Sources, inner_split
from benchmarks.networks.methods import METHODS, REFERENCE, Energies, Plan, Setting, Task
from benchmarks.networks.problem import Problem
from benchmarks.networks.running import Outcome, carry_out

SEARCH_SEED = 1_000_000  # whose training rows are searched on; not one of those that are measured


class NoReferenceError(ArithmeticError):
    """A method needs the energies of SGHMC, which diverged at the same learning rate and temperature."""


@dataclass(frozen=True)
class Study:
    """data: the set.  epochs: of every method.  seeds: of the test sets, 0, 1, ….  sources: of the data."""

    data: DataSet
    cells: Cells
    sources: Sources
    epochs: int
    seeds: int

    def cell(self, method: str, part: Part, setting: Setting, seed: int) -> Cell:
        return Cell(self.data.name, method, part, in_words(setting), seed, self.epochs)

    def measured(self, method: str, part: Part, setting: Setting) -> list[Measurement]:
        """Those that are there, in the order of their seeds."""
        seeds = range(self.seeds if part == "test" else self.data.search_splits)
        found = (self.cells.find(self.cell(method, part, setting, seed)) for seed in seeds)
        return [one for one in found if one is not None]

    def settings(self, method: str) -> list[Setting]:
        """What the method chooses from."""
        needed = METHODS[method].needs_reference
        return METHODS[method].settings(self.data.rates, self.chosen(REFERENCE) if needed else None)

    def score(self, method: str, setting: Setting) -> float:
        """The NLL of what was held out, over the splits of the search; infinite if one diverged or is missing."""
        found = self.measured(method, "search", setting)
        return float(np.mean([one.nll for one in found])) if len(found) == self.data.search_splits else math.inf

    def chosen(self, method: str) -> Setting | None:
        """The setting with the best score, of equals the first; None if none has been tried, or all diverged."""
        scored = [(self.score(method, setting), setting) for setting in self.settings(method)]
        best = min(scored, key=lambda pair: pair[0])
        return best[1] if best[0] < math.inf else None


def measure(study: Study, methods: tuple[str, ...]) -> Iterator[Measurement]:
    """All that is not there yet; each is kept before the next begins.

    The search of SGHMC comes first where another method needs it, even if it is not asked for.
    """
    for method in methods:
        if METHODS[method].needs_reference:
            yield from search(study, REFERENCE)
        yield from search(study, method)
        yield from test(study, method)


def search(study: Study, method: str) -> Iterator[Measurement]:
    """The trials of all settings on splits of training rows; test rows are never seen."""
    splits = study.data.search_splits
    missing = [one for one in study.settings(method) if len(study.measured(method, "search", one)) < splits]
    if not missing:
        return
    train = study.data.split(study.sources, SEARCH_SEED).train
    problems = search_problems(study.data, train)
    for setting in missing:
        yield from _run(study, method, "search", setting, problems)


def search_problems(data: DataSet, train: Rows) -> list[Problem]:
    """The splits of some training rows."""
    return [Problem(data, inner_split(train, index)) for index in range(data.search_splits)]


def test(study: Study, method: str) -> Iterator[Measurement]:
    """The runs on the test sets with the setting that was chosen; all are made again if one is missing."""
    setting = study.chosen(method)
    if setting is None or len(study.measured(method, "test", setting)) == study.seeds:
        return
    splits = [study.data.split(study.sources, seed) for seed in range(study.seeds)]
    corruption = study.data.image is not None
    yield from _run(study, method, "test", setting, [Problem(study.data, one, corruption) for one in splits])


def plan_of(study: Study, method: str, setting: Setting, problem: Problem) -> Plan:
    """How the method spends the evaluations of the study's epochs."""
    energies = _energies(study, setting) if METHODS[method].needs_reference else None
    steps = study.epochs * (problem.observations // study.data.batch)
    return METHODS[method].plan(setting, Task(problem.observations, steps, energies))


def _energies(study: Study, setting: Setting) -> Energies:
    """Those of SGHMC's trials at the same learning rate and temperature; their means over splits."""
    same = {name: setting[name] for name in ("learning_rate", "temperature")}
    found = [one.energies for one in study.measured(REFERENCE, "search", same) if one.energies is not None]
    if not found:
        raise NoReferenceError(f"{REFERENCE} diverged at {in_words(same)}")
    low, high = np.mean(found, axis=0)
    return Energies(float(low), float(high))


def _run(study: Study, method: str, part: Part, setting: Setting, problems: list[Problem]) -> Iterator[Measurement]:
    """The measurements of one setting on all problems, each kept before it is given."""
    for seed, (problem, outcome) in enumerate(zip(problems, _outcomes(study, method, setting, problems), strict=True)):
        start = Measurement(
            study.cell(method, part, setting, seed),
            setting,
            version=f"contourmc {cm.__version__}",
            machine=f"{platform.machine()}, JAX {jax.__version__} on {jax.default_backend()}",
        )
        found = replace(start, message=outcome) if isinstance(outcome, str) else _measurement(start, problem, outcome)
        study.cells.add(found)
        yield found


def _outcomes(study: Study, method: str, setting: Setting, problems: list[Problem]) -> Iterator[Outcome | str]:
    """Of each problem, or why it has none."""
    try:
        plan = plan_of(study, method, setting, problems[0])
    except NoReferenceError as failure:
        yield from [str(failure)] * len(problems)
        return
    yield from carry_out(plan, problems)


def _measurement(start: Measurement, problem: Problem, outcome: Outcome) -> Measurement:
    scores = problem.scores(outcome.prediction)
    if not math.isfinite(scores["nll"]):
        return replace(start, message=f"the NLL is {scores['nll']}")
    return replace(
        start, scores=scores, effective_models=outcome.effective_models, multipliers=outcome.multipliers,
        energies=(outcome.energies.low, outcome.energies.high), evaluations=outcome.evaluations,
        seconds=outcome.seconds,
    )  # fmt: skip
