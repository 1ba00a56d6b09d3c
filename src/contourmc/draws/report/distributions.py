"""Marginals of the leading coordinates, and their pairs."""

from itertools import combinations

import numpy as np

from contourmc.draws import estimates
from contourmc.draws.exhibits.chart import Axis, Chart, Layer
from contourmc.draws.exhibits.numbers import Measured, shown
from contourmc.draws.report.leading import leading
from contourmc.draws.report.section import Section
from contourmc.draws.weighted import WeightedDraws

MARGINALS = 6
PAIRED = 4  # coordinates, in six pairs
BINS = 60
POINTS = 600  # draws in a pair plot
TAIL = 0.0005  # the probability that lies beyond each end of an axis


def distribution_sections(samples: WeightedDraws) -> list[Section]:
    """Two sections of charts; nothing for a run without stored draws."""
    found = leading(samples, MARGINALS)
    if found is None or found.samples.draws is None:
        return []
    weights = found.samples.weights.ravel()
    draws = (np.asarray(column, float).ravel() for column in found.samples.positions)
    columns = dict(zip(found.names, draws, strict=True))
    finite = {name: column for name, column in columns.items() if np.all(np.isfinite(column))}
    named = [(name, column, _limits(column, weights)) for name, column in finite.items()]
    text = "Weighted densities of single coordinates."
    text += f" The first {len(columns)} of {found.total:,}." if found.total > len(columns) else ""
    without = ", ".join(name for name in columns if name not in finite)
    text += f" None of {without}: not all draws are finite." if without else ""
    sections = [Section("marginals", "Marginals", [text], charts=[_marginal(*one, weights) for one in named])]
    if len(named) > 1:
        chosen = estimates.systematic(weights, POINTS, np.random.default_rng(0))
        charts = [_pair(*one, *two, chosen) for one, two in combinations(named[:PAIRED], 2)]
        text = f"{POINTS:,} draws, resampled by weight from {weights.size:,}, in every pair of"
        text += f" the first {PAIRED} coordinates." if found.total > PAIRED else " coordinates."
        sections.append(Section("pairs", "Pairs", [text], charts=charts))
    return sections


def _limits(column: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The part of an axis that holds all but a little of the weight."""
    low, high = estimates.quantile(column, weights, np.array([TAIL, 1 - TAIL]))
    margin = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return float(low - margin), float(high + margin)


def _marginal(name: str, column: np.ndarray, limits: tuple[float, float], weights: np.ndarray) -> Chart:
    heights, edges = np.histogram(column, BINS, limits, weights=weights, density=True)
    low, middle, high = estimates.quantile(column, weights, np.array([0.05, 0.5, 0.95]))
    top = (edges[heights.argmax()] + edges[heights.argmax() + 1]) / 2
    low, middle, high, top = (shown(Measured(number, np.ptp(limits))) for number in (low, middle, high, top))
    caption = f"Weighted density of {name}: 90% lies between {low} and {high}, half below {middle}; it is highest near"
    caption += f" {top}."
    bars = {"x": edges[:-1], "x2": edges[1:], "y": heights, "y2": np.zeros(BINS)}
    layers = [Layer("bars", bars, "weighted draws")]
    return Chart(f"Marginal of {name}", caption, Axis(name, limits=limits), Axis("density", zero=True), layers)


def _pair(
    one: str, x: np.ndarray, x_limits: tuple[float, float], two: str, y: np.ndarray, y_limits: tuple[float, float],
    chosen: np.ndarray,
) -> Chart:  # fmt: skip
    x, y = x[chosen], y[chosen]
    known = np.ptp(x) > 0 and np.ptp(y) > 0
    correlation = f"their correlation is {np.corrcoef(x, y)[0, 1]:.2f}" if known else "one of them is constant"
    caption = f"{one} against {two}, {POINTS:,} equally weighted draws; {correlation}."
    axes = Axis(one, limits=x_limits), Axis(two, limits=y_limits)
    return Chart(f"{one} and {two}", caption, *axes, [Layer("points", {"x": x, "y": y}, "draws")])
