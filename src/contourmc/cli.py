"""The command line: `contourmc --help`."""

import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from contourmc import __version__
from contourmc.loading import load_function

app = typer.Typer(
    help="Sample distributions with many modes by contour stochastic-gradient MCMC.",
    no_args_is_help=True,
    add_completion=False,
)
console = Console()


def _version(asked: bool | None) -> None:
    if asked:
        console.print(f"contourmc {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main_options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = None,
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


@app.command()
def sample(
    target: Annotated[str, typer.Argument(help="FILE.py:NAME, the file and the name of the energy function in it.")],
    init: Annotated[str, typer.Option(help="Where the chains start: 0.0, or [0.0, 1.5], or a name in the file.")],
    steps: Annotated[int, typer.Option(min=1000, help="Steps of each chain, pilot included.")] = 100_000,
    chains: Annotated[int, typer.Option(min=1, help="Chains.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The folder for the files; results/NAME unless given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over the results of an earlier run.")] = False,
) -> None:
    """Sample an energy function of your own; step size and energy partition are found on the way.

    The function takes a position (a JAX array, or any pytree of them) and returns minus the log density, up to a
    constant. For example, with mine.py:

        import jax.numpy as jnp

        def energy(x):
            return 8 * jnp.sum((x**2 - 1) ** 2)

    say: contourmc sample mine.py:energy --init "[1.0, 1.0]". It writes report.md, picture.png, summary.json and
    draws.nc (for xarray, or Samples.load).
    """
    from contourmc import DivergenceError
    from contourmc import sample as sample_energy
    from contourmc.report import write_report

    try:
        energy, start = load_function(target, init)
        folder = _folder(out or Path("results") / target.split(":")[-1], "summary.json", force)
        run = sample_energy(energy, init=start, steps=steps, chains=chains, seed=seed)
    except (ValueError, DivergenceError) as error:
        _stop(str(error))
    files = write_report(run, folder, f"{target}, from {init}")
    console.print(files[0].read_text().split("![the run]")[0].rstrip(), highlight=False, markup=False)
    console.print(f"Written: {', '.join(str(file) for file in files)}", highlight=False)


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="The study; --list shows them all.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for its files; results/NAME unless given.")] = None,
    steps: Annotated[int | None, typer.Option(min=100, help="Steps of each chain, instead of the paper's.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, max=1000, help="Independent repetitions.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The same code in under a minute.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over the results of an earlier run.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show the studies, a line each.")] = False,
) -> None:
    """Reproduce an experiment of the paper: figures, every number, and a report beside the paper's claims."""
    import matplotlib

    matplotlib.use("Agg")
    from contourmc.studies import STUDIES, Size, write

    if list_ or name is None:
        for study in STUDIES.values():
            console.print(f"[bold]{study.name:18}[/bold] {study.summary}", highlight=False)
        return
    if name not in STUDIES:
        _stop(f"there is no study {name!r}; choose one of {', '.join(STUDIES)}")
    study, size = STUDIES[name], Size(steps, seeds, quick)
    folder = _folder(out or Path("results") / name, "results.json", force)
    began = time.perf_counter()
    outcome = study.run(size)
    files = write(study, size, outcome, time.perf_counter() - began, folder)
    table = Table("the paper", "our measurement", "", title=study.title, title_justify="left", show_lines=True)
    for claim in outcome.claims:
        table.add_row(claim.paper, claim.ours, {True: "agrees", False: "differs", None: ""}[claim.agrees])
    console.print(table)
    console.print(f"Written: {', '.join(str(file) for file in files)}", highlight=False)


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


def _stop(message: str) -> NoReturn:
    Console(stderr=True).print(f"[bold red]error:[/bold red] {message}", highlight=False, soft_wrap=True)
    raise typer.Exit(2)


def main() -> None:
    """The entry point of the `contourmc` command."""
    app()
