"""`contourmc reproduce cifar`."""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from contourmc.cli.output import console, output_folder, stop, stop_interrupted, tell_written
from contourmc.engine.run import DivergenceError
from contourmc.sampling.kept_run import missing_packages
from contourmc.studies.cifar.algorithms import ALGORITHMS, BATCH_SIZE, EPOCHS, IMAGES
from contourmc.studies.cifar.records import read_records, set_of, write_record
from contourmc.studies.cifar.sets import SETS, ImageSet, find_set
from contourmc.studies.cifar.shift_table import make_shift_table
from contourmc.studies.cifar.table import make_draws_table, make_table
from contourmc.studies.datasets import DatasetError

QUICK = "csghmc"  # what --quick runs if nothing is named


def cifar(
    dataset: Annotated[
        str | None, typer.Option(help=f"{' or '.join(SETS)}; a run is of the first, and a table of both, unless given.")
    ] = None,
    algorithm: Annotated[str | None, typer.Option(help=f"One of {', '.join(ALGORITHMS)}.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes through the data; annealing is fitted to them.")] = EPOCHS,
    seed: Annotated[int, typer.Option(help="Of the start, the order of the data, and the noise.")] = 0,
    data: Annotated[
        Path | None,
        typer.Option(help="The folder of the data in their official layout, else $CONTOURMC_DATA, else a download."),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images in a batch.")] = BATCH_SIZE,
    images: Annotated[int, typer.Option(min=10, help="Train on the first so many; test on a fifth as many.")] = IMAGES,
    chains: Annotated[int, typer.Option(min=1, help="Chains with own starts, averaged together.")] = 1,
    held_out: Annotated[
        int, typer.Option(min=0, help="Test on the last so many training images, which are not trained on.")
    ] = 0,
    learning_rate: Annotated[
        float | None, typer.Option(help="Of the mean loss, where it is highest; that of the algorithm unless given.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Of sampling, where it is highest, for 50,000 images; that of the algorithm unless given."),
    ] = None,
    shifts: Annotated[
        bool, typer.Option("--shifts", help="Test on spoilt images and on those of the other data set, too.")
    ] = False,
    crop: Annotated[bool, typer.Option(help="Shift images at random by up to 4 pixels.")] = True,
    flip: Annotated[bool, typer.Option(help="Mirror images at random.")] = True,
    erase: Annotated[bool, typer.Option(help="Paint a rectangle over images at random.")] = True,
    quick: Annotated[
        bool,
        typer.Option("--quick", help=f"A ResNet-8 on 500 images for 2 epochs, by {QUICK} unless another is named."),
    ] = False,
    table: Annotated[bool, typer.Option("--table", help="Show the runs so far as the paper's table.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the records; results/DATASET, or with --quick DATASET-quick.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over the record of an earlier run.")] = False,
) -> None:
    """Table 2: ResNet-20 on CIFAR-10 and CIFAR-100 by M-SGD, SGHMC and CSGHMC, with and without annealing.

    One run of one algorithm, evaluated every ten epochs: the best point so far (BPE), and the model average over the
    last 60% of the run (BMA). It takes a GPU four minutes. A CPU can do a part: --images 5000 --batch-size 100.
    """
    algorithm = algorithm or (QUICK if quick and not table else None)
    if algorithm is None and not table:
        stop(f"name one --algorithm of {', '.join(ALGORITHMS)}, or ask for the --table of earlier runs")
    try:
        named = None if dataset is None else find_set(dataset)
    except ValueError as error:
        stop(str(error))
    folders = {each: out or Path("results") / (each.name + "-quick" * quick) for each in SETS.values()}
    if algorithm is not None:
        of = named or next(iter(folders))
        length = dict(epochs=2, images=500, batch_size=100, depth=1) if quick else {}
        length = dict(epochs=epochs, images=images, batch_size=batch_size) | length
        chosen = dict(algorithm=algorithm, seed=seed, chains=chains, crop=crop, flip=flip, erase=erase, **length)
        chosen |= dict(held_out=held_out, learning_rate=learning_rate, temperature=temperature)
        _train(of, chosen, data, folders[of], force, shifts=shifts)
    if table:
        _show({each: folder for each, folder in folders.items() if named in (None, each)})


def _train(
    images: ImageSet, chosen: dict[str, Any], data: Path | None, out: Path, force: bool, *, shifts: bool
) -> None:
    """A run, with its record written after every evaluation; one that was cut goes on from its last checkpoint."""
    try:
        from contourmc.studies.cifar.training import Setting, train
    except ImportError as error:
        stop(f"this study needs Flax: install contourmc[networks] ({error})")
    precision = "float32" if jax.default_backend() == "cpu" else "bfloat16"
    try:
        setting = Setting(**chosen, dataset=images.name, precision=precision)
        name, place = f"{setting.name}.json", out / setting.name
        if force:
            shutil.rmtree(place, ignore_errors=True)
        before = _evaluations_of_a_cut_run(out / name) if place.exists() else None
        with output_folder(out, name, force or before is not None) as folder:
            record = train(
                setting,
                images.load(data),
                lambda record: write_record(folder / name, record),
                other=_other(images).load(data)[1] if shifts else None,
                checkpoint=None if missing_packages() else place,
                before=before or (),
            )
    except (ValueError, DatasetError, DivergenceError) as error:
        stop(str(error))
    if "results" not in record:
        stop_interrupted("before the first evaluation; the same command goes on where it was")
    console.print(make_table(images, [record]))
    tell_written([out / name])
    if record["results"]["interrupted"]:
        stop_interrupted(f"after {record['results']['epochs']} of {setting.epochs} epochs; the same command goes on")
    shutil.rmtree(place, ignore_errors=True)


def _other(images: ImageSet) -> ImageSet:
    """The data set that this one is not."""
    return next(each for each in SETS.values() if each is not images)


def _evaluations_of_a_cut_run(file: Path) -> list[Any] | None:
    """Those in the record of a run that has epochs to come; None if there is no record, or that of a whole run."""
    with suppress(OSError, ValueError, KeyError):
        record = json.loads(file.read_text(encoding="utf-8"))
        return record["history"] if record["results"]["interrupted"] else None
    return None


def _show(folders: dict[ImageSet, Path]) -> None:
    """The table of all records of each data set in its folder."""
    nothing = True
    for images, folder in folders.items():
        try:
            records = [record for record in read_records(folder) if set_of(record) is images]
        except ValueError as error:
            stop(str(error))
        if records:
            nothing = False
            console.print(make_table(images, records))
            console.print()
            console.print(make_draws_table(records))
            if (under_shift := make_shift_table(records)) is not None:
                console.print()
                console.print(under_shift)
            console.print()
    if nothing:
        looked = " and ".join(dict.fromkeys(map(str, folders.values())))
        stop(f"{looked} holds no records of runs; make one with --algorithm")
