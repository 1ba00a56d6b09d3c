"""The command line: `contourmc --help`."""

from pathlib import Path
from typing import Annotated

import typer

from contourmc import __version__
from contourmc.cli import runs
from contourmc.cli.doctor import doctor
from contourmc.cli.interruption import STATUS, end_at_once, end_at_second_interrupt, threads_remain
from contourmc.cli.output import (
    console,
    output_folder,
    replace_what_cannot_be_shown,
    tell_interrupted,
    tell_written,
)
from contourmc.cli.reproduce import app as reproduce
from contourmc.engine.together import heeding_interrupts

app = typer.Typer(
    help="Sample distributions with many modes by contour stochastic-gradient MCMC.",
    no_args_is_help=True,
    add_completion=False,
)
app.add_typer(reproduce, name="reproduce")
app.command()(runs.sample)
app.command()(runs.resume)
app.command()(runs.show)
app.command()(doctor)


def _version(asked: bool | None) -> None:
    if asked:
        console.print(f"contourmc {__version__}")
        raise typer.Exit


@app.callback()
def main_options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = None,
) -> None:
    """Options before any command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for demo.png and results.json.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1000, help="Steps of each chain.")] = 1_000_000,
    chains: Annotated[int, typer.Option(min=2, help="Independent chains.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the results of an earlier run.")] = False,
) -> None:
    """SGLD and CSGLD side by side on the paper's mixture of two Gaussians: a table, a picture, a file.

    SGLD stays in the mode that it first falls into; CSGLD crosses hundreds of times and gets the mean right.
    """
    from contourmc.studies.demo import run_demo

    with output_folder(out, "results.json", force) as folder:
        run_demo(folder, steps, chains, seed, console)
        tell_written([folder / "demo.png", folder / "results.json"])


def main() -> None:
    """The entry point of the `contourmc` command."""
    replace_what_cannot_be_shown()
    end_at_second_interrupt()
    with heeding_interrupts():
        try:
            app()
        except SystemExit as ended:
            if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):
                tell_interrupted("nothing was written")
            if ended.code == STATUS or threads_remain():
                end_at_once(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
            raise
