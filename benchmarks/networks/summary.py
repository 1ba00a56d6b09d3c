"""What the runs on the test sets say: means over seeds with standard errors, and paired differences to SGHMC."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.networks.cells import Measurement, in_words
from benchmarks.networks.measure import Study
from benchmarks.networks.methods import METHODS, REFERENCE
from contourmc.studies.uci.table import mean_and_error

Pair = tuple[float, float]


@dataclass(frozen=True)
class Summary:
    """setting: what was chosen, in words.  seeds: how many runs there are.  diverged: of these.
    values: of each run that did not diverge, by the name of a score; `corrupted accuracy` and `corrupted nll` are means
        over kinds and strengths.
    difference: NLL minus that of SGHMC, on each seed that both have.
    multipliers: the least and the largest of all runs; None without.
    """

    setting: str
    seeds: int
    diverged: int
    values: dict[str, list[float]]
    difference: list[float]
    multipliers: Pair | None

    def of(self, score: str) -> Pair | None:
        """The mean and its standard error."""
        return mean_and_error(self.values[score]) if self.values.get(score) else None


def summarise(study: Study, methods: Iterable[str]) -> dict[str, Summary]:
    """Of the methods that were measured on a data set."""
    baseline = {one.cell.seed: one.nll for one in _tested(study, REFERENCE)}
    found = {}
    for method in methods:
        runs = _tested(study, method)
        if runs:
            found[method] = _summary(runs, baseline)
    return found


def _tested(study: Study, method: str) -> list[Measurement]:
    setting = study.chosen(method)
    return [] if setting is None else study.measured(method, "test", setting)


def _summary(runs: list[Measurement], baseline: dict[int, float]) -> Summary:
    fine = [run for run in runs if not run.message]
    values: dict[str, list[float]] = {}
    for run in fine:
        for name, value in _scores(run).items():
            values.setdefault(name, []).append(value)
    pairs = [(run.nll, baseline[run.cell.seed]) for run in fine if np.isfinite(baseline.get(run.cell.seed, np.inf))]
    reach = [run.multipliers for run in fine if run.multipliers is not None]
    return Summary(
        setting=in_words(runs[0].setting),
        seeds=len(runs),
        diverged=len(runs) - len(fine),
        values=values,
        difference=[own - other for own, other in pairs],
        multipliers=(min(low for low, _ in reach), max(high for _, high in reach)) if reach else None,
    )


def _scores(run: Measurement) -> dict[str, float]:
    scores = {name: value for name, value in run.scores.items() if name != "corrupted"}
    worse = run.scores.get("corrupted", {})
    for score in ("accuracy", "nll") if worse else ():
        scores[f"corrupted {score}"] = float(np.mean([kind[score] for kind in worse.values()]))
    more = dict(effective_models=run.effective_models, evaluations=run.evaluations, seconds=run.seconds)
    return scores | {name: float(value) for name, value in more.items() if value is not None}


def in_order(summaries: dict[str, Summary]) -> list[str]:
    """The methods, as in their table."""
    return [method for method in METHODS if method in summaries]
