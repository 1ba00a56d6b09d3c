"""The commands of `contourmc reproduce`, one for each study; a study is imported when it runs."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from contourmc.cli.output import console, output_folder, stop, stop_interrupted, tell_written
from contourmc.studies.base import Options, Study
from contourmc.studies.catalogue import SIMULATIONS, UCI

RECORD, PARTS = "results.json", "parts"  # in the folder of a study; PARTS has what one that was interrupted finished

app = typer.Typer(
    help="Reproduce an experiment of the paper: its figures, every number, and a report on each of the paper's claims.",
    no_args_is_help=True,
)

Out = Annotated[Path | None, typer.Option(help="The folder for the files; by default results/NAME.")]
Steps = Annotated[int | None, typer.Option(min=100, help="Steps of each chain, instead of the paper's.")]
Seeds = Annotated[int | None, typer.Option(min=1, max=1000, help="Independent repetitions.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Passes through the data, instead of the paper's.")]
Data = Annotated[Path | None, typer.Option(help="A folder that holds the data; by default they are downloaded.")]
Quick = Annotated[bool, typer.Option("--quick", help="The same code in about a minute.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the results of an earlier run.")]


def _list(asked: bool | None) -> None:
    if asked:
        for command in app.registered_commands:
            summary = command.help or (command.callback.__doc__ or "").splitlines()[0]
            console.print(Text.assemble((f"{command.name:18} ", "bold"), summary))
        raise typer.Exit


@app.callback()
def main_options(
    list_: Annotated[
        bool | None, typer.Option("--list", callback=_list, is_eager=True, help="List the studies, one line each.")
    ] = None,
) -> None:
    """Options before the name of a study."""


def reproduce(study: Study, options: Options, out: Path | None, force: bool) -> None:
    """Run a study, write its files and print its table."""
    import matplotlib

    from contourmc.studies.datasets import DatasetError
    from contourmc.studies.kept_parts import KeptParts
    from contourmc.studies.report import COLUMNS, about, read_record, row, write_record, write_report

    matplotlib.use("Agg")
    place = out or Path("results") / study.name
    parts = KeptParts(place / PARTS)
    if force:
        parts.clear()
    options = replace(options, parts=place / PARTS)
    with output_folder(place, RECORD, force or (place / PARTS).exists()) as folder:
        began, record = time.perf_counter(), {}
        try:
            complete = study.measure(options, record)
        except DatasetError as error:
            stop(str(error))
        if not complete and not record:
            stop_interrupted("before the first result, so nothing was written")
        made = about(study, options, time.perf_counter() - began, interrupted=not complete)
        write_record({"about": made, **record}, folder / RECORD)
        if not complete:
            tell_written([folder / RECORD])
            stop_interrupted(f"no claim is judged; {RECORD} has what had been measured by then")
        record = read_record(folder / RECORD)  # claims and pictures are made from the file
        outcome = study.conclude(record)
        table = Table(*COLUMNS, title=study.title, title_justify="left", show_lines=True)
        for claim in outcome.claims:
            table.add_row(*row(claim, conclusive=options.conclusive))
        console.print(table)
        tell_written([folder / RECORD, *write_report(study, record, outcome, folder)])
        parts.clear()


def _simulation(study: Study) -> Callable[..., None]:
    def command(
        out: Out = None, steps: Steps = None, seeds: Seeds = None, quick: Quick = False, force: Force = False
    ) -> None:
        reproduce(study, study.options(steps, seeds, quick), out, force)

    return command


for _study in SIMULATIONS:
    app.command(_study.name, help=_study.summary)(_simulation(_study))


@app.command(UCI.name, help=UCI.summary)
def uci(
    out: Out = None,
    data: Data = None,
    epochs: Epochs = None,
    seeds: Seeds = None,
    quick: Quick = False,
    force: Force = False,
) -> None:
    """Table 1."""
    reproduce(UCI, UCI.options(epochs, seeds, quick, data), out, force)


@app.command("all")
def everything(
    out: Annotated[Path, typer.Option(help="The folder that gets one folder for each study.")] = Path("results"),
    data: Data = None,
    quick: Quick = False,
    force: Force = False,
) -> None:
    """Every study, one after the other; with --quick in a few minutes, Table 2 included.

    Without --quick, Table 2 is left out: its runs take a GPU four minutes each (`contourmc reproduce cifar`). A study
    whose data cannot be found is named, and left out.
    """
    from contourmc.cli.cifar import cifar as train
    from contourmc.studies.datasets import DatasetError, cifar10
    from contourmc.studies.datasets import uci as load_uci

    left_out = []
    suffix = "-quick" if quick else ""
    for study in (*SIMULATIONS, UCI):
        try:
            if study is UCI:
                load_uci("yacht", data)
        except DatasetError as error:
            left_out.append(f"{study.name}: {error}")
            continue
        console.rule(study.title)
        reproduce(study, study.options(quick=quick, data=data), out / f"{study.name}{suffix}", force)
    if quick:
        try:
            cifar10(data)
        except DatasetError as error:
            left_out.append(f"cifar: {error}")
        else:
            console.rule("Table 2")
            train(quick=True, data=data, out=out / "cifar10-quick", force=force)
    if left_out:
        stop("left out: " + "; ".join(left_out))


@app.command("page")
def page(
    records: Annotated[Path, typer.Option(help="The folder of the records.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/paper.md"),
) -> None:
    """Write the page "The paper, result by result" and its figures from the records of all studies."""
    import matplotlib

    from contourmc.studies.paper import write_page

    matplotlib.use("Agg")
    try:
        tell_written(write_page(records, out))
    except (OSError, ValueError) as error:
        stop(str(error))


class _Cifar(TyperCommand):
    """Stands in for the real command, whose options come from the study, until it is run."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        from contourmc.cli.cifar import cifar

        real = typer.Typer(add_completion=False)
        real.command("cifar")(cifar)
        return typer.main.get_command(real).make_context(info_name, args, parent, **extra)


@app.command("cifar", cls=_Cifar)
def cifar() -> None:
    """Table 2: ResNet-20 on CIFAR-10 and CIFAR-100 by M-SGD, SGHMC and CSGHMC, with and without annealing."""
