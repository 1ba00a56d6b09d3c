"""A chart drawn as SVG, by Python alone: nothing has to run in a browser, and no library that may fail is needed.

Ink is `currentColor`, so that charts follow the dark mode of the page and the printer. Sizes are in pixels of a wide
window; a page scales the drawing.
"""

import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from contourmc.draws.exhibits.chart import Axis, Chart, Layer, short
from contourmc.draws.exhibits.numbers import DIGITS, digits_of

HEIGHT, RIGHT, TOP, BOTTOM, TITLE, ROW = 286, 20, 8, 40, 30, 22  # margins; ROW: of a legend
CHARACTER = 6.4  # the width of most characters, in a chart
FEW_DECADES = 3  # of a logarithmic axis, which then has ticks between powers of ten
LINES = {
    "line": 'stroke-width="2"',
    "steps": 'stroke-width="2"',
    "thread": 'stroke-width="1" stroke-opacity=".85"',
    "dashes": 'stroke-width="1.5" stroke-dasharray="4 4" stroke-opacity=".8"',
    "rule": 'stroke-dasharray="3 3" stroke-opacity=".8"',
}


class Drawing(NamedTuple):
    """svg: an element for a page.
    values: for a script that shows the values where one points: the box of the axes, their ends, and the layers.
    """

    svg: str
    values: dict[str, Any]


class Scale(NamedTuple):
    """From numbers to pixels: `low` is drawn at `start`, `high` at `end`."""

    low: float
    high: float
    log: bool
    start: float = 0.0
    end: float = 1.0

    def at(self, numbers: Any) -> np.ndarray:
        low, high, where = self.low, self.high, np.asarray(numbers, float)
        if self.log:
            low, high, where = math.log(low), math.log(high), np.log(np.maximum(where, np.finfo(float).tiny))
        return self.start + (self.end - self.start) * (where - low) / (high - low)


def draw(chart: Chart, width: int) -> Drawing:
    """The chart, as wide as this."""
    layers = [(layer, _finite(layer, chart)) for layer in chart.layers]
    x_values, y_values = (_along(layers, ends) for ends in (("x", "x2"), ("y", "y2")))
    x, y = _scale(chart.x, x_values), _scale(chart.y, y_values)
    y_ticks = _ticks(y, 8)
    y_labels = _labels(y_ticks, y_values, y.log)
    names = {layer.name: layer.colour for layer in chart.layers}
    legend, rows = _legend(names, width) if chart.legend and len(names) > 1 else ("", 0)
    left, top = TITLE + CHARACTER * max(map(len, y_labels), default=0), TOP + ROW * rows
    across, down = width - left - RIGHT, HEIGHT - top - BOTTOM
    x, y = x._replace(end=across), y._replace(start=down, end=0.0)
    # As many ticks as there is room for.
    choices = ((ticks, _labels(ticks, x_values, x.log)) for ticks in (_ticks(x, most) for most in (9, 6, 4, 3, 2, 1)))
    x_ticks, x_labels = next(
        (ticks, labels) for ticks, labels in choices
        if sum(CHARACTER * len(label) + 16 for label in labels) < across or len(labels) < 2
    )  # fmt: skip
    grid = [f"M{at:.1f} 0V{down:.1f}" for at in x.at(x_ticks)] + [f"M0 {at:.1f}H{across:.1f}" for at in y.at(y_ticks)]
    parts = [
        f'<svg viewBox="0 0 {width} {HEIGHT}">{legend}<g transform="translate({left:.1f} {top})">',
        f'<path class="grid" d="{"".join(grid)}"/><path class="axes" d="M0 0V{down:.1f}H{across:.1f}"/>',
        *(_text(at, down + 16, "middle", label) for at, label in zip(x.at(x_ticks), x_labels, strict=True)),
        *(_text(-7, at + 4, "end", label) for at, label in zip(y.at(y_ticks), y_labels, strict=True)),
        _text(across / 2, down + 34, "middle", short(chart.x.title), "title"),
        _text(0, 0, "middle", short(chart.y.title), "title", f"translate({14 - left:.1f} {down / 2:.1f}) rotate(-90)"),
        f'<svg class="marks" width="{across:.1f}" height="{down:.1f}">',  # it hides what lies outside of the axes
        *(_mark(layer, columns, x, y) for layer, columns in layers),
        "</svg></g></svg>",
    ]
    box, ends = [left, top, across, down], [[x.low, x.high, x.log], [y.low, y.high, y.log]]
    titles = {"x": chart.x.title, "x2": "to", "y": chart.y.title, "y2": "to"}
    shown = [_values(layer, columns, titles) for layer, columns in layers]
    return Drawing("".join(parts), {"size": [width, HEIGHT], "box": box, "ends": ends, "layers": shown})


def _finite(layer: Layer, chart: Chart) -> dict[str, np.ndarray]:
    """The rows that are finite throughout, and above 0 on logarithmic axes."""
    columns = {name: np.asarray(values, float).ravel() for name, values in layer.columns.items()}
    log = {"x": chart.x.log, "y": chart.y.log}
    fine = np.all([np.isfinite(values) & ((values > 0) | (not log[name[0]])) for name, values in columns.items()], 0)
    return {name: values[fine] for name, values in columns.items()}


def _along(layers: Sequence[tuple[Layer, dict[str, np.ndarray]]], ends: tuple[str, str]) -> np.ndarray:
    """All numbers along an axis."""
    return np.concatenate([columns[end] for _, columns in layers for end in ends if end in columns] or [np.zeros(0)])


def _scale(axis: Axis, values: np.ndarray) -> Scale:
    """The ends of an axis: as they are given, else such that all values lie between; round ones if it is linear."""
    low, high = (float(values.min()), float(values.max())) if values.size else (1.0, 1.0)
    low, high = (min(low, 0.0), max(high, 0.0)) if axis.zero else (low, high)
    low, high = (low, high) if axis.limits is None else axis.limits
    if not 0 < high - low < math.inf:
        half = (abs(low) or 1.0) / 2
        return Scale(low / 2, low * 2, True) if axis.log else Scale(low - half, low + half, False)
    if axis.log or axis.limits is not None:
        return Scale(low, high, axis.log)
    step = _step(low, high, 10)
    return Scale(math.floor(low / step) * step, math.ceil(high / step) * step, False)


def _step(low: float, high: float, most: int) -> float:
    """The distance of ticks: 1, 2 or 5 times a power of ten, with at most so many steps between the ends."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next((size * power for size in (1, 2, 5) if size * power >= rough * (1 - 1e-9)), 10 * power)


def _ticks(scale: Scale, most: int) -> np.ndarray:
    """Round numbers along an axis."""
    low, high = scale.low, scale.high
    if scale.log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        few = math.log10(high / low) < FEW_DECADES
        stride = max(1, -(-(last - first) // most))
        powers = 10.0 ** np.arange(first - few, last + 1, stride)
        ticks = np.sort(np.outer(powers, (1, 2, 5) if few and most > 1 else (1,)).ravel())
        ticks = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
        if ticks.size > 1 or most == 1:
            return ticks
    step = _step(low, high, most)
    return step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)


def _labels(ticks: np.ndarray, values: np.ndarray, log: bool) -> list[str]:
    """Ticks in words: very large and very small ones as 2e-7, unless they differ in their last digits only."""
    largest = float(np.max(np.abs(ticks), initial=0.0))
    if log or (largest and not 1e-3 <= largest < 1e6 and digits_of(values) == DIGITS + 1):
        return [re.sub(r"e\+?(-?)0*", r"e\1", f"{tick:.3g}") for tick in ticks]
    step = float(ticks[1] - ticks[0]) if len(ticks) > 1 else largest or 1.0
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{tick + 0.0:,.{decimals}f}".replace("-", "−") for tick in ticks]  # 0.0: not −0


def _legend(names: dict[str, str], width: int) -> tuple[str, int]:
    """The names of the layers with their colours, and in how many rows they are."""
    parts, x, row = [], float(TITLE), 0
    for name, colour in names.items():
        size = CHARACTER * len(short(name)) + 34
        if x + size > width and x > TITLE:
            x, row = float(TITLE), row + 1
        y = TOP + 6 + ROW * row
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{colour}"/>{_text(x + 10, y + 4, "start", short(name))}'
        )
        x += size
    return "".join(parts), row + 1


def _text(x: float, y: float, anchor: str, text: str, kind: str = "", transform: str = "") -> str:
    attributes = f' class="{kind}"' * bool(kind) + f' transform="{transform}"' * bool(transform)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attributes}>{escape(text)}</text>'


def _mark(layer: Layer, columns: dict[str, np.ndarray], x: Scale, y: Scale) -> str:
    """The marks of a layer."""
    x_at = {name: x.at(values) for name, values in columns.items() if name[0] == "x"}
    y_at = {name: y.at(values) for name, values in columns.items() if name[0] == "y"}
    if layer.mark == "points":
        circles = (f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2"/>' for a, b in zip(x_at["x"], y_at["y"], strict=True))
        return f'<g fill="{layer.colour}" fill-opacity=".45">{"".join(circles)}</g>'
    path = "".join(_path(layer.mark, x_at, y_at, max(y.start, y.end)))
    if layer.mark in LINES:
        return f'<path fill="none" stroke="{layer.colour}" {LINES[layer.mark]} d="{path}"/>'
    return f'<path fill="{layer.colour}" fill-opacity="{0.65 if layer.mark == "bars" else 0.22}" d="{path}"/>'


def _path(mark: str, x: dict[str, np.ndarray], y: dict[str, np.ndarray], down: float) -> Iterator[str]:
    """The data of a path, mark by mark."""
    if mark == "rule":
        yield from (f"M{at:.1f} 0V{down:.1f}" for at in x["x"])
    elif mark == "bars":
        for left, right, one, other in zip(x["x"], x["x2"], y["y"], y["y2"], strict=True):
            yield f"M{left:.1f} {other:.1f}V{one:.1f}H{right:.1f}V{other:.1f}Z"
    elif mark == "steps":
        for i, (at, height) in enumerate(zip(x["x"], y["y"], strict=True)):
            yield f"H{at:.1f}V{height:.1f}" if i else f"M{at:.1f} {height:.1f}"
    else:
        there = list(zip(x["x"], y["y"], strict=True))
        back = list(zip(x["x"], y["y2"], strict=True))[::-1] if mark == "band" else []
        yield "".join(f"{'L' if i else 'M'}{at:.1f} {height:.1f}" for i, (at, height) in enumerate(there + back))
        yield "Z" * bool(back)


def _values(layer: Layer, columns: dict[str, np.ndarray], titles: dict[str, str]) -> dict[str, Any]:
    """What a script shows of a layer: its numbers with the digits that tell them apart, and what they are called."""
    digits = {name: digits_of(columns[name[0]]) for name in columns}
    named = {
        name: short(title)
        for name, title in titles.items()
        if name in columns and (layer.mark, name) != ("bars", "y2")  # where a bar begins says nothing
    }
    rounded = {name: [float(f"{x:.{digits[name]}g}") for x in values] for name, values in columns.items()}
    return {"mark": layer.mark, "titles": named, "columns": rounded}
