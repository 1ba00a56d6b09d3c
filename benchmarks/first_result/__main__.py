"""From the start of a process to a printed mean, on the README's energy: `python -m benchmarks.first_result`.

Every method runs in new processes: contourmc as the README's first lines are, its peers as in the files beside this
one, with their documented defaults. All start in the lighter mode, or around it; dynesty has a box that holds both. The
effort of a method is 1, 4, 16 or 64 times its first one: the smallest at which the mean of three seeds is right to 0.2
each (the standard deviation of the energy's law is 5, so that this needs some 600 independent draws), within a minute.
Then seed 0 is timed: `cold` with empty compilation caches, `warm` with those that a process before it has filled; the
medians of several rounds, in which the methods take turns. A report, not a test: it always exits with 0.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
NEEDED = {"emcee": "emcee", "dynesty": "dynesty", "nuts": "blackjax", "tempered": "blackjax"}
NAMES = {"emcee": "emcee", "dynesty": "dynesty", "nuts": "NUTS (BlackJAX)", "tempered": "tempered SMC (BlackJAX)"}
OURS = "contourmc"
EFFORTS = (1, 4, 16, 64)
ACCURACY = 0.2
MOST_SECONDS = 60.0


@dataclass(frozen=True)
class Process:
    """A finished process: how long it took, and the mean and number of evaluations that it printed."""

    seconds: float
    mean: float
    evaluations: int


def run(method: str, seed: int, effort: int, cache: Path) -> Process:
    """One process from start to end, with this folder for compiled programs."""
    environment = os.environ | {
        "CONTOURMC_CACHE": str(cache), "JAX_COMPILATION_CACHE_DIR": "" if method == OURS else str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1.0" if method == OURS else "0.1",
    }  # fmt: skip
    command = ["-c", readme_lines(seed, effort)] if method == OURS else [str(HERE / f"{method}_lines.py")]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command, str(seed), str(effort)], env=environment, capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - began
    mean, *_, evaluations = done.stdout.splitlines()[0].split()
    return Process(seconds, float(mean), 200_000 * 8 * effort if method == OURS else int(evaluations))


def readme_lines(seed: int, effort: int) -> str:
    """The first lines of Python in the README, with a seed and more steps."""
    code = re.search(r"```python\n(.*?)```", (HERE.parents[1] / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    return code[1].replace("steps=200_000", f"steps={200_000 * effort}, seed={seed}")


def enough(method: str, cache: Path) -> tuple[int, float, Process]:
    """The smallest effort that is accurate, the largest error of three seeds at that effort, and its first process."""
    effort, worst, first = 0, float("inf"), None
    for effort in EFFORTS:
        processes = [run(method, seed, effort, cache) for seed in range(3)]
        worst, first = max(abs(process.mean) for process in processes), processes[0]
        if worst <= ACCURACY or first.seconds > MOST_SECONDS / 4:
            break
    assert first is not None
    return effort, worst, first


def main(rounds: Annotated[int, typer.Option(min=1, help="How often each method is timed.")] = 3) -> None:
    """Seconds from the start of a process to a printed mean, by contourmc and its peers."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    peers = [name for name in NAMES if find_spec(NEEDED[name]) is not None]
    if len(peers) < len(NAMES):
        console.print("Some peers are not installed (the extra `bench`), and are left out.")
    with tempfile.TemporaryDirectory() as folder, console.status("") as status:
        caches = {method: Path(folder) / method for method in (OURS, *peers)}
        found, times = {}, {method: ([], []) for method in caches}
        for method in caches:
            status.update(f"how much effort {method} needs")
            found[method] = enough(method, caches[method])
        for number in range(rounds):
            for method, (cold, warm) in times.items():
                status.update(f"timing {method}, round {number + 1} of {rounds}")
                effort = found[method][0]
                with tempfile.TemporaryDirectory() as empty:
                    cold.append(run(method, 0, effort, Path(empty)).seconds)
                run(method, 0, effort, caches[method])
                warm.append(run(method, 0, effort, caches[method]).seconds)
    table = Table("method", "evaluations", "worst error", "cold, s", "warm, s", "cold / ours", "warm / ours")
    ours = [statistics.median(seconds) for seconds in times[OURS]]
    for method, seconds in times.items():
        _, worst, process = found[method]
        middle = [statistics.median(values) for values in seconds]
        error = f"{worst:.3f}" if worst <= ACCURACY else f"[red]{worst:.2f}: not reached[/]"
        ratios = [f"{value / own:.2f}" for value, own in zip(middle, ours, strict=True)]
        table.add_row(
            NAMES.get(method, method), f"{process.evaluations:,}", error, *(f"{value:.1f}" for value in middle), *ratios
        )
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
