"""Every kind of energy on both paths of a CPU: `python -m benchmarks.energies`, some minutes.

On a CPU the steps of a run are compiled as a single kernel where it can be made, else as a loop over vectors. Which
path a kind takes depends on the version of JAX; its draws and energies must not, and the energies must be those of the
function at the draws. Exits with 1 if something raises or differs. Where a kind takes the path of vectors anyway, there
is nothing to compile for the second run.
"""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import contourmc as cm
from benchmarks.energy_kinds import KINDS, Kind

SINGLE, VECTOR, REFUSED = "single kernel", "vector", "refused: vector"


def sampled(kind: Kind, *, vector: bool = False) -> tuple[cm.Samples, str]:
    """A few steps, and the path that they took: the one that the run chooses, or chains as a vector."""
    choice = {"CONTOURMC_FUSE": "0" if vector else "1"}
    with patch.dict(os.environ, choice), precision(kind):
        run: Any = cm.start(
            kind.energy, init=kind.init, steps=60, kernel=cm.sgld(kind.step_size), chains=2, burn_in=0, thin=10
        )
        chosen = run.plan.build.fuse
        run.advance()
        return run.samples(), SINGLE if run.plan.build.fuse else REFUSED if chosen else VECTOR


def difference(one: cm.Samples, other: cm.Samples) -> float:
    """The largest difference of two arrays of draws or energies, relative to their largest number."""
    pairs = zip(*(jax.tree.leaves((samples.draws, samples.energies)) for samples in (one, other)), strict=True)
    return float(np.max([relative(a, b) for a, b in pairs]))


def energy_error(kind: Kind, samples: cm.Samples) -> float:
    """The largest difference of the energies of a run from the function at its draws, relative to the largest."""
    with precision(kind):
        return relative(samples.energies, jax.jit(jax.vmap(jax.vmap(kind.energy)))(samples.draws))


def relative(a: Any, b: Any) -> float:
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


def precision(kind: Kind) -> AbstractContextManager[Any]:
    return jax.enable_x64(True) if kind.x64 else nullcontext()


def main() -> None:
    """Print a row for each kind, and a summary."""
    console = Console(width=110)
    table = Table("energy", "path", title=f"Kinds of energy on JAX {jax.__version__}")
    for heading in ("compile, s", "as a vector, s", "difference", "verdict"):
        table.add_column(heading, justify="right")
    paths, raised, differ = [], 0, 0
    for name, kind in KINDS.items():
        console.print(name, style="dim")
        try:
            (chosen, path), (vector, _) = sampled(kind), sampled(kind, vector=True)
            apart = np.max([difference(chosen, vector), energy_error(kind, chosen)])
        except Exception as error:
            raised += 1
            table.add_row(name, "", "", "", "", f"[red]{type(error).__name__}[/]")
            console.print_exception(max_frames=4)
            continue
        paths.append(path)
        equal = apart <= kind.tolerance
        differ += not equal
        seconds = (f"{samples.compile_seconds:.2f}" for samples in (chosen, vector))
        table.add_row(name, path, *seconds, f"{apart:.1e}", "[green]equal[/]" if equal else "[red]differ[/]")
    console.print(table)
    results = "results equal" if not differ else f"{differ} differ"
    counts = ", ".join(f"{paths.count(path)} {path}" for path in (SINGLE, VECTOR, REFUSED))
    console.print(f"{len(KINDS)} kinds ({counts}): {raised} raise, {results}")
    sys.exit(1 if raised or differ else 0)


if __name__ == "__main__":
    main()
