"""`contourmc reproduce cifar10`."""

import json
from pathlib import Path
from typing import Annotated, Any

import jax
import typer
from rich.console import Console

from contourmc import datasets
from contourmc.datasets import DataError
from contourmc.output import prepare_folder, stop
from contourmc.run import DivergenceError
from contourmc.studies.cifar.algorithms import ALGORITHMS
from contourmc.studies.cifar.table import draw, make_table, read_records

console = Console()


def cifar10(
    algorithm: Annotated[str | None, typer.Option(help=f"One of {', '.join(ALGORITHMS)}.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes through the data; annealing is fitted to them.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the start, the order of the data, and the noise.")] = 0,
    data: Annotated[
        Path | None, typer.Option(help="The folder of cifar-10-batches-py, else $CONTOURMC_DATA, else a download.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images in a batch.")] = 1000,
    images: Annotated[int, typer.Option(min=10, help="Train on the first so many; test on a fifth as many.")] = 50_000,
    crop: Annotated[bool, typer.Option(help="Shift images at random by up to 4 pixels.")] = True,
    flip: Annotated[bool, typer.Option(help="Mirror images at random.")] = True,
    erase: Annotated[bool, typer.Option(help="Paint a rectangle over images at random.")] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="A ResNet-8 on 500 images for 2 epochs, whatever else is said of these.")
    ] = False,
    table: Annotated[bool, typer.Option("--table", help="Show the runs in the folder as the paper's table.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the records; results/cifar10, or with --quick cifar10-quick.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over the record of an earlier run.")] = False,
) -> None:
    """Table 2: ResNet-20 on CIFAR-10 by M-SGD, SGHMC and CSGHMC, with and without annealing.

    One run of one algorithm, evaluated every ten epochs: the best point so far (BPE), and the model average over the
    last 60% of the run (BMA). It takes a GPU four minutes. A CPU can do a part: --images 5000 --batch-size 100.
    """
    if algorithm is None and not table:
        stop(f"name one --algorithm of {', '.join(ALGORITHMS)}, or ask for the --table of earlier runs")
    out = out or Path("results") / ("cifar10-quick" if quick else "cifar10")
    if algorithm is not None:
        length = dict(epochs=2, images=500, batch_size=100, depth=1) if quick else {}
        length = dict(epochs=epochs, images=images, batch_size=batch_size) | length
        _train(dict(algorithm=algorithm, seed=seed, **length), (crop, flip, erase), data, out, force)
    if table:
        _show(out)


def _train(settings: dict[str, Any], switches: tuple[bool, ...], data: Path | None, out: Path, force: bool) -> None:
    """A run, with its record written after every evaluation."""
    try:
        from contourmc.studies.cifar.augmentation import Augmentation
        from contourmc.studies.cifar.training import Setting, train
    except ImportError as error:
        stop(f"this study needs Flax: install contourmc[networks] ({error})")
    precision = "float32" if jax.default_backend() == "cpu" else "bfloat16"
    try:
        setting = Setting(**settings, precision=precision, augmentation=Augmentation(*switches))
        file = prepare_folder(out, f"{setting.name}.json", force) / f"{setting.name}.json"
        record = train(setting, datasets.cifar10(data), lambda record: _write(file, record))
    except (ValueError, DataError, DivergenceError) as error:
        stop(str(error))
    if "results" not in record:
        stop("interrupted before the first evaluation: nothing was written")
    console.print(make_table([record]))
    if record["results"]["epochs"] < setting.epochs:
        console.print(f"[yellow]Interrupted after {record['results']['epochs']} of {setting.epochs} epochs.[/yellow]")
    console.print(f"Written: {file}", highlight=False)


def _write(file: Path, record: dict[str, Any]) -> None:
    """Replace the record as a whole, so that an interruption leaves the one before."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(record, indent=1) + "\n")
    new.replace(file)


def _show(out: Path) -> None:
    """The table of all records in a folder, and their picture."""
    try:
        records = read_records(out)
    except ValueError as error:
        stop(str(error))
    if not records:
        stop(f"{out} holds no records of runs; make one with --algorithm")
    console.print(make_table(records))
    import matplotlib

    matplotlib.use("Agg")
    draw(records).savefig(out / "cifar10.png", dpi=130)
    console.print(f"Written: {out / 'cifar10.png'}", highlight=False)
