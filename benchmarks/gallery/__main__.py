"""contourmc without tuning beside its peers, on every problem of the gallery: `python -m benchmarks.gallery`.

All methods have the same number of evaluations of the density, where a gradient counts as one more: a step of a chain,
with energy and gradient, counts two. Chains start in one mode. No peer is run with a guess:

    contourmc       `cm.sample(energy, init=…, steps=…)`, nothing chosen; the pilot is part of the steps
    SGLD            the best of four step sizes: contourmc's, and a quarter, a sixteenth and a 64th of it
    reSGLD          the best of the same steps × three ladders of temperatures: 1 and 5, 1 and 20, 1–2–4–8
    BlackJAX csgld  contourmc's partition; the best of the same steps × two learning rates; weighted by us
    NUTS            window adaptation
    tempered SMC    adaptive temperatures; HMC moves whose step and mass follow the particles

and with their documented defaults, and a uniform box around all modes as prior instead of a start:

    pocoMC, dynesty, nautilus, UltraNest, JAXNS

UltraNest and pocoMC end by their own rules, mostly before the budget is spent; the others go on until it is. The best
is the smallest error, against the truth, in a run of a tenth of the evaluations (all of them for csgld, which may turn
to NaN late) on a seed of its own; these are not counted. A report, not a test: it always exits with 0.

Every run is kept in cells.jsonl as soon as it is done, and a second call makes only those that are missing.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import page
from benchmarks.gallery import picture, report
from benchmarks.gallery.cells import Cells, Measurement
from benchmarks.gallery.measure import Seeds, Task, measure
from benchmarks.gallery.outcome import Budget
from benchmarks.gallery.peers import METHODS, missing_packages
from benchmarks.gallery.summary import Summaries, by_cell, evidence_miss
from benchmarks.options import choose
from contourmc.problems import gallery

CHAINS = 10
STEPS, QUICK_STEPS = "30000,100000,300000", "20000"


def main(
    quick: Annotated[bool, typer.Option("--quick", help="20,000 steps, 2 seeds and 1 of peers, unless given.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions of contourmc; 10 unless given.")] = None,
    peer_seeds: Annotated[int | None, typer.Option(min=1, help="Of every other method; 3 unless given.")] = None,
    evaluations: Annotated[
        str | None, typer.Option(help=f"Of energy and gradient, by each chain; one or more budgets. Usual: {STEPS}.")
    ] = None,
    problems: Annotated[str | None, typer.Option(help="Names, with commas between; all unless given.")] = None,
    methods: Annotated[str | None, typer.Option(help="Names, with commas between; all unless given.")] = None,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Make no run: only the report of those that are there.")
    ] = False,
    redo: Annotated[str | None, typer.Option(help="Methods whose runs of earlier calls do not count.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for cells.jsonl and the report.")] = Path("results/gallery"),
    report_page: Annotated[
        Path | None, typer.Option("--page", help="A Markdown page to fill; gallery.md in the folder unless given.")
    ] = None,
) -> None:
    """contourmc without tuning beside its peers, on every problem of the gallery."""
    console = Console()
    if not console.is_terminal:
        console.width = 120  # a pipe has none of its own
    budgets = _budgets(evaluations or (QUICK_STEPS if quick else STEPS))
    repetitions = Seeds(seeds or (2 if quick else 10), peer_seeds or (1 if quick else 3))
    chosen, names = choose("problems", problems, tuple(gallery())), choose("methods", methods, METHODS)
    cells = Cells(out / "cells.jsonl", without=choose("redo", redo or "", METHODS))
    runnable = () if only_report else _installed(names, console)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    tasks = [Task(gallery()[problem], budget, cells) for budget in budgets for problem in chosen]
    missing = sum(len(task.missing(name, repetitions.of(name))) for task in tasks for name in runnable)
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=missing)
        for task in tasks:
            progress.update(bar, description=task.problem.name)
            for run in measure(task, runnable, repetitions):
                last = f"{run.cell.problem} · {run.cell.method} · seed {run.cell.seed} done"
                progress.update(bar, advance=1, description=last)
                progress.console.print(_line(run), highlight=False, soft_wrap=True)
    _report(console, {budget: by_cell(_asked(cells, budget, chosen, names)) for budget in budgets}, out, report_page)


def _report(console: Console, found: dict[Budget, Summaries], out: Path, report_page: Path | None) -> None:
    for budget, summaries in found.items():
        console.print(f"{budget.chains} chains × {budget.steps:,} steps, {budget.evaluations:,} evaluations:")
        console.print(report.screen(summaries))
    target = report_page or out / "gallery.md"
    file = target.with_suffix(".png")
    left_out = picture.draw(found, file)
    if left_out:
        console.print(f"Not in all of the picture, for want of runs on some problems: {', '.join(left_out)}.")
    page.fill(target, {"picture": picture.shown(file), "tables": report.tables(found)})
    console.print(f"Every number: {out / 'cells.jsonl'}; tables: {target}; picture: {file}")


def _asked(cells: Cells, budget: Budget, problems: tuple[str, ...], methods: tuple[str, ...]) -> list[Measurement]:
    return [run for run in cells.of(budget) if run.cell.problem in problems and run.cell.method in methods]


def _installed(methods: tuple[str, ...], console: Console) -> tuple[str, ...]:
    """Those that can run here; the runs of others that are there already are still reported."""
    for method in methods:
        if missing_packages(method):
            packages = " and ".join(missing_packages(method))
            console.print(f"{method} is left out: {packages} not installed (the extra `bench`, or `bench-torch`).")
    return tuple(method for method in methods if not missing_packages(method))


def _budgets(given: str) -> list[Budget]:
    try:
        steps = sorted({int(number.replace("_", "")) for number in given.split(",")})
    except ValueError:
        steps = []
    if not steps or steps[0] < 1000:
        raise typer.BadParameter(f"{given!r}: give whole numbers from 1000 on", param_hint="--evaluations")
    return [Budget(number, CHAINS) for number in steps]


def _line(run: Measurement) -> str:
    what = f"{run.cell.problem:22} {run.cell.method:15} {run.cell.steps:>9,} seed {run.cell.seed}  "
    if run.error is None or run.evaluations is None:
        return f"{what}[red]diverged[/]: {run.message[:160]}"
    miss = evidence_miss(run)
    evidence = "" if miss is None else f"  log Z {miss:+.3f}"
    numbers = f"error {run.error:.3f}{evidence}  {run.evaluations:>11,.0f} evaluations  {run.seconds:6.1f} s"
    return f"{what}{numbers}  (compilation {run.compile_seconds:.1f} s)  {run.setting}"


if __name__ == "__main__":
    typer.run(main)
