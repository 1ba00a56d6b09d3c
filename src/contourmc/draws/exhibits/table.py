"""A table of a report."""

from collections.abc import Sequence
from dataclasses import dataclass

Cell = str | int | float


@dataclass(frozen=True)
class Table:
    """title: what it holds; also the name of its CSV file.
    columns: their heads.
    rows: names, and numbers in full; a page shows four digits, and the CSV file all of them.
    note: what is left out, in words.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


def shown(cell: Cell) -> str:
    """A cell as a page shows it."""
    if isinstance(cell, (bool, str)):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if cell != cell:
        return "–"
    return f"{cell:,.0f}" if 1_000 <= abs(cell) < 1e15 else f"{cell:#.4g}"
