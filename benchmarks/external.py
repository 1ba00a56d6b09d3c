"""What it costs to evaluate an energy outside of JAX: `python -m benchmarks.external`, a minute.

The same run by the same energy in JAX, in threads and in processes, a cheap one and one that takes milliseconds; all
contenders take turns. The energy is that of a normal distribution; the expensive one also keeps its core busy.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import contourmc as cm
from benchmarks.timing import Contender, measure
from contourmc._core.cores import available_cores

REPEATS = 5
DIMENSIONS = 10


def in_jax(x: Array) -> Array:
    return jnp.sum(x**2) / 2


def outside(milliseconds: float) -> Callable[[Any], Any]:
    """The energy in NumPy, after so many milliseconds of work."""

    def value_and_gradient(x: Any) -> Any:
        until = time.perf_counter() + milliseconds / 1000
        while time.perf_counter() < until:
            pass
        return np.sum(x**2) / 2, x

    return value_and_gradient


def contender(target: Any, chains: int, steps: int) -> Contender:
    def run() -> None:
        started.advance(steps)

    total = steps * (REPEATS + 1)
    started = cm.start(target, init=np.zeros(DIMENSIONS), steps=total, kernel=cm.sgld(0.1), chains=chains)
    return Contender(run, steps)


def show(title: str, contenders: Mapping[str, Contender]) -> None:
    timings = measure(contenders, REPEATS)
    print(f"\n{title}")
    first = next(iter(timings.values())).median
    for name, timing in timings.items():
        median = timing.median
        print(f"  {name:24}{median:12,.1f} µs a step {median / first:10,.2f} × the first   spread {timing.spread:.2f}")


def main() -> None:
    print(f"jax {jax.__version__}, {jax.default_backend()}, {available_cores()} cores, {DIMENSIONS} dimensions")
    for chains in (1, 4, 32):
        cheap = {"in JAX": in_jax, "threads": cm.external(outside(0.0), workers="threads")}
        cheap["1 process"] = cm.external(outside(0.0), workers=1)
        cheap["2 processes"] = cm.external(outside(0.0), workers=2)
        show(
            f"a cheap energy, {chains} chains",
            {name: contender(target, chains, 2000) for name, target in cheap.items()},
        )
    slow = {f"{workers} processes": cm.external(outside(5.0), workers=workers) for workers in (1, 2, 4)}
    show("5 ms of work, 4 chains", {name: contender(target, 4, 30) for name, target in slow.items()})


if __name__ == "__main__":
    main()
