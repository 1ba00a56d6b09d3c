"""What checkpoints cost: `python -m benchmarks.checkpoints`, or `make bench-checkpoints`.

A report, not a test: it always exits with 0. Runs with and without a folder take turns, a piece at a time. Times
on the clock and of the processor are compared: a machine that is busy with something else changes the first.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Annotated

import jax.numpy as jnp
import typer
from rich.console import Console
from rich.table import Table

import contourmc as cm
from contourmc.checkpoints.keeper import FolderKeeper

CHAINS, DIMENSION, THIN = 10, 10, 1000
PIECES = 20
DRAWS = 1_000_000  # of each chain, to which the memory is extrapolated

# Peak memory, in MiB, of a run of so many steps in a process of its own, with a folder.
MEMORY = """
import resource, sys
import benchmarks.checkpoints as here
run = here.begin(int(sys.argv[1]), sys.argv[2], thin=4)
with run:
    run.advance()
    run.samples().mean()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def wells(x: jnp.ndarray) -> jnp.ndarray:
    return 4 * jnp.sum((x**2 - 1) ** 2)


def begin(steps: int, folder: str | Path | None, thin: int = THIN) -> cm.Run:
    kernel = cm.csgld(0.002, partition=cm.Partition(low=5, width=1, bins=60))
    return cm.start(
        wells, init=jnp.ones(DIMENSION), steps=steps, kernel=kernel, chains=CHAINS, thin=thin, checkpoint=folder,
    )  # fmt: skip


def overhead(seconds: float, folder: Path) -> tuple[float, float, float, float]:
    """The time on the clock of a run with a folder over that of one without; the same of the processor; the share of
    its time on the clock for which the run waited for checkpoints; and that time.
    """
    waited, write = [], FolderKeeper._save

    def timed(self: FolderKeeper, run: cm.Run, *, wait: bool, probed: bool = True) -> None:
        began = time.perf_counter()
        write(self, run, wait=wait, probed=probed)
        waited.append(time.perf_counter() - began)

    FolderKeeper._save = timed
    probe = begin(10**9, None)
    probe.advance(200_000)
    began = time.perf_counter()
    probe.advance(1_000_000)
    piece = int(1_000_000 * seconds / PIECES / (time.perf_counter() - began))
    plain, kept = begin(10**9, None), begin(10**9, folder / "overhead")
    used, clock = {"plain": 0.0, "kept": 0.0}, {"plain": 0.0, "kept": 0.0}
    for number in range(PIECES + 1):
        for name, run in (("plain", plain), ("kept", kept)):
            began, before = time.perf_counter(), time.process_time()
            run.advance(piece)
            if number == PIECES:
                run.close()
            if number:  # the first piece compiles
                used[name] += time.process_time() - before
                clock[name] += time.perf_counter() - began
    FolderKeeper._save = write
    share = sum(waited) / clock["kept"]
    return clock["kept"] / clock["plain"], used["kept"] / used["plain"], share, clock["kept"]


def resuming(folder: Path) -> tuple[float, float]:
    """Seconds until a run of a folder is ready for its next step, and until a new one is; both compiled before."""
    with begin(2_000_000, folder / "resuming") as run:
        run.advance(1_500_000)
    begin(2_000_000, None).close()
    found = []
    for place in (folder / "resuming", None):
        times = []
        for _ in range(5):
            began = time.perf_counter()
            run = begin(2_000_000, place)
            times.append(time.perf_counter() - began)
            run.close()
        found.append(median(times))
    return found[0], found[1]


def memory(folder: Path) -> tuple[list[int], list[float]]:
    """Draws of each chain, and the peak memory of runs with so many in MiB."""
    steps = [4 * 10_000, 4 * 100_000, 4 * 200_000]
    peaks = []
    for count in steps:
        command = [sys.executable, "-c", MEMORY, str(count), str(folder / f"memory-{count}")]
        peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return [int(0.9 * count / 4) for count in steps], peaks


def main(
    seconds: Annotated[float, typer.Option(help="Length of each of the two runs that are compared.")] = 60.0,
) -> None:
    """Measure, and print the table."""
    table = Table("what", "found", "limit", title="What checkpoints cost")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clock, used, share, took = overhead(seconds, folder)
        table.add_row(f"time of a run of {took:.0f} s, over one without checkpoints", f"{clock:.3f}", "1.02")
        table.add_row("the same, of the processor", f"{used:.3f}", "1.02")
        table.add_row("share of the time for which it waited for checkpoints", f"{share:.3f}", "0.02")
        resumed, new = resuming(folder)
        table.add_row("resuming, beyond a new run, s", f"{resumed - new:.2f}", "1")
        draws, peaks = memory(folder)
        for count, peak in zip(draws, peaks, strict=True):
            table.add_row(f"peak memory, {CHAINS} chains × {count:,} draws, MiB", f"{peak:.0f}", "")
        growth = (peaks[-1] - peaks[-2]) / (draws[-1] - draws[-2])
        at_end = peaks[-1] + growth * (DRAWS - draws[-1])
        table.add_row(f"the same at {DRAWS:,} draws, extrapolated, MiB", f"{at_end:.0f}", "1024")
    Console(width=110).print(table)


if __name__ == "__main__":
    typer.run(main)
