"""Runs of every kind, killed at random and resumed, beside runs that were left alone: `make torture`.

Each process writes checkpoints all the time and is killed (SIGKILL) at a random time; the next one goes on. When the
run has reached its end, everything that it computed must be the same as without a kill, bit for bit.
"""

import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.torture.killing import tortured
from benchmarks.torture.kinds import KINDS


def main(
    kills: Annotated[int, typer.Option(min=1, help="How many processes are killed, over all kinds of run.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the times at which they are killed.")] = 0,
) -> None:
    """Kill runs at random, resume them, and compare the results with those of runs that were left alone."""
    console, random = Console(), np.random.default_rng(seed)
    whole = {kind: tortured(kind, None, 0, random).digest for kind in KINDS}
    done, ends, wrong = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    while sum(done.values()) < kills:
        kind = min(done, key=lambda name: done[name])
        with tempfile.TemporaryDirectory() as folder:
            trial = tortured(kind, Path(folder) / "run", min(5, kills - sum(done.values())), random)
        same = trial.digest == whole[kind]
        done[kind] += trial.kills
        ends[kind] += 1
        wrong[kind] += not same
        console.print(f"{kind}: {trial.kills} kills, {'the same' if same else '[red]NOT the same[/]'}")
    table = Table("kind", "kills", "runs to the end", "bit-identical")
    for kind in KINDS:
        table.add_row(kind, f"{done[kind]}", f"{ends[kind]}", f"{ends[kind] - wrong[kind]}")
    all_ends, all_wrong = sum(ends.values()), sum(wrong.values())
    table.add_row("all", f"{sum(done.values())}", f"{all_ends}", f"{all_ends - all_wrong}")
    console.print(table)
    raise typer.Exit(1 if all_wrong else 0)


if __name__ == "__main__":
    typer.run(main)
