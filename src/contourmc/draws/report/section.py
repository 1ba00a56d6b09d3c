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

    @property
    def two(self) -> bool:
        """Whether two charts stand side by side, and not three, besides those that are wide."""
        return sum(not chart.wide for chart in self.charts) in (1, 2, 4)
