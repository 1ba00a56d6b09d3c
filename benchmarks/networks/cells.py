"""What was measured, a line of JSON each: trials of settings on training data, and runs on the test sets."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.kept_lines import KeptLines
from benchmarks.networks.methods import Setting

Part = Literal["search", "test"]


@dataclass(frozen=True)
class Cell:
    """One run: of a method with a setting, in words, on a data set.

    part: `search` for a trial on training data alone, whose seed is the number of its split; else `test`.
    epochs: that all methods had.
    """

    data: str
    method: str
    part: Part
    setting: str
    seed: int
    epochs: int


@dataclass(frozen=True)
class Measurement:
    """setting: as numbers.
    version: of the package that made it.  machine: where.
    message: why it diverged; empty if it did not.
    scores: `nll`; accuracy, ece, brier and, on test sets of images, `corrupted`; or rmse and coverage.
    effective_models, multipliers, evaluations, seconds: as of an `Outcome`.
    energies: the quantiles 0.1 and 0.9 of the energies of the models, by observation.
    """

    cell: Cell
    setting: Setting
    version: str = ""
    machine: str = ""
    message: str = ""
    scores: dict[str, Any] = field(default_factory=dict)
    effective_models: float | None = None
    multipliers: tuple[float, float] | None = None
    energies: tuple[float, float] | None = None
    evaluations: int | None = None
    seconds: float | None = None

    @property
    def nll(self) -> float:
        """Infinite for a run that diverged."""
        return self.scores.get("nll", float("inf"))

    def plain(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)

    @staticmethod
    def from_plain(fields: dict[str, Any]) -> "Measurement":
        """What `plain` gave."""
        given = dict(fields)
        for name in ("multipliers", "energies"):
            given[name] = None if given[name] is None else tuple(given[name])
        return Measurement(Cell(**given.pop("cell")), **given)


class Cells:
    """The measurements of a file, to which new ones are added; of two with the same cell, the later counts."""

    def __init__(self, file: Path) -> None:
        self._lines = KeptLines(file)
        self._found = {one.cell: one for one in map(Measurement.from_plain, self._lines)}

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self._found.values())

    def find(self, cell: Cell) -> Measurement | None:
        return self._found.get(cell)

    def add(self, measurement: Measurement) -> None:
        """Keep it, on disk first."""
        self._lines.add(measurement.plain())
        self._found[measurement.cell] = measurement


def in_words(setting: Setting) -> str:
    """A setting for people, and to tell settings apart."""
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in setting.items())
