"""Samplers of small networks, each at its best settings and at equal compute: `python -m benchmarks.networks`.

    M-SGD                momentum SGD, its learning rate falling along half a cosine; the last model alone
    deep ensemble        3, 5 or 10 such models from own starts
    SGHMC                a constant step size; 50 models of the last 60% of the run
    cyclical SGHMC       10 or 30 cycles; a model at the end of each but the first
    replica exchange     two SGHMC, the hotter at ten times the temperature; 50 models of the last 60%
    CSGHMC               contour SGHMC; 50 weighted models of the last 60%
    contourmc automatic  `cm.sample` with a learning rate, and nothing else chosen

All have the same number of gradient evaluations, shared by members and replicas, and the same network, prior and
batches. Each chooses from at most twelve settings. These are tried on training rows alone: of a split that is not
among those measured, a fifth of the training rows is held out, twice (once of Fashion-MNIST, which has many), and the
smallest mean NLL on it is the best; a setting that diverges is out. Then every method is run once on the test sets of
all seeds. Splits are random, so that rows of the search are test rows of some of the splits: the choice is the same for
all of them.

Two methods lean on the trials of SGHMC, to their advantage: the swaps of replica exchange on the spread of its
energies, and CSGHMC on its energies, for a partition, and on the temperature that it chose.

Every trial and run is kept in cells.jsonl as soon as it is done, and a second call makes only those that are missing.
A report, not a test: it always exits with 0.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import page
from benchmarks.networks import picture, report
from benchmarks.networks.cells import Cells, Measurement
from benchmarks.networks.data import DATA_SETS, MissingDataError, Sources
from benchmarks.networks.measure import Study, measure
from benchmarks.networks.methods import METHODS
from benchmarks.networks.summary import summarise
from benchmarks.options import choose
from contourmc.studies.datasets import DatasetError

QUICK_EPOCHS = 15


def main(
    sets: Annotated[str | None, typer.Option(help="Names of data sets, with commas between; all unless given.")] = None,
    methods: Annotated[str | None, typer.Option(help="Names, with commas between; all unless given.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Test sets, or starts; 10 unless given.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_EPOCHS} epochs, and 2 seeds unless given.")] = False,
    only_report: Annotated[
        bool, typer.Option("--only-report", help="Make no run: only the report of those that are there.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="The folder of the UCI sets; downloaded unless given.")] = None,
    fashion: Annotated[Path | None, typer.Option(help="The folder of Fashion-MNIST's idx files.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for cells.jsonl and the report.")] = Path("results/networks"),
    report_page: Annotated[
        Path | None, typer.Option("--page", help="A Markdown page to fill; networks.md in the folder unless given.")
    ] = None,
) -> None:
    """Samplers of small networks, each at its best settings and at equal compute."""
    console = Console()
    if not console.is_terminal:
        console.width = 200  # a pipe has none of its own
    cells, names = Cells(out / "cells.jsonl"), choose("methods", methods, METHODS)
    found: report.Summaries = {}
    epochs: dict[str, int] = {}
    for name in choose("sets", sets, DATA_SETS):
        one = DATA_SETS[name]
        epochs[name] = QUICK_EPOCHS if quick else one.epochs
        study = Study(one, cells, Sources(data, fashion), epochs[name], seeds or (2 if quick else 10))
        if not only_report:
            _measure(console, study, names)
        summaries = summarise(study, names)
        if summaries:
            found[name] = summaries
            console.print(*report.screen(name, summaries))
    if not found:
        console.print("There is nothing to report.")
        return
    target = report_page or out / "networks.md"
    file = target.with_suffix(".png")
    picture.draw(found, file)
    page.fill(target, {"networks picture": picture.shown(file), "networks tables": report.tables(found, epochs)})
    console.print(f"Every number: {out / 'cells.jsonl'}; tables: {target}; picture: {file}")


def _measure(console: Console, study: Study, methods: tuple[str, ...]) -> None:
    try:
        for run in measure(study, methods):
            console.print(_line(run), highlight=False, soft_wrap=True)
    except (MissingDataError, DatasetError) as error:
        console.print(f"{study.data.name} is left out: {error}.", soft_wrap=True)


def _line(run: Measurement) -> str:
    cell = run.cell
    what = f"{cell.data:9} {cell.method:17} {cell.part:6} {cell.seed}  "
    if run.message:
        return f"{what}[red]diverged[/]: {run.message[:120]}  {cell.setting}"
    return f"{what}NLL {run.nll:8.4f}  {run.seconds:5.2f} s  {cell.setting}"


if __name__ == "__main__":
    typer.run(main)
