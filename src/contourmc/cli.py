"""The command line: `contourmc --help`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contourmc import __version__

app = typer.Typer(
    help="Sample distributions with many modes by contour stochastic-gradient MCMC.",
    no_args_is_help=True,
    add_completion=False,
)
console = Console()


def _version(asked: bool) -> None:
    if asked:
        console.print(f"contourmc {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Options before any command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for demo.png and results.json.")] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1000, help="Steps of each chain.")] = 1_000_000,
    chains: Annotated[int, typer.Option(min=2, help="Independent chains.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write over the results of an earlier run.")] = False,
) -> None:
    """SGLD and CSGLD side by side on the paper's mixture of two Gaussians: a table, a picture, a file.

    SGLD stays in the mode where it started; CSGLD crosses hundreds of times and gets the mean right.
    """
    from contourmc.demo import run_demo

    run_demo(_folder(out, "results.json", force), steps, chains, seed, console)


def _folder(out: Path, marker: str, force: bool) -> Path:
    """The output folder, made if need be; an error if it holds results and --force was not given."""
    if (out / marker).exists() and not force:
        _stop(f"{out} already holds results ({marker}); choose another --out, or add --force to replace them")
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".contourmc-write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        _stop(f"--out {out} cannot be written: {error.strerror or error}")
    return out


def _stop(message: str) -> None:
    Console(stderr=True).print(f"[bold red]error:[/bold red] {message}", highlight=False)
    raise typer.Exit(2)


def main() -> None:
    """The entry point of the `contourmc` command."""
    app()
