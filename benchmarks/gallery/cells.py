"""What was measured, one line of JSON a run, written as soon as it is done: a second call goes on where one ended."""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.gallery.outcome import Budget
from benchmarks.kept_lines import KeptLines


@dataclass(frozen=True)
class Cell:
    """One run: what it is of, and the budget it had."""

    problem: str
    method: str
    seed: int
    steps: int
    chains: int


@dataclass(frozen=True)
class Measurement:
    """version: of the package that made it.  machine: where.  setting: what the method ran with, in words.
    error: total variation of the pooled mode masses; None for a run that diverged.
    message: why it diverged; empty for one that did not.
    evaluations, seconds, compile_seconds: as in `Outcome`; None for one that diverged.
    log_evidence, log_evidence_error: as in `Outcome`; None also for a method that does not estimate it.
    trusted: whether contourmc's own diagnosis found nothing wrong; None for the others, which have none.
    tuning: what contourmc chose, for the peers that need it.
    """

    cell: Cell
    version: str = ""
    machine: str = ""
    setting: str = ""
    error: float | None = None
    message: str = ""
    evaluations: float | None = None
    seconds: float | None = None
    compile_seconds: float | None = None
    log_evidence: float | None = None
    log_evidence_error: float | None = None
    trusted: bool | None = None
    tuning: dict[str, float] | None = None

    @property
    def diverged(self) -> bool:
        return self.error is None

    def plain(self) -> dict[str, Any]:
        """For a file."""
        fields = asdict(self)
        return fields.pop("cell") | fields

    @staticmethod
    def from_plain(fields: dict[str, Any]) -> "Measurement":
        """What `plain` gave."""
        names = Cell.__dataclass_fields__
        cell = Cell(**{name: fields[name] for name in names})
        return Measurement(cell, **{name: value for name, value in fields.items() if name not in names})


class Cells:
    """The measurements of a file, to which new ones are added; of two with the same cell, the later counts.

    without: methods whose measurements in the file do not count.
    """

    def __init__(self, file: Path, without: Collection[str] = ()) -> None:
        self._lines = KeptLines(file)
        found = map(Measurement.from_plain, self._lines)
        self._found = {one.cell: one for one in found if one.cell.method not in without}

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._found.values())

    def find(self, cell: Cell, version: str | None = None) -> Measurement | None:
        """The measurement of a cell; None if there is none, or one that another version made."""
        found = self._found.get(cell)
        return found if found is not None and version in (None, found.version) else None

    def add(self, measurement: Measurement) -> None:
        """Keep it, on disk first."""
        self._lines.add(measurement.plain())
        self._found[measurement.cell] = measurement

    def of(self, budget: Budget) -> list[Measurement]:
        """All that had this budget."""
        wanted = (budget.steps, budget.chains)
        return [found for found in self if (found.cell.steps, found.cell.chains) == wanted]
