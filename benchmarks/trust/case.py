"""A case: a run, what is known about its target, and how far the run is from it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from contourmc.draws.samples import Samples

# `right`: a run as one would make it.  `wrong`: made badly on purpose.  `unseen`: a mode that no chain ever visited.
Kind = Literal["right", "wrong", "unseen"]


@dataclass(frozen=True)
class Case:
    """name: what is run, in words.
    kind: what is expected of it.
    run: makes it.
    quantity: what is compared, in words.
    measure: the answer and its standard error.
    truth: of that quantity.
    mass: whether it is a probability of modes, which may be off by 0.05.
    """

    name: str
    kind: Kind
    run: Callable[[], Samples]
    quantity: str
    measure: Callable[[Samples], tuple[float, float]]
    truth: float
    mass: bool = False


@dataclass(frozen=True)
class Outcome:
    """answer, error: what the run said.  trusted: what its diagnosis said.  reason: the worst finding, in words.
    refusal: the message, if the run was refused or ended with an error.
    """

    case: Case
    answer: float = float("nan")
    error: float = float("nan")
    trusted: bool = False
    reason: str = ""
    refusal: str = ""

    @property
    def off(self) -> bool:
        """Off by more than five standard errors, or 0.05 in mass; a refused run gives no answer."""
        distance = abs(self.answer - self.case.truth)
        return not self.refusal and bool(distance > (0.05 if self.case.mass else 5 * self.error))


def judge(case: Case) -> Outcome:
    """Run a case."""
    try:
        samples = case.run()
    except (ValueError, RuntimeError) as error:
        return Outcome(case, refusal=str(error))
    diagnosis = samples.diagnose()
    answer, error = case.measure(samples)
    worst = next((str(one) for one in diagnosis.findings if one.severity != "note"), "")
    return Outcome(case, answer, error, diagnosis.ok, worst)


def expected(function: Callable[[Any], Any]) -> Callable[[Samples], tuple[float, float]]:
    """The expectation of a function, with its error."""

    def measure(samples: Samples) -> tuple[float, float]:
        mean, error = samples.expectation(function, error=True)
        return float(np.asarray(mean)), float(np.asarray(error))

    return measure
