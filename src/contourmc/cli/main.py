"""The command line: `contourmc --help`."""

from pathlib import Path
from typing import Annotated

import typer

from contourmc import __version__
from contourmc.cli.interruption import STATUS, end_at_once, end_at_second_interrupt
from contourmc.cli.loading import load_function
from contourmc.cli.output import (
    console,
    output_folder,
    replace_what_cannot_be_shown,
    stop,
    stop_interrupted,
    tell_written,
)
from contourmc.cli.reproduce import app as reproduce

app = typer.Typer(
    help="Sample distributions with many modes by contour stochastic-gradient MCMC.",
    no_args_is_help=True,
    add_completion=False,
)
app.add_typer(reproduce, name="reproduce")


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


@app.command()
def sample(
    target: Annotated[str, typer.Argument(help="FILE.py:NAME, the file and the name of the energy function in it.")],
    init: Annotated[str, typer.Option(help="Where the chains start: 0.0, or [0.0, 1.5], or a name in the file.")],
    steps: Annotated[int, typer.Option(min=1000, help="Steps of each chain, including the pilot's.")] = 100_000,
    chains: Annotated[int, typer.Option(min=1, help="How many chains to run.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The folder for the files; by default results/NAME.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the results of an earlier run.")] = False,
) -> None:
    """Sample your own energy function; the step size and the energy bins are found on the way.

    The function takes a position (a JAX array, or any pytree of them) and returns minus the log density, up to a
    constant. For example, if mine.py holds

        import jax.numpy as jnp

        def energy(x):
            return 8 * jnp.sum((x**2 - 1) ** 2)

    run: contourmc sample mine.py:energy --init "[1.0, 1.0]". It writes report.md, picture.png, summary.json and
    draws.nc (for xarray, or Samples.load).
    """
    from contourmc import DivergenceError
    from contourmc import sample as sample_energy
    from contourmc.report import write_report

    with output_folder(out or Path("results") / target.split(":")[-1], "summary.json", force) as folder:
        try:
            energy, start = load_function(target, init)
            run = sample_energy(energy, init=start, steps=steps, chains=chains, seed=seed)
        except (ValueError, DivergenceError) as error:
            stop(str(error))
        except SystemExit as error:
            stop(f"target={target!r} is not possible: it calls sys.exit({error.code!r}), which ends the command")
        if run.energies.shape[1] == 0:
            stop_interrupted("before the first draw, so nothing was written")
        files = write_report(run, folder, f"{target}, from {init}")
        console.print(files[0].read_text(encoding="utf-8").split("![the run]")[0].rstrip(), soft_wrap=True)
        tell_written(files)
        if run.interrupted:
            stop_interrupted("these are the draws so far")


def main() -> None:
    """The entry point of the `contourmc` command."""
    replace_what_cannot_be_shown()
    end_at_second_interrupt()
    try:
        app()
    except SystemExit as ended:
        if ended.code == STATUS:
            end_at_once(STATUS)
        raise
