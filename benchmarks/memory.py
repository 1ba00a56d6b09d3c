"""Peak memory of a long run: `python -m benchmarks.memory`.

Ten times the steps must not need ten times the memory: estimates are summed on the way, and only thinned
draws are kept. The short run goes first, because the peak of a process never falls.
"""

import resource
import sys

from rich.console import Console
from rich.table import Table

import contourmc as cm
from benchmarks.problem import MIXTURE, THIN, csgld

CHAINS = 10
LIMIT = 1024  # MiB


def main() -> None:
    """Run ten chains of 10⁶ and of 10⁷ steps, and print the peak resident memory after each."""
    table = Table(title=f"Peak resident memory, {CHAINS} chains, one draw kept in {THIN} steps")
    for heading in ("steps a chain", "seconds", "draws, MiB", "peak, MiB", "limit", "verdict"):
        table.add_column(heading, justify="right")
    table.add_row("imports only", "", "", f"{peak():.0f}", "", "")
    for steps in (1_000_000, 10_000_000):
        samples = cm.sample(MIXTURE, init=0.0, steps=steps, kernel=csgld(), chains=CHAINS, thin=THIN, progress=False)
        columns = (samples.draws, samples.energies, samples.log_weights, samples.multipliers)
        kept = sum(column.nbytes for column in columns) / 2**20
        verdict = "[green]met[/]" if peak() <= LIMIT else "[red]missed[/]"
        table.add_row(f"{steps:,}", f"{samples.seconds:.1f}", f"{kept:.1f}", f"{peak():.0f}", str(LIMIT), verdict)
    Console().print(table)


def peak() -> float:
    """The most memory that this process has held so far, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    main()
