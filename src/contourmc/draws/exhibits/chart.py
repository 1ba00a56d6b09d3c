"""A chart of a report, described for Vega-Lite: layers over common axes, with values to hover over and a zoom.

Names that come from users stand in titles only, which Vega-Lite shows as they are; fields of data have fixed names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from contourmc.draws.exhibits.numbers import DIGITS, digits_of

Columns = Mapping[str, Any]  # arrays of one length

BLUE, ORANGE, GREEN, PURPLE, GREY = "#2f7fc1", "#d9700f", "#1a9a74", "#b565a7", "#8a8f98"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE)
LONGEST = 40  # characters of a name in a chart
HEIGHT = 230
# Colours come from the page, so that they follow its dark mode and the printer.
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor", "titleColor": "currentColor", "domainColor": "currentColor",
        "tickColor": "currentColor", "gridColor": "currentColor", "gridOpacity": 0.12, "domainOpacity": 0.4,
        "tickOpacity": 0.4, "titleFontWeight": "normal", "labelFontSize": 11, "titleFontSize": 12, "labelFlush": True,
    },
    "axisX": {"labelOverlap": "greedy", "labelSeparation": 8, "tickCount": 6},
    "legend": {
        "labelColor": "currentColor", "orient": "top", "title": None, "labelFontSize": 12, "labelLimit": 260,
        "columns": 3, "symbolStrokeWidth": 3, "symbolOpacity": 1,
    },
}  # fmt: skip
# The wheel scrolls the page, and a finger too, unless Ctrl or ⌘ is held: a chart must not trap the reader.
ZOOM: dict[str, Any] = {
    "name": "zoom",
    "select": {
        "type": "interval",
        "zoom": "wheel![event.ctrlKey || event.metaKey]",
        "translate": "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!",
    },
    "bind": "scales",
}


@dataclass(frozen=True)
class Axis:
    """title: of the axis.  log: whether it is logarithmic.  limits: if they are known.
    zero: whether a linear one begins at 0.
    """

    title: str
    log: bool = False
    limits: tuple[float, float] | None = None
    zero: bool = False

    def encoding(self, field: str, values: np.ndarray) -> dict[str, Any]:
        """How Vega-Lite draws it, for these numbers: very large and very small ones as 2e-7."""
        scale: dict[str, Any] = {"type": "log"} if self.log else {"zero": self.zero}
        scale |= {"nice": self.limits is None and not self.log}
        scale |= {} if self.limits is None else {"domain": [*map(float, self.limits)]}
        axis: dict[str, Any] = {"format": "~g", "tickCount": 4} if self.log else {}
        largest = np.max(np.abs(values), initial=0.0)
        if not (self.log or 1e-3 <= largest < 1e6 or largest == 0) and digits_of(values) == DIGITS + 1:
            axis["format"] = ".3~g"
        return {"field": field, "type": "quantitative", "title": short(self.title), "scale": scale, "axis": axis}


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


MARKS: dict[str, dict[str, Any]] = {
    "line": {"type": "line", "strokeWidth": 2, "point": {"opacity": 0, "size": 60}},
    "thread": {"type": "line", "strokeWidth": 1, "opacity": 0.85, "point": {"opacity": 0, "size": 40}},
    "steps": {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "point": {"opacity": 0, "size": 60}},
    "bars": {"type": "bar", "opacity": 0.65, "binSpacing": 0},
    "band": {"type": "area", "opacity": 0.22},
    "points": {"type": "circle", "opacity": 0.45, "size": 14},
    "rule": {"type": "rule", "strokeDash": [3, 3], "opacity": 0.8},
    "dashes": {"type": "line", "strokeDash": [4, 4], "strokeWidth": 1.5, "opacity": 0.8},
}


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

    @property
    def spec(self) -> dict[str, Any]:
        """The chart as Vega-Lite, without NaN and infinities, which JSON cannot hold."""
        names = list(dict.fromkeys(layer.name for layer in self.layers))
        colours = [next(layer.colour for layer in self.layers if layer.name == name) for name in names]
        legend = {} if self.legend and len(names) > 1 else None
        layers = []
        for layer in self.layers:
            colour = {"datum": short(layer.name), "type": "nominal", "legend": legend}
            colour["scale"] = {"domain": [*map(short, names)], "range": colours}
            encoding: dict[str, Any] = {"x": self.x.encoding("x", self._values("x")), "color": colour}
            encoding |= {"y": self.y.encoding("y", self._values("y"))} if "y" in layer.columns else {}
            encoding |= {"tooltip": self._tooltip(layer)}
            encoding |= {end: {"field": end} for end in ("x2", "y2") if end in layer.columns}
            mark = MARKS[layer.mark] | {"clip": True, "aria": False}
            layers.append({"data": {"values": _rows(layer.columns)}, "mark": mark, "encoding": encoding})
        layers[0]["params"] = [ZOOM]
        return {"width": "container", "height": HEIGHT, "layer": layers}

    def _values(self, axis: str) -> np.ndarray:
        """All numbers along an axis that are finite."""
        columns = [np.ravel(layer.columns[axis]) for layer in self.layers if axis in layer.columns]
        values = np.concatenate(columns).astype(float)
        return values[np.isfinite(values)]

    def _tooltip(self, layer: Layer) -> list[dict[str, Any]]:
        titles = {"x": self.x.title, "x2": "to", "y": self.y.title, "y2": "to"}
        digits = {axis: digits_of(layer.columns[axis]) for axis in ("x", "y") if axis in layer.columns}
        return [
            {"field": name, "type": "quantitative", "title": short(title), "format": f".{digits[name[0]]}~g"}
            for name, title in titles.items()
            if name in layer.columns and (layer.mark, name) != ("bars", "y2")  # where a bar begins says nothing
        ]


def short(name: str) -> str:
    """A name that may be of any length, for a chart."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _rows(columns: Columns) -> list[dict[str, float]]:
    """A dictionary for each row that is finite throughout."""
    arrays = {name: np.asarray(values, float) for name, values in columns.items()}
    fine = np.all([np.isfinite(values) for values in arrays.values()], axis=0)
    rounded = [
        [float(f"{number:.{digits}g}") for number in values[fine]]
        for values, digits in ((values, digits_of(values)) for values in arrays.values())
    ]
    return [dict(zip(arrays, row, strict=True)) for row in zip(*rounded, strict=True)]
