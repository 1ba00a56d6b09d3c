"""What a user waits for: the first call of each method in a new process, compilation included.

    python -m benchmarks.gallery.first_call

The records of the gallery cannot say it. One process makes all of their runs, so that most runs of contourmc find
programs that an earlier seed has compiled, while most peers compile in every seed. Here each method on each problem has
a process of its own and an empty compilation cache. The clock starts after the imports and stops when the draws are
there. The budget is that of the gallery's tables, and a peer that has settings runs with those that the gallery has
chosen.

Methods that are not written in JAX (dynesty, nautilus, UltraNest, pocoMC) are left out unless they are named. They
compile the energy alone, in 0.1 to 0.3 seconds, and the gallery's records include that time in every run.

Run it on an idle machine. Every measurement is kept in first_calls.jsonl, and a second call makes those that are
missing.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.gallery import langevin
from benchmarks.gallery.cells import Cells
from benchmarks.gallery.measure import Task, chosen_before, machine
from benchmarks.gallery.outcome import Budget
from benchmarks.gallery.peers import AUTOMATIC, METHODS, PEERS, version_of
from benchmarks.kept_lines import KeptLines
from benchmarks.options import choose
from contourmc.problems import gallery

BUDGET = Budget(30_000, 10)
COMPILED = (AUTOMATIC, "SGLD", "reSGLD", "BlackJAX csgld", "NUTS", "tempered SMC", "JAXNS")


def first_call(problem: str, method: str, cells: Path) -> float:
    """The seconds of one call in this process, which must not have made another."""
    task = Task(gallery()[problem], BUDGET, Cells(cells))
    if method == AUTOMATIC:
        began = time.perf_counter()
        langevin.automatic(task.problem, BUDGET, seed=0)
        return time.perf_counter() - began
    peer, tuning, setting = PEERS[method], None, "tunes itself"
    if peer.settings is not None:
        tuning = next(iter(task.tunings().values()))
        setting = chosen_before(task, method, tuning)
        if setting is None:
            raise ValueError(f"{cells} has no run of {method} on {problem}: run python -m benchmarks.gallery first")
    began = time.perf_counter()
    peer.run(task.problem, setting, tuning, BUDGET, 0)
    return time.perf_counter() - began


def main(
    problems: Annotated[str | None, typer.Option(help="Names, with commas between; all unless given.")] = None,
    methods: Annotated[str, typer.Option(help="Names, with commas between.")] = ",".join(COMPILED),
    out: Annotated[Path, typer.Option(help="The folder of cells.jsonl and first_calls.jsonl.")] = Path(
        "results/gallery"
    ),
    one: Annotated[bool, typer.Option("--one", hidden=True)] = False,
) -> None:
    """The first call of each method in a new process, compilation included."""
    chosen, names = choose("problems", problems, tuple(gallery())), choose("methods", methods, METHODS)
    if one:
        print(json.dumps(first_call(chosen[0], names[0], out / "cells.jsonl")))
        return
    kept = KeptLines(out / "first_calls.jsonl")
    there = {(line["problem"], line["method"], line["version"]) for line in kept}
    # JAX's own variable would name a cache for the peers as well.
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    for problem in chosen:
        for method in names:
            if (problem, method, version_of(method)) in there:
                continue
            command = [sys.executable, "-m", "benchmarks.gallery.first_call", "--one", "--out", str(out)]
            done = subprocess.run(
                [*command, "--problems", problem, "--methods", method],
                env=environment | {"CONTOURMC_CACHE": "0"}, stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            seconds = json.loads(done.stdout.splitlines()[-1])
            kept.add(
                {"problem": problem, "method": method, "version": version_of(method), "machine": machine(),
                 "seconds": seconds}
            )  # fmt: skip
            print(f"{problem:22} {method:15} {seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    typer.run(main)
