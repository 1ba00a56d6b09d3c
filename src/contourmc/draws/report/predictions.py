"""What the model average of a network predicts, and how reliable that is."""

from dataclasses import replace
from typing import Any

from contourmc.draws.exhibits.chart import Chart
from contourmc.draws.exhibits.table import Table
from contourmc.draws.report.section import Section
from contourmc.draws.stored import Stored
from contourmc.draws.weighted import WeightedDraws

AVERAGES = 4  # shown at most, if each chain has its own
LONGEST = 500  # characters of an average of the user's own class


def predictions_section(samples: WeightedDraws) -> Section | None:
    """The figures and charts of the model average; nothing for a run without one."""
    if samples.average is None:
        return None
    averages = samples.average if isinstance(samples.average, list) else [samples.average]
    tables, charts, notes = [], [], []
    for i, average in enumerate(averages[:AVERAGES]):
        if not isinstance(average, Stored):
            notes.append(repr(average)[:LONGEST])
            continue
        for exhibit in average.exhibits():
            one = _of_chain(exhibit, i) if len(averages) > 1 else exhibit
            (tables if isinstance(one, Table) else charts).append(one)
    text = ["The model average over the kept draws, on its test set."]
    if len(averages) > AVERAGES:
        text.append(f"Each chain has its own; the first {AVERAGES} of {len(averages)} are shown.")
    return Section("predictions", "Predictions", [" ".join(text)], tables, charts, notes)


def _of_chain(exhibit: Any, chain: int) -> Table | Chart:
    return replace(exhibit, title=f"{exhibit.title}, chain {chain}")
