"""What a study is: an experiment of the paper, run again and compared with what the paper says.

A study has two halves. `measure` makes numbers, and keeps them as plain data. Claims, figures and notes are made from
this record alone, so that they can be made again at any time, here or from a committed record.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from contourmc.draws.samples import Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Size:
    """length: steps of each chain; for a study on data, passes through them.  seeds: independent repetitions."""

    length: int
    seeds: int


@dataclass(frozen=True)
class Options:
    """What a study is asked to do.

    size: how long to run, and how often.
    quick: whether to compare fewer methods and settings, too.
    conclusive: whether the size is that of the full study, or larger; otherwise no claim is judged.
    data: the local folder of the data sets.
    parts: a folder for finished parts, so that a study that was interrupted does not make them again.
    """

    size: Size
    quick: bool
    conclusive: bool
    data: Path | None = None
    parts: Path | None = None


# --- Claims and their verdicts -----------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """A number with its standard error and its 95% interval, which is the number itself where there is no error.

    freedom: the degrees of freedom of the error.
    """

    value: float
    error: float
    low: float
    high: float
    freedom: float = np.inf

    def __format__(self, form: str) -> str:
        return f"{self.value:{form}} ± {self.error:{form.lstrip('+')}}" if self.error else f"{self.value:{form}}"


def over_seeds(values: Sequence[float] | np.ndarray) -> Measured:
    """The mean over independent runs, with Student's t interval; a single run has an unbounded one."""
    values = np.asarray(values, float)
    mean, runs = float(values.mean()), len(values)
    if runs < 2 or not np.isfinite(mean):
        return Measured(mean, float("nan"), -np.inf, np.inf)
    return with_error(mean, float(values.std(ddof=1) / runs**0.5), runs - 1)


def with_error(value: float, error: float, freedom: float = np.inf, comparisons: int = 1) -> Measured:
    """A number with a standard error and Student's t interval.

    comparisons: of how many numbers this is the largest; the interval is widened so that it holds for all (Bonferroni).
    """
    from scipy import stats  # not above: it would double the time of `contourmc --help`

    outside = (1 - CONFIDENCE) / 2 / comparisons
    reach = float(stats.t.ppf(1 - outside, freedom)) * error if np.isfinite(error) else np.inf
    return Measured(value, error, value - reach, value + reach, freedom)


def difference(one: Measured, other: Measured) -> Measured:
    """The difference of two independent means, with the degrees of freedom of Welch."""
    error = float(np.hypot(one.error, other.error))
    return with_error(one.value - other.value, error, _welch((one.error, one.freedom), (other.error, other.freedom)))


def ratio(one: Measured, other: Measured) -> Measured:
    """The ratio of two independent means, to first order in their errors; unknown if the second is 0."""
    if other.value == 0:
        return Measured(float("nan"), float("nan"), -np.inf, np.inf)
    value = one.value / other.value
    parts = one.error / abs(other.value), value * other.error / abs(other.value)
    return with_error(value, float(np.hypot(*parts)), _welch((parts[0], one.freedom), (parts[1], other.freedom)))


def _welch(*parts: tuple[float, float]) -> float:
    """The degrees of freedom of a sum of independent errors, by Satterthwaite's formula."""
    squares = sum(error**2 for error, _ in parts)
    fourth = sum(error**4 / freedom for error, freedom in parts)
    return squares**2 / fourth if fourth > 0 else np.inf


def exact(value: float) -> Measured:
    """A number without statistical error, such as a quadrature's."""
    return Measured(float(value), 0.0, float(value), float(value))


def share(count: int, of: int) -> Measured:
    """A share of independent runs, with the interval of Clopper and Pearson."""
    from scipy import stats

    interval = stats.binomtest(int(count), of).proportion_ci(CONFIDENCE)
    value = count / of
    return Measured(value, float((value * (1 - value) / of) ** 0.5), float(interval.low), float(interval.high))


@dataclass(frozen=True)
class Verdict:
    """`agrees`, `differs` or `undecided`, and the rule that decided, in words."""

    outcome: Literal["agrees", "differs", "undecided"]
    rule: str


def judge(
    measured: Measured, *, above: float | None = None, below: float | None = None, unit: str = "", rule: str = ""
) -> Verdict:
    """The verdict on a claim that a quantity is above one limit, below another, or between the two.

    It agrees if the whole 95% interval is on the claimed side of each limit, and differs if the whole interval is
    beyond one of them. Else it is undecided; so a tie is undecided.

    unit: of the limits, in words.  rule: the rule in words, where the limits and the unit do not make a good sentence.
    """
    bounds = " and ".join(
        f"{word} {limit:g}" for word, limit in (("above", above), ("below", below)) if limit is not None
    )
    inside = (above is None or measured.low > above) and (below is None or measured.high < below)
    outside = (above is not None and measured.high < above) or (below is not None and measured.low > below)
    outcome = "agrees" if inside else "differs" if outside else "undecided"
    return Verdict(outcome, rule or f"{bounds} {unit}".strip())


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we measured, and whether the two agree.

    key: a short name, unique in the study; the page "The paper, result by result" refers to it.
    paper: the claim.  ours: the measurement, in words and numbers.  verdict: None if there is nothing to judge.
    """

    key: str
    paper: str
    ours: str
    verdict: Verdict | None


# --- Studies -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a record says.

    claims: the paper's claims, each with our measurement.
    figures: functions that draw, by file name without extension, with a caption each.
    notes: paragraphs of Markdown: how it was measured.
    """

    claims: Sequence[Claim]
    figures: Mapping[str, "Drawing"] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Drawing:
    """A figure that is drawn when it is asked for.  caption: which scheme, weights and settings it shows."""

    draw: Callable[[], "Figure"]
    caption: str


@dataclass(frozen=True)
class Study:
    """name: on the command line.
    summary: one line about it.
    title: of the report.
    module: where its functions are; imported when the study runs. `measure(options, record)` puts every result into
        the record, as plain data, as soon as it is there. `conclude(record)` makes an `Outcome` of a complete record.
    full, quick: the sizes of the whole study, and of its quick version.
    """

    name: str
    summary: str
    title: str
    module: str
    full: Size
    quick: Size

    def options(
        self, length: int | None = None, seeds: int | None = None, quick: bool = False, data: Path | None = None
    ) -> Options:
        """The options for a length and a number of seeds; what is None is as in the full or the quick version."""
        usual = self.quick if quick else self.full
        size = Size(length or usual.length, seeds or usual.seeds)
        enough = size.length >= self.full.length and size.seeds >= self.full.seeds
        return Options(size, quick, conclusive=enough and not quick, data=data)

    def measure(self, options: Options, record: Record) -> bool:
        """Run the experiment, and fill the record. Returns False if Ctrl-C ended it; the record has what there is."""
        try:
            import_module(self.module).measure(options, record)
        except KeyboardInterrupt:
            return False
        return True

    def conclude(self, record: Record) -> Outcome:
        """Claims, figures and notes of a complete record."""
        return import_module(self.module).conclude(record)


def complete(samples: Samples) -> Samples:
    """The samples of a run that came to its end. A run that Ctrl-C ended ends the study, too.

    `sample` returns the draws so far, which a study must not take for a whole run's.
    """
    if samples.interrupted:
        raise KeyboardInterrupt
    return samples
