"""All seeds of a method on a problem, in a few numbers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.gallery.cells import Measurement
from benchmarks.gallery.peers import METHODS
from contourmc.problems import gallery

GOOD = 0.1  # total variation
COVERING = 2.0  # standard errors


@dataclass(frozen=True)
class Summary:
    """Of the runs that did not diverge, None if all did:

    error, worst: the mean and the largest total variation.
    evidence_error, evidence_worst: the same of |log Ẑ − log Z|, over the runs that give log Ẑ; None if none does.
    covered, claimed: of how many of the runs that claim a standard error of log Ẑ, two of them reach the truth.
    evaluations, seconds: means.  compile_seconds: the largest.
    trusted: how many say of themselves that they look good; None for a method that cannot.
    """

    runs: int
    diverged: int
    error: float | None
    worst: float | None
    evidence_error: float | None
    evidence_worst: float | None
    covered: int
    claimed: int
    evaluations: float | None
    seconds: float | None
    compile_seconds: float | None
    trusted: int | None

    @property
    def good(self) -> bool:
        return self.worst is not None and self.worst <= GOOD and not self.diverged


# By problem and method.
Summaries = dict[str, dict[str, Summary]]


def summarise(measurements: Iterable[Measurement]) -> Summary:
    """The summary of runs of one method on one problem."""
    runs = list(measurements)
    fine = [run for run in runs if not run.diverged]
    off = [(abs(miss), run.log_evidence_error) for run in fine if (miss := evidence_miss(run)) is not None]
    claims = [(miss, error) for miss, error in off if error is not None]
    verdicts = [run.trusted for run in fine if run.trusted is not None]
    return Summary(
        runs=len(runs),
        diverged=len(runs) - len(fine),
        error=_over(np.mean, [run.error for run in fine]),
        worst=_over(np.max, [run.error for run in fine]),
        evidence_error=_over(np.mean, [miss for miss, _ in off]),
        evidence_worst=_over(np.max, [miss for miss, _ in off]),
        covered=sum(miss <= COVERING * error for miss, error in claims),
        claimed=len(claims),
        evaluations=_over(np.mean, [run.evaluations for run in fine]),
        seconds=_over(np.mean, [run.seconds for run in fine]),
        compile_seconds=_over(np.max, [run.compile_seconds for run in fine]),
        trusted=sum(verdicts) if verdicts else None,
    )


def evidence_miss(run: Measurement) -> float | None:
    """log Ẑ − log Z; None if either is not known."""
    truth = gallery()[run.cell.problem].log_evidence
    return None if truth is None or run.log_evidence is None else run.log_evidence - truth


def by_cell(measurements: Sequence[Measurement]) -> Summaries:
    """The summary of every problem and method that was measured, in the gallery's order."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for run in measurements:
        groups.setdefault((run.cell.problem, run.cell.method), []).append(run)
    return {
        problem: {method: summarise(groups[problem, method]) for method in METHODS if (problem, method) in groups}
        for problem in gallery()
        if any(problem == name for name, _ in groups)
    }


def methods_of(summaries: Summaries) -> list[str]:
    """Those that were measured on any problem."""
    return [method for method in METHODS if any(method in row for row in summaries.values())]


def _over(reduce: Callable[..., np.floating], values: Sequence[float | None]) -> float | None:
    return float(reduce(np.array(values, float))) if values else None
