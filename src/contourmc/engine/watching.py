"""Who watches a run: a progress line, and functions that are called with its figures and may end it.

When they are called follows the clock, of several processes that of the first, which alone calls them. Nothing of it
changes the run, except that one of them may end it.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from contourmc._core.checks import require, require_number
from contourmc._core.processes import from_first
from contourmc._core.progress import COMPILING
from contourmc.engine.together import Report

# Called with the steps done and figures by name; False ends the run.
OnBlock = Callable[[int, dict[str, float]], Any]

AVERAGE_SECONDS = 5.0  # the least between two looks at the average
MOST_TIME = 0.02  # of a run, for looks at its average


@runtime_checkable
class Watched(Protocol):
    """What is watched of a run; see `Run`."""

    steps: int
    chains: int

    @property
    def step(self) -> int: ...

    @property
    def draws(self) -> int: ...

    def figures(self) -> dict[str, float]: ...

    def average_figures(self) -> dict[str, float]: ...


class Stopped(KeyboardInterrupt):
    """A function that watches a run has ended it."""


class Watcher:
    """What a run calls after every call of the compiled program.

    report: the progress line; None without one.
    on_block: the functions to call, one or several; None for none.
    every: the least seconds between two calls of them. After the last step they are always called.
    """

    def __init__(self, run: Watched, report: Report | None, on_block: OnBlock | Sequence[OnBlock] | None, every: float):
        functions = [] if on_block is None else [on_block] if callable(on_block) else list(on_block)
        fine = all(callable(function) for function in functions)
        require(
            fine, "on_block", on_block, "give a function of the step and a dictionary of figures, or a list of them"
        )
        require_number("block_every", every, "give seconds, such as 1.0", positive=False)
        self._run, self._report, self._functions, self._every = run, report, functions, every
        now = time.monotonic()
        self._called, self._step = now, run.step  # when the functions were last called, and after which step
        self._looked, self._draws, self._cost = now, 0, 0.0  # the last look at the average: when, draws, seconds
        self._figures: dict[str, float] = {}

    @property
    def needed(self) -> bool:
        """Whether anybody watches."""
        return self._report is not None or bool(self._functions)

    def after_segment(self, stage: str, step: int, note: str) -> None:
        if note == COMPILING:
            if self._report is not None:
                self._report(stage, step, note)
            return
        now, ended = time.monotonic(), self._run.step >= self._run.steps
        pause = max(AVERAGE_SECONDS, self._cost / MOST_TIME)
        called, looked = from_first(
            lambda: (ended or now - self._called >= self._every, ended or now - self._looked >= pause)
        )
        fresh = looked and self._look()
        if self._report is not None:
            self._report(stage, step, " · ".join(part for part in (note, _in_words(self._figures)) if part))
        if called and self._functions:
            self._call(step, now, self._figures if fresh else {})

    def _look(self) -> bool:
        """Look at the average; false if there are no new draws in it."""
        if self._run.draws == self._draws:
            return False
        began = time.monotonic()
        self._figures, self._draws = self._run.average_figures(), self._run.draws
        self._looked = time.monotonic()
        self._cost = self._looked - began
        return True

    def _call(self, step: int, now: float, of_average: dict[str, float]) -> None:
        figures = self._run.figures()
        if now > self._called:
            figures["steps_per_second"] = self._run.chains * (step - self._step) / (now - self._called)
        self._called, self._step = now, step
        given = figures | of_average

        def call() -> bool:
            answers = [function(step, dict(given)) for function in self._functions]
            return any(isinstance(answer, (bool, np.bool_)) and not answer for answer in answers)

        if from_first(call):
            raise Stopped


def _in_words(figures: dict[str, float]) -> str:
    """The figures of an average for the progress line: how often it is right, or its error, and its NLL."""
    shown = {name: figures[name] for name in ("accuracy", "rmse", "nll") if name in figures}
    return " · ".join(
        f"{'NLL' if name == 'nll' else name.replace('rmse', 'RMSE')} {x:.4g}" for name, x in shown.items()
    )
