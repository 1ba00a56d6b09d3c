"""A part of the page, with a heading."""

from collections.abc import Sequence
from dataclasses import dataclass

from contourmc.draws.exhibits.chart import Chart
from contourmc.draws.exhibits.table import Table


@dataclass(frozen=True)
class Section:
    """key: its anchor in the page.
    title: its heading.
    text: paragraphs.
    tables, charts: what it shows.
    notes: a list of short remarks.
    code: lines to copy.
    """

    key: str
    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()
    code: str = ""
