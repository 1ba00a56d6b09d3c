"""Progress on standard error: the stage of a run, how far it has come, and a note worth watching."""

import sys
import time
from typing import TYPE_CHECKING, Any

from contourmc._core.processes import is_first

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

COMPILING = "compiling …"  # the note while a run waits for the compiler


LINE_SECONDS = 60.0  # between two lines where there is no terminal


class Progress:
    """Steps done, time elapsed and remaining, steps per second of all chains, and a note.

    It is a bar if standard error is a terminal, or if `show` is true. Elsewhere, as in the log of a cluster, it is a
    line a minute, the first after a minute, unless `show` is false. Of several processes the first shows it. Without
    standard error, as in a daemon, nothing is shown.
    """

    def __init__(self, steps: int, chains: int, show: bool | None):
        self._steps, self._chains = steps, chains
        stream = sys.stderr
        terminal = None if stream is None or stream.closed else stream.isatty()
        self._show = is_first() and terminal is not None and (terminal if show is None else show)
        self._lines = is_first() and terminal is False and show is None
        self._bar: RichProgress | None = None
        self._begun: tuple[float, int] | None = None  # when the first steps were done, and how many
        self._next = time.monotonic() + LINE_SECONDS

    def __enter__(self) -> "Progress":
        if self._show:
            from rich.console import Console
            from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                TextColumn("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn(),
                TimeElapsedColumn(), TextColumn("<"), TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"), console=Console(stderr=True),
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task("sampling", total=self._steps, note=COMPILING)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, stage: str, step: int, note: str = "") -> None:
        """Move the bar to a step."""
        if self._lines:
            self._update_lines(stage, step, note)
        if self._bar is None:
            return
        speed = f"{_with_unit((self._bar.tasks[self._task].speed or 0) * self._chains)} steps/s"
        note = note if note == COMPILING else f"{speed} · {note}" if note else speed
        self._bar.update(self._task, description=stage, completed=step, note=note)

    def _update_lines(self, stage: str, step: int, note: str) -> None:
        now = time.monotonic()
        if self._begun is None and note != COMPILING:
            self._begun = now, step
        if now < self._next:
            return
        self._next = now + LINE_SECONDS
        parts = [f"{stage}: {step:,} of {self._steps:,} steps, {step / self._steps:.0%}", note]
        began, before = self._begun or (now, step)
        if step > before:
            speed = (step - before) / (now - began)
            left = (self._steps - step) / speed
            parts[1:1] = [f"{left / 60:.0f} min left", f"{_with_unit(speed * self._chains)} steps/s"]
        print(" · ".join(part for part in parts if part), file=sys.stderr, flush=True)


def _with_unit(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
