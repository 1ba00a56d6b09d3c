"""contourmc without tuning beside its peers, on every problem of the gallery: `python -m benchmarks.gallery`.

All methods have the same number of gradient evaluations and start all chains in the same mode (tempered SMC cannot:
see `tempered`). No peer is run with a guess:

    contourmc       `cm.sample(energy, init=…, steps=…)`, nothing chosen; the pilot is part of the steps
    SGLD            the best of four step sizes: contourmc's, and a quarter, a sixteenth and a 64th of it
    reSGLD          the best of the same steps × three ladders of temperatures: 1 and 5, 1 and 20, 1–2–4–8
    BlackJAX csgld  contourmc's partition; the best of the same steps × two learning rates; weighted by us
    NUTS            window adaptation
    tempered SMC    adaptive temperatures; HMC moves whose step and mass follow the particles

The best is the smallest error, against the truth, in a run of a tenth of the evaluations (all of them for csgld, which
may turn to NaN late) on a seed of its own; these are not counted. A report, not a test: it always exits with 0. Files
are written after every problem.
"""

import platform
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import jax
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.gallery.measure import METHODS, Measurement, measure
from benchmarks.gallery.outcome import Budget
from benchmarks.gallery.report import by_cell, error_table, write
from contourmc.problems import gallery

CHAINS = 10
NEED_BLACKJAX = ("BlackJAX csgld", "NUTS", "tempered SMC")


def main(
    quick: Annotated[bool, typer.Option("--quick", help="20,000 evaluations and 2 seeds, unless given.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions; 10 unless given.")] = None,
    evaluations: Annotated[int | None, typer.Option(min=1000, help="Of each chain; a million unless given.")] = None,
    problems: Annotated[str | None, typer.Option(help="Names, with commas between; all unless given.")] = None,
    methods: Annotated[str | None, typer.Option(help="Names, with commas between; all unless given.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for results.json and gallery.md.")] = Path("results/gallery"),
) -> None:
    """contourmc without tuning beside its peers, on every problem of the gallery."""
    console = Console()
    if not console.is_terminal:
        console.width = 120  # a pipe has none of its own
    budget = Budget(evaluations or (20_000 if quick else 1_000_000), CHAINS)
    seeds = seeds or (2 if quick else 10)
    chosen, names = _choose("problems", problems, tuple(gallery())), _choose("methods", methods, METHODS)
    if find_spec("blackjax") is None:
        names = tuple(name for name in names if name not in NEED_BLACKJAX)
        console.print("BlackJAX is not installed (the extra `bench`): its methods are left out.")
    settings = {
        "evaluations": budget.evaluations, "chains": CHAINS, "seeds": seeds,
        "machine": f"{platform.machine()}, JAX {jax.__version__} on {jax.default_backend()}",
    }  # fmt: skip

    found: list[Measurement] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(chosen) * len(names) * seeds)
        for problem in chosen:
            progress.update(task, description=problem)
            for run in measure(gallery()[problem], names, budget, seeds):
                found.append(run)
                progress.update(task, advance=1, description=f"{problem} · {run.method} · seed {run.seed} done")
                progress.console.print(_line(run), highlight=False, soft_wrap=True)
            write(out, found, settings)
    console.print(error_table(by_cell(found)))
    console.print(f"Every number: {out / 'results.json'}; as a table: {out / 'gallery.md'}")


def _choose(option: str, given: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    names = known if given is None else tuple(name.strip() for name in given.split(","))
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of: {', '.join(known)}", param_hint=f"--{option}")
    return tuple(name for name in known if name in names)


def _line(run: Measurement) -> str:
    what = f"{run.problem:22} {run.method:15} seed {run.seed}  "
    if run.error is None or run.evaluations is None:
        return f"{what}[red]diverged[/]: {run.message[:160]}"
    numbers = f"error {run.error:.3f}  {run.evaluations:>9,.0f} evaluations  {run.seconds:6.1f} s"
    return f"{what}{numbers}  (compilation {run.compile_seconds:.1f} s)  {run.setting}"


if __name__ == "__main__":
    typer.run(main)
