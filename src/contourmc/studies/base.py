"""What a study is: an experiment of the paper, run again and compared with what the paper says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contourmc.draws.samples import Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    parts: a folder for finished parts, so that a study that was cut does not make them again.
    """

    size: Size
    quick: bool
    conclusive: bool
    data: Path | None = None
    parts: Path | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether our measurement agrees with a claim (None: too noisy to tell), and what that asks for, in words."""

    agrees: bool | None
    tolerance: str


def within(value: float, low: float | None = None, high: float | None = None, unit: str = "") -> Verdict:
    """The verdict on a number that must not be below `low` nor above `high`."""
    agrees = (low is None or value >= low) and (high is None or value <= high)
    if low is None or high is None:
        bounds = f"at least {low:g}" if high is None else f"at most {high:g}"
    else:
        bounds = f"{low:g} to {high:g}"
    return Verdict(bool(agrees), f"{bounds} {unit}".strip())


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we measured, and whether the two agree; None if there is nothing to judge."""

    paper: str
    ours: str
    verdict: Verdict | None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a study.

    claims: the paper's claims, each with our measurement.
    results: every number, as plain data.
    figures: by file name without extension.
    notes: paragraphs of Markdown below the table of claims.
    interrupted: whether Ctrl-C ended it; it then has the results of what had been finished, and nothing else.
    """

    claims: Sequence[Claim]
    results: Mapping[str, Any]
    figures: Mapping[str, "Figure"] = field(default_factory=dict)
    notes: Sequence[str] = ()
    interrupted: bool = False


@dataclass(frozen=True)
class Study:
    """name: on the command line.
    summary: one line about it.
    title: of the report.
    module: where its function `run` is; imported when the study runs. From Options, and a dictionary in which it puts
        every result as soon as it has it, to an Outcome.
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

    def run(self, options: Options) -> Outcome:
        """Run the experiment; Ctrl-C ends it with what there is."""
        results: dict[str, Any] = {}
        try:
            return import_module(self.module).run(options, results)
        except KeyboardInterrupt:
            return Outcome((), results, interrupted=True)


def complete(samples: Samples) -> Samples:
    """The samples of a run that came to its end. One that Ctrl-C cut short ends the study, too.

    `sample` returns the draws so far, which a study must not take for those of a whole run.
    """
    if samples.interrupted:
        raise KeyboardInterrupt
    return samples
