"""Draws as an xarray.Dataset, and as a netCDF file."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from contourmc._core.checks import require
from contourmc._core.describe import describe
from contourmc.draws.basins import Basins
from contourmc.draws.stored import Stored, restore
from contourmc.draws.trajectory import Trajectory
from contourmc.draws.weighted import WeightedDraws
from contourmc.flattening.partition import Partition
from contourmc.flattening.summary import Flattening

_FORMAT = "contourmc samples 2"


def variables(position: Any) -> dict[str, np.ndarray]:
    """The leaves of a position by name: `x` for a bare array, else the path to it, such as `layer.bias`."""
    named = jax.tree_util.tree_leaves_with_path(position)
    return {jax.tree_util.keystr(path, simple=True, separator=".") or "x": np.asarray(leaf) for path, leaf in named}


def to_xarray(samples: WeightedDraws) -> Any:
    """One xarray.Dataset with draws, energies, weights, the trajectory and the settings."""
    import xarray

    data: dict[str, Any] = {}

    def put(name: str, axes: tuple[str, ...], values: np.ndarray, prefix: str) -> None:
        data[name] = ((*axes, *(f"{prefix}_{i}" for i in range(values.ndim - len(axes)))), values)

    def put_tree(group: str, axes: tuple[str, ...], tree: Any) -> None:
        for name, values in variables(tree).items():
            put(group + name, axes, values, group + name)

    trajectory, basins = samples.trajectory, samples.basins
    for name, values in variables(samples.draws).items():
        put(name, ("chain", "draw"), values, name)
    put_tree("trajectory.mean.", ("chain", "mark"), trajectory.means)
    put_tree("trajectory.square.", ("chain", "mark"), trajectory.squares)
    put_tree("trajectory.centre.", ("chain",), trajectory.centre)
    put("trajectory.log_weight", ("chain", "mark"), trajectory.log_weights, "")
    if trajectory.theta is not None and trajectory.visits is not None:
        put("trajectory.theta", ("chain", "mark", "bin"), trajectory.theta, "")
        put("trajectory.visits", ("chain", "mark", "bin"), trajectory.visits, "")
    put_tree("state.", ("chain", "draw"), samples.target_states)
    if basins is not None:
        put("basins.energy", ("basin",), basins.energies, "")
        put_tree("basins.minimum.", ("basin",), basins.minima)
        put_tree("basins.scale.", (), basins.scale)
    listed = isinstance(samples.average, list)
    averages = [one for one in (samples.average if listed else [samples.average]) if isinstance(one, Stored)]
    for i, average in enumerate(averages):
        for name, values in average.to_arrays().items():
            put(f"average.{i}.{name}", (), values, f"average.{i}.{name}")
    for name in ("energies", "log_weights", "multipliers"):
        put(name, ("chain", "draw"), getattr(samples, name), "")
    attributes = {
        "format": _FORMAT,
        "settings": json.dumps(samples.settings),
        "variables": json.dumps(list(variables(samples.draws if samples.draws is not None else trajectory.means))),
        "states": json.dumps(list(variables(samples.target_states))),
        "averages": json.dumps([type(one).__name__ for one in averages]),
        "averages_listed": int(listed),
        "flattening": json.dumps(None if samples.flattening is None else describe(samples.flattening)),
        "seconds": samples.seconds,
        "compile_seconds": samples.compile_seconds,
        "interrupted": int(samples.interrupted),
        "stage": samples.stage,
    }
    coordinates = {"draw_step": ("draw", samples.steps), "mark_step": ("mark", trajectory.steps)}
    return xarray.Dataset(data, coordinates, attributes)


def save(samples: WeightedDraws, file: Path) -> Path:
    """Write a netCDF file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    to_xarray(samples).to_netcdf(file, engine="h5netcdf")
    return file


def load(file: Path) -> dict[str, Any]:
    """The fields of the draws in a file that `save` wrote; a position of several arrays is a dictionary by name.

    The file holds only model averages that are `Stored`, such as the predictions of this library.
    """
    import xarray

    require(file.exists(), "file", str(file), "there is no such file")
    with xarray.open_dataset(file, engine="h5netcdf") as opened:
        data = opened.load()
    known = data.attrs.get("format") == _FORMAT
    require(known, "file", str(file), "it was not written by Samples.save of this version")
    names = json.loads(data.attrs["variables"])

    def tree(prefix: str, names: list[str] = names) -> Any:
        if not names or prefix + names[0] not in data:
            return None
        return data[prefix + "x"].values if names == ["x"] else {name: data[prefix + name].values for name in names}

    def array(name: str) -> Any:
        return data[name].values if name in data else None

    trajectory = Trajectory(
        steps=data["mark_step"].values,
        log_weights=data["trajectory.log_weight"].values,
        means=tree("trajectory.mean."),
        squares=tree("trajectory.square."),
        centre=tree("trajectory.centre."),
        theta=array("trajectory.theta"),
        visits=array("trajectory.visits"),
    )
    averages = [_average(data, i, kind) for i, kind in enumerate(json.loads(data.attrs["averages"]))]
    flattening = json.loads(data.attrs["flattening"])
    found = array("basins.energy")
    return dict(
        draws=tree(""),
        energies=data["energies"].values,
        log_weights=data["log_weights"].values,
        multipliers=data["multipliers"].values,
        steps=data["draw_step"].values,
        trajectory=trajectory,
        settings=json.loads(data.attrs["settings"]),
        seconds=float(data.attrs["seconds"]),
        compile_seconds=float(data.attrs["compile_seconds"]),
        interrupted=bool(data.attrs["interrupted"]),
        stage=str(data.attrs["stage"]),
        target_states=tree("state.", json.loads(data.attrs["states"])),
        average=averages if data.attrs["averages_listed"] else next(iter(averages), None),
        flattening=None if flattening is None else _flattening(**flattening),
        basins=None if found is None else Basins(tree("basins.minimum."), found, tree("basins.scale.")),
    )


def _average(data: Any, number: int, kind: str) -> Stored:
    prefix = f"average.{number}."
    return restore(kind, {name[len(prefix) :]: data[name].values for name in data if str(name).startswith(prefix)})


def _flattening(kind: str, partition: dict[str, Any], **fields: Any) -> Flattening:
    return Flattening(Partition(partition["low"], partition["width"], partition["bins"]), **fields)
