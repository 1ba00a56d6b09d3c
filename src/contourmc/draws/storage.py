"""Draws as an xarray.DataTree, and as a netCDF file.

The file ends with a checksum of all bytes before it. HDF5 ignores this end. `load` compares the checksum before HDF5
reads anything, since HDF5 may take damaged bytes for other numbers, or fail in many ways. It is a CRC-32, the fastest
checksum that Python has: a change of up to 32 neighbouring bits never passes, another one with a probability of 2⁻³².
"""

import json
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from io import SEEK_END
from pathlib import Path
from typing import Any

import jax
import numpy as np

from contourmc._core.checks import require
from contourmc._core.describe import describe
from contourmc._core.whole_file import write_whole
from contourmc.draws.basins import Basins
from contourmc.draws.stored import Stored, restore
from contourmc.draws.trajectory import Trajectory
from contourmc.draws.tree_files import from_group, to_dataset
from contourmc.draws.weighted import WeightedDraws
from contourmc.flattening.partition import Partition
from contourmc.flattening.summary import Flattening
from contourmc.targets.view import Labels

_FORMAT = "contourmc samples "
_VERSION = 5
_BASINS = ("minima", "scale", "factor", "seen", "labels")
_MARK = b"\ncontourmc CRC-32 "  # before the checksum, at the end of a file
_END_SIZE = len(_MARK) + 9
_BLOCK = 2**18  # bytes that are read together, which fit into the processor's cache


def to_xarray(samples: WeightedDraws) -> Any:
    """An xarray.DataTree. What is None has no group.

    /              energies, log_weights, … of the draws, by chain and draw (a number of steps); settings as attributes.
    /draws         the positions: a variable for each array, such as `layer.bias`, or `x` for a bare array.
    /unconstrained the positions as they were sampled, if the user sees them in other coordinates.
    /target_states the states of the target, in the same way.
    /trajectory    log_weights, theta and visits, by chain and mark (a number of steps); in groups below it means,
                   squares and centre.
    /basins        energies, and in groups below it minima, scale, factor, the minima as they are `seen`, and the
                   labels of the draws.
    /average       the arrays of the model average, in groups 0, 1, … below it if each chain has its own.
    """
    import xarray

    trajectory, basins, average = samples.trajectory, samples.basins_of_draws, samples.average
    by_draw = {name: getattr(samples, name) for name in ("energies", "log_weights", "multipliers", "virials")}
    by_mark = {name: getattr(trajectory, name) for name in ("log_weights", "theta", "visits")}
    trees: dict[str, tuple[Any, tuple[str, ...]]] = {
        "/": (by_draw, ("chain", "draw")),
        "draws": (samples.draws, ("chain", "draw")),
        "unconstrained": (samples.unconstrained, ("chain", "draw")),
        "target_states": (samples.target_states, ("chain", "draw")),
        "trajectory": (by_mark, ("chain", "mark", "bin")),
        "trajectory/means": (trajectory.means, ("chain", "mark")),
        "trajectory/squares": (trajectory.squares, ("chain", "mark")),
        "trajectory/centre": (trajectory.centre, ("chain",)),
    }
    if basins is not None:
        trees["basins"] = ({"energies": basins.energies}, ("basin",))
        trees["basins/minima"] = (basins.minima, ("basin",))
        trees["basins/scale"] = (basins.scale, ())
        trees["basins/factor"] = (basins.factor, ())
        trees["basins/seen"] = (basins.seen, ("basin",))
        trees["basins/labels"] = (basins.labels, ("chain", "draw"))
    groups = {path: to_dataset(tree, axes) for path, (tree, axes) in trees.items() if tree is not None}
    groups["/"] = groups["/"].assign_coords(draw=samples.steps).assign_attrs(_attributes(samples))
    groups["trajectory"] = groups["trajectory"].assign_coords(mark=trajectory.steps)
    averages = enumerate(average) if isinstance(average, list) else [(None, average)]
    for i, one in averages:
        if isinstance(one, Stored):
            path = "average" if i is None else f"average/{i}"
            groups[path] = to_dataset(one.to_arrays(), ()).assign_attrs({"class": type(one).__name__})
    return xarray.DataTree.from_dict(groups)


def _attributes(samples: WeightedDraws) -> dict[str, Any]:
    return {
        "format": f"{_FORMAT}{_VERSION}",
        "settings": json.dumps(samples.settings, default=_plain),
        "flattening": json.dumps(None if samples.flattening is None else asdict(samples.flattening)),
        "seconds": float(samples.seconds),
        "compile_seconds": float(samples.compile_seconds),
        "interrupted": int(samples.interrupted),
        "stage": samples.stage,
        "exact": int(samples.exact),
        "labels": json.dumps(asdict(samples.labels), default=_plain),
    }


def _plain(setting: Any) -> Any:
    """A setting that JSON does not know: numbers of NumPy and JAX as numbers, anything else described."""
    return (
        np.asarray(setting).tolist() if isinstance(setting, (np.generic, np.ndarray, jax.Array)) else describe(setting)
    )


def save(samples: WeightedDraws, file: Path) -> Path:
    """Write a netCDF file; if that fails, an older file of the same name stays as it was."""
    tree = to_xarray(samples)

    def write(opened: Any) -> None:
        tree.to_netcdf(opened, engine="h5netcdf")
        opened.write(_end_for(opened, opened.seek(0, SEEK_END)))

    write_whole(file, write)
    return file


def _end_for(opened: Any, size: int) -> bytes:
    """The mark, and the checksum of the first `size` bytes of a file."""
    checksum, buffer = 0, memoryview(bytearray(_BLOCK))
    opened.seek(0)
    while size > 0 and (count := opened.readinto(buffer[:size])):
        checksum = zlib.crc32(buffer[:count], checksum)
        size -= count
    return _MARK + b"%08x\n" % checksum


def load(file: Path) -> dict[str, Any]:
    """The fields of the draws in a file that `save` wrote.

    The file holds only model averages that are `Stored`, such as the predictions of this library.
    """
    with _opened(file) as data:

        def tree(path: str) -> Any:
            return from_group(data[path]) if path in data else None

        basins, flattening = tree("basins"), json.loads(data.attrs["flattening"])
        return dict(
            draws=tree("draws"),
            unconstrained=tree("unconstrained"),
            labels=_labels(json.loads(data.attrs.get("labels", "{}"))),
            steps=data["draw"][()],
            trajectory=Trajectory(
                steps=data["trajectory/mark"][()],
                means=tree("trajectory/means"),
                squares=tree("trajectory/squares"),
                centre=tree("trajectory/centre"),
                **tree("trajectory"),
            ),
            settings=json.loads(data.attrs["settings"]),
            seconds=data.attrs["seconds"].item(),
            compile_seconds=data.attrs["compile_seconds"].item(),
            interrupted=bool(data.attrs["interrupted"].item()),
            stage=data.attrs["stage"],
            exact=bool(data.attrs["exact"].item()),
            target_states=tree("target_states"),
            average=_average(data["average"]) if "average" in data else None,
            flattening=None if flattening is None else _flattening(**flattening),
            basins=None
            if basins is None
            else Basins(energies=basins["energies"], **{name: tree(f"basins/{name}") for name in _BASINS}),
            **tree("/"),
        )


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """A file of draws, read by h5py: xarray needs a minute for a thousand variables. Raises for other files."""
    import h5py

    require(file.exists(), "file", str(file), "there is no such file")
    with file.open("rb") as content, ExitStack() as resources:
        size = max(0, content.seek(0, SEEK_END) - _END_SIZE)
        content.seek(size)
        end = content.read()
        marked = end.startswith(_MARK)
        remedy = "it is damaged: its content is not what was written, by its checksum. Restore it from a copy"
        require(not marked or end == _end_for(content, size), "file", str(file), remedy)
        try:
            data = resources.enter_context(h5py.File(content, "r"))
            kind = str(data.attrs.get("format"))
        except Exception:  # of any kind: HDF5 may stumble over what it finds
            data, kind = None, ""
        require(kind.startswith(_FORMAT), "file", str(file), "it is not a file of draws, or is incomplete")
        remedy = f"this version reads {_FORMAT}{_VERSION}, and this is {kind}: load it with the version that wrote it"
        require(kind == f"{_FORMAT}{_VERSION}", "file", str(file), f"{remedy}, or open it with xarray")
        remedy = "it is incomplete, or another program has changed it: it does not end with its checksum"
        require(marked, "file", str(file), f"{remedy}. Restore it from a copy, or open it with xarray")
        yield data


def _average(node: Any) -> Any:
    if "class" in node.attrs:
        return restore(node.attrs["class"], from_group(node))
    return [_average(node[str(i)]) for i in range(len(node))]


def _labels(content: dict[str, Any]) -> Labels:
    dims = {name: tuple(axes) for name, axes in content.get("dims", {}).items()}
    return Labels(dims, content.get("coords", {}))


def _flattening(partition: dict[str, Any], **others: Any) -> Flattening:
    return Flattening(Partition(partition["low"], partition["width"], partition["bins"]), **others)
