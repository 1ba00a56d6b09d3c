"""A progress bar that shows what is worth watching while a run goes on."""

import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from contourmc.engine import Draws
from contourmc.estimates import kish, normalise


class Progress:
    """Steps done, rate, time left, the range of current energies, negative multipliers, weight ESS.

    Shown on standard error, if that is a terminal or `show` is true.
    """

    def __init__(self, steps: int, chains: int, show: bool | None):
        self._steps, self._chains = steps, chains
        self._show = sys.stderr.isatty() if show is None else show
        self._bar: RichProgress | None = None
        self._negative = self._draws = 0

    def __enter__(self) -> "Progress":
        if self._show:
            self._bar = RichProgress(
                TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn(),
                TimeElapsedColumn(), TextColumn("<"), TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"), console=Console(stderr=True),
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task("sampling", total=self._steps, note="compiling …")
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def stage(self, name: str) -> None:
        """Say what is being done."""
        if self._bar is not None:
            self._bar.update(self._task, description=name)

    def update(self, step: int, draws: Draws) -> None:
        """Move the bar to a step, with the draws since the last update."""
        if self._bar is None:
            return
        task = self._bar.tasks[self._task]
        notes = [f"{_rate((task.speed or 0) * self._chains)} steps/s"]
        if draws.energy.size:
            self._negative += int(np.sum(draws.multiplier < 0))
            self._draws += draws.energy.size
            share = float(kish(normalise(np.ravel(draws.log_weight)))) / draws.log_weight.size
            notes += [
                f"energy {draws.energy.min():.4g} … {draws.energy.max():.4g}",
                f"uphill {self._negative / self._draws:.0%}",
                f"weight ESS {share:.0%}",
            ]
        self._bar.update(self._task, completed=step, note=" · ".join(notes))


def _rate(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
