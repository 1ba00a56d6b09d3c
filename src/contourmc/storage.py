"""Draws in the formats of the ecosystem: xarray, netCDF files, ArviZ."""

import json
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import jax
import numpy as np

from contourmc import estimates
from contourmc.checks import require, require_count
from contourmc.classification import ClassificationPrediction
from contourmc.path import Path
from contourmc.prediction import Points, Prediction
from contourmc.regression import RegressionPrediction
from contourmc.samples import Samples

_FORMAT = "contourmc samples 1"
_KINDS: dict[str, type[Prediction]] = {kind.__name__: kind for kind in (ClassificationPrediction, RegressionPrediction)}


def variables(position: Any) -> dict[str, np.ndarray]:
    """The leaves of a position by name: `x` for a bare array, else the path to it, such as `layer.bias`."""
    named = jax.tree_util.tree_leaves_with_path(position)
    return {jax.tree_util.keystr(path, simple=True, separator=".") or "x": np.asarray(leaf) for path, leaf in named}


def to_xarray(samples: Samples) -> Any:
    """One xarray.Dataset with draws, energies, weights, the path and the settings."""
    import xarray

    data: dict[str, Any] = {}

    def put(name: str, axes: tuple[str, ...], values: np.ndarray, own: str) -> None:
        data[name] = ((*axes, *(f"{own}_{i}" for i in range(values.ndim - len(axes)))), values)

    path = samples.path
    for name, values in variables(samples.draws).items():
        put(name, ("chain", "draw"), values, name)
    for name, values in variables(path.means).items():
        put(f"path.mean.{name}", ("chain", "mark"), values, name)
    for name, values in variables(path.squares).items():
        put(f"path.square.{name}", ("chain", "mark"), values, name)
    for name, values in variables(path.centre).items():
        put(f"path.centre.{name}", ("chain",), values, name)
    put("path.log_weight", ("chain", "mark"), path.log_weights, "")
    if path.theta is not None and path.visits is not None:
        put("path.theta", ("chain", "mark", "bin"), path.theta, "")
        put("path.visits", ("chain", "mark", "bin"), path.visits, "")
    for name, values in variables(samples.target_states).items():
        put(f"state.{name}", ("chain", "draw"), values, f"state.{name}")
    averages = samples.average if isinstance(samples.average, list) else [samples.average]
    kept = [average for average in averages if isinstance(average, Prediction)]
    for i, average in enumerate(kept):
        for name, values in _prediction_arrays(average).items():
            put(f"average.{i}.{name}", (), values, f"average.{i}.{name}")
    for name in ("energies", "log_weights", "multipliers"):
        put(name, ("chain", "draw"), getattr(samples, name), "")
    attributes = {
        "format": _FORMAT,
        "settings": json.dumps(samples.settings),
        "variables": json.dumps(list(variables(samples.draws if samples.draws is not None else path.means))),
        "states": json.dumps(list(variables(samples.target_states))),
        "averages": json.dumps(
            [{"kind": type(one).__name__, "models": one.models, "means": list(one.means)} for one in kept]
        ),
        "averages_listed": int(isinstance(samples.average, list)),
        "seconds": samples.seconds,
        "compile_seconds": samples.compile_seconds,
        "interrupted": int(samples.interrupted),
    }
    coordinates = {"draw_step": ("draw", samples.steps), "mark_step": ("mark", path.steps)}
    return xarray.Dataset(data, coordinates, attributes)


def save(samples: Samples, file: FilePath) -> FilePath:
    """Write a netCDF file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    to_xarray(samples).to_netcdf(file, engine="h5netcdf")
    return file


def load(file: FilePath) -> Samples:
    """Read a file written by `save`; a position of several arrays comes back as a dictionary by name.

    Of a model average only a `Prediction` is in the file, such as those of classifications and regressions.
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

    learnt = "path.theta" in data
    path = Path(
        steps=data["mark_step"].values,
        log_weights=data["path.log_weight"].values,
        means=tree("path.mean."),
        squares=tree("path.square."),
        centre=tree("path.centre."),
        theta=data["path.theta"].values if learnt else None,
        visits=data["path.visits"].values if learnt else None,
    )
    described = enumerate(json.loads(data.attrs.get("averages", "[]")))
    averages = [_load_prediction(entry, lambda name, i=i: data[f"average.{i}.{name}"].values) for i, entry in described]
    listed = bool(data.attrs.get("averages_listed", 0))
    return Samples(
        draws=tree(""),
        energies=data["energies"].values,
        log_weights=data["log_weights"].values,
        multipliers=data["multipliers"].values,
        steps=data["draw_step"].values,
        path=path,
        settings=json.loads(data.attrs["settings"]),
        seconds=float(data.attrs["seconds"]),
        compile_seconds=float(data.attrs["compile_seconds"]),
        interrupted=bool(data.attrs["interrupted"]),
        target_states=tree("state.", json.loads(data.attrs.get("states", "[]"))),
        average=averages if listed else next(iter(averages), None),
    )


def _prediction_arrays(prediction: Prediction) -> dict[str, np.ndarray]:
    """All arrays of a prediction by name."""
    means = {f"mean.{name}": values for name, values in prediction.means.items()}
    points = {f"point.{name}": values for name, values in prediction.points._asdict().items()}
    own = dict(truth=prediction.truth, effective_models=prediction.effective_models, shares=prediction.shares)
    return means | points | own


def _load_prediction(entry: dict[str, Any], array: Callable[[str], np.ndarray]) -> Prediction:
    return _KINDS[entry["kind"]](
        means={name: array(f"mean.{name}") for name in entry["means"]},
        truth=array("truth"),
        effective_models=array("effective_models"),
        models=entry["models"],
        points=Points(*(array(f"point.{name}") for name in Points._fields)),
        shares=array("shares"),
    )


def to_arviz(samples: Samples, draws: int | None, seed: int) -> Any:
    """An ArviZ object: InferenceData of ArviZ 0.x, a DataTree of ArviZ 1.x."""
    import arviz

    count = require_count("draws", samples.energies.shape[1] if draws is None else draws, 1, "ask for 1 or more")
    random = np.random.default_rng(seed)
    chosen = np.stack([estimates.systematic(weights, count, random) for weights in samples.weights])
    rows = np.arange(samples.chains)[:, None]
    groups: dict[str, Any] = {
        "posterior": {name: values[rows, chosen] for name, values in variables(samples.draws).items()},
        "sample_stats": {
            "energy": samples.energies[rows, chosen],
            "log_weight": samples.log_weights[rows, chosen],
            "multiplier": samples.multipliers[rows, chosen],
        },
    }
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups)
    return arviz.from_dict(**groups)
