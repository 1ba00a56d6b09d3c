"""Fair timing: contenders take turns, so that the noise of the machine hits all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Contender:
    """run: makes `steps` steps and waits for the result.  steps: how many it makes."""

    run: Callable[[], Any]
    steps: int


@dataclass(frozen=True)
class Timing:
    """first_call: seconds of the first call, with compilation.  repeats: µs per step of each later call."""

    first_call: float
    repeats: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.repeats)

    @property
    def spread(self) -> float:
        """The slowest repeat over the fastest: how noisy the machine was."""
        return max(self.repeats) / min(self.repeats)


def measure(contenders: Mapping[str, Contender], repeats: int) -> dict[str, Timing]:
    """Time every contender: one call to compile, then `repeats` rounds in which each runs once."""
    first_calls = {name: _seconds(contender) for name, contender in contenders.items()}
    micros: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            micros[name].append(1e6 * _seconds(contender) / contender.steps)
    return {name: Timing(first_calls[name], micros[name]) for name in contenders}


def _seconds(contender: Contender) -> float:
    began = time.perf_counter()
    contender.run()
    return time.perf_counter() - began
