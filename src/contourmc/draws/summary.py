"""A table of what a run found, a row for each coordinate."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contourmc._core.pytrees import coordinates
from contourmc.draws.weighted import WeightedDraws

_SHOWN = 40  # the most rows that are printed
LEVELS = (0.05, 0.5, 0.95)


class Row(NamedTuple):
    """mean: of a coordinate.  error: the standard error of the mean.  deviation: the standard deviation.
    quantiles: 5%, 50% and 95%.  ess: the effective sample size.  rhat: R̂, 1 if the chains agree.
    """

    mean: float
    error: float
    deviation: float
    quantiles: tuple[float, float, float]
    ess: float
    rhat: float


@dataclass(frozen=True)
class Summary:
    """rows: by the name of the coordinate, such as `mu` or `layer.bias[2]`; prints as a table."""

    rows: dict[str, Row]

    def __getitem__(self, name: str) -> Row:
        return self.rows[name]

    def __str__(self) -> str:
        head = ("", "mean", "±", "sd", "5%", "50%", "95%", "ESS", "R̂")
        lines: list[tuple[str, ...]] = [head]
        for name, row in list(self.rows.items())[:_SHOWN]:
            numbers = (row.mean, row.error, row.deviation, *row.quantiles)
            lines.append((name, *(f"{number:.4g}" for number in numbers), f"{row.ess:,.0f}", f"{row.rhat:.2f}"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        more = len(self.rows) - _SHOWN
        return "\n".join(text + ([f"… and {more} more"] if more > 0 else []))

    __repr__ = __str__


def summarise(samples: WeightedDraws) -> Summary:
    """The table of a run whose draws are stored."""
    estimated = (
        samples.mean(), samples.standard_error(), samples.variance(), samples.ess(), samples.rhat(),
        *(samples.quantile(level) for level in LEVELS),
    )  # fmt: skip
    columns = [coordinates(tree) for tree in estimated]
    rows = {}
    for name in columns[0]:
        mean, error, variance, ess, rhat, low, middle, high = (float(column[name]) for column in columns)
        rows[name] = Row(mean, error, float(np.sqrt(max(variance, 0.0))), (low, middle, high), ess, rhat)
    return Summary(rows)
