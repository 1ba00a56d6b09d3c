"""A chart of a report: layers over common axes, as plain data; `drawing.py` draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Columns = Mapping[str, Any]  # arrays of one length

BLUE, ORANGE, GREEN, PURPLE, GREY = "#2f7fc1", "#d9700f", "#1a9a74", "#b565a7", "#8a8f98"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE)
LONGEST = 40  # characters of a name in a chart


@dataclass(frozen=True)
class Axis:
    """title: of the axis.  log: whether it is logarithmic.  limits: if they are known.
    zero: whether a linear one begins at 0.
    """

    title: str
    log: bool = False
    limits: tuple[float, float] | None = None
    zero: bool = False


@dataclass(frozen=True)
class Layer:
    """mark: how it is drawn; `bars` from x to x2, `band` between y and y2, `rule` at x.
    columns: x and y, and for some marks x2 or y2.
    name: in the legend, if there is one.
    colour: of its marks.
    """

    mark: Literal["line", "thread", "steps", "bars", "band", "points", "rule", "dashes"]
    columns: Columns
    name: str
    colour: str = BLUE


@dataclass(frozen=True)
class Chart:
    """title: what it shows.
    caption: what is to be seen, in words and numbers, for who does not see it.
    layers: drawn one over the other.
    legend: whether it names them, if there are several.
    wide: whether it takes the whole width of the page.
    """

    title: str
    caption: str
    x: Axis
    y: Axis
    layers: Sequence[Layer]
    legend: bool = True
    wide: bool = False


def short(name: str) -> str:
    """A name that may be of any length, for a chart."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
