"""Runs of the user's own energies: `contourmc sample`, `resume` and `show`."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contourmc.cli.loading import load_function
from contourmc.cli.output import console, output_folder, printing, stop, stop_interrupted, tell_written

if TYPE_CHECKING:
    from contourmc import Samples

RUN = "run"  # the folder of the checkpoints, in that of the results


def sample(
    target: Annotated[str, typer.Argument(help="FILE.py:NAME, the file and the name of the energy function in it.")],
    init: Annotated[str, typer.Option(help="Where the chains start: 0.0, or [0.0, 1.5], or a name in the file.")],
    steps: Annotated[
        int, typer.Option(min=1000, help="Steps of each chain, including the pilot's; more than before: go on.")
    ] = 100_000,
    chains: Annotated[int, typer.Option(min=1, help="How many chains to run.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The folder for the files; by default results/NAME.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Begin anew, and replace an earlier run in the folder.")
    ] = False,
) -> None:
    """Sample your own energy function; the step size and the energy bins are found on the way.

    The function takes a position (a JAX array, or any pytree of them) and returns minus the log density, up to a
    constant. For example, if mine.py holds

        import jax.numpy as jnp

        def energy(x):
            return 8 * jnp.sum((x**2 - 1) ** 2)

    run: contourmc sample mine.py:energy --init "[1.0, 1.0]". It writes report.html (a page that opens
    offline), summary.json and draws.nc (for xarray, or Samples.load).

    If the run is cut, the same command, or contourmc resume DIR, goes on where it was; with more --steps it goes on
    beyond its end.
    """
    from contourmc import sample as sample_energy
    from contourmc.cli.results import FILES

    folder = out or Path("results") / target.split(":")[-1]
    checkpoint = (folder / RUN).absolute()  # the user's file may go to another directory
    there = [name for name in FILES if (folder / name).exists()]
    if force:
        _remove(folder / RUN)
    elif there and not checkpoint.exists():
        stop(f"{folder} already holds {there[0]}; choose another --out, or add --force to replace it")

    def run() -> "Samples":
        energy, start = load_function(target, init)
        return sample_energy(
            energy, init=start, steps=steps, chains=chains, seed=seed, checkpoint=checkpoint, checkpoint_every=60.0
        )

    words = ["contourmc", "sample", target, "--init", init, "--steps", str(steps), "--chains", str(chains)]
    command = shlex.join([*words, "--seed", str(seed)])
    _reported(folder, f"{target}, from {init}", run, f"target={target!r}", command)


def resume(
    folder: Annotated[Path, typer.Argument(help="The folder of the run: --out of contourmc sample, or a checkpoint.")],
    steps: Annotated[int | None, typer.Option(min=1000, help="Steps in total, to extend the run.")] = None,
) -> None:
    """Go on with a run that was cut, and write its report."""
    from contourmc import resume as resume_run

    place = _place_of(folder).absolute()
    _reported(folder, f"The run in {folder}", lambda: resume_run(place, steps=steps), f"folder={str(folder)!r}")


def show(
    folder: Annotated[Path, typer.Argument(help="The folder of the run: --out of contourmc sample, or a checkpoint.")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep the view up to date until the run is complete, or Ctrl-C.")
    ] = False,
) -> None:
    """Print where a run stands and what it has found so far, also while another process runs it."""
    from contourmc.checkpoints.folder import RunFolder
    from contourmc.cli import standing

    try:
        place = RunFolder(_place_of(folder))
        if place.read() is None:
            stop(f"{folder} holds no run")
        if watch:
            standing.watch(place)
            return
        found = standing.standing_of(place)
    except ValueError as error:
        stop(str(error))
    assert found is not None
    with printing():
        for text in (found.head, *found.findings):
            console.print(text, soft_wrap=True)


def _place_of(folder: Path) -> Path:
    """The folder of the checkpoints, which may be below the one that was given."""
    return folder / RUN if (folder / RUN / "run.json").exists() else folder


def _remove(place: Path) -> None:
    """Delete an earlier run, unless another process is running it."""
    from contourmc.checkpoints.folder import RunFolder

    if not place.exists():
        return
    run = RunFolder(place)
    try:
        run.read()  # or it is not ours
        with run.lock():
            shutil.rmtree(place)
    except (ValueError, OSError) as error:
        stop(str(error))


def _reported(folder: Path, title: str, run: Callable[[], "Samples"], what: str, command: str = "") -> None:
    """Make a run, and write its report to the folder; `command` made the run, if it is known."""
    from contourmc import DivergenceError
    from contourmc.checkpoints.termination import STATUS as TERMINATED
    from contourmc.cli.results import digest, write_results
    from contourmc.draws.report.page import require_packages

    try:
        require_packages()  # before hours of sampling, and not after them
    except ImportError as error:
        stop(str(error))
    go_on = f"To go on: contourmc resume {folder}"
    with output_folder(folder.absolute(), "", force=True) as place:
        try:
            samples = run()
        except (ValueError, DivergenceError) as error:
            stop(str(error))
        except SystemExit as error:
            if error.code == TERMINATED:
                console.print(f"Terminated; a checkpoint was written. {go_on}", soft_wrap=True)
                raise typer.Exit(TERMINATED) from None
            stop(f"{what} is not possible: it calls sys.exit({error.code!r}), which ends the command")
        if samples.energies.shape[1] == 0:
            stop_interrupted(f"before the first draw, so no report was written. {go_on}")
        found = samples.summary()
        files = [folder / file.name for file in write_results(samples, found, place, title, command)]
        with printing(f" The results are in {', '.join(map(str, files))}"):
            console.print(digest(samples, found), soft_wrap=True)
            tell_written(files)
        if samples.interrupted:
            stop_interrupted(f"these are the draws so far. {go_on}")
