"""A table of a report."""

from collections.abc import Sequence
from dataclasses import dataclass

Cell = str | int | float


@dataclass(frozen=True)
class Table:
    """title: what it holds; also the name of its CSV file.
    columns: their heads.
    rows: names, and numbers in full; a page shows some of their digits (see `shown`), and the CSV file all of them.
    note: what is left out, in words.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
