"""A run with a folder: the same call again goes on with the run that is there."""

import pickle
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from contourmc._core.checks import require, require_count, require_number
from contourmc._core.compiling import call_compiled
from contourmc._core.describe import describe
from contourmc._core.processes import any_process, from_first, in_all
from contourmc._core.pytrees import Position, named_leaves, shape_of_one, unstack
from contourmc._core.tracing import Traced, with_plain_functions
from contourmc.checkpoints.folder import RunFolder
from contourmc.checkpoints.identity import (
    MEASURED,
    Identity,
    arrays_of,
    differences,
    plain,
    schedules_of,
    sketches_of,
    tolerance,
)
from contourmc.checkpoints.keeper import FolderKeeper
from contourmc.checkpoints.packing import structures_of
from contourmc.engine.run import Run
from contourmc.predictions.model_average import ModelAverage
from contourmc.sampling.prepared import Prepared
from contourmc.targets.base import energies_at
from contourmc.targets.streamed_posterior import StreamedPosterior
from contourmc.targets.wrapped import innermost

NEEDED = ("zarr", "google_crc32c", "xarray", "h5netcdf", "filelock", "cloudpickle")


def missing_packages() -> list[str]:
    """Which packages are not installed that checkpoints need."""
    return [name for name in NEEDED if find_spec(name.split(".")[0]) is None]


class KeptRun:
    """call: the arguments of `start`, but for those about checkpoints.
    every: the least seconds between two checkpoints.
    """

    def __init__(self, folder: str | Path, every: float, call: dict[str, Any]):
        require_number("checkpoint_every", every, "give seconds, such as 60.0", positive=False)
        missing = missing_packages()
        remedy = f"{', '.join(missing)} not installed: pip install 'contourmc[checkpoints]'"
        require(not missing, "checkpoint", str(folder), remedy)
        self._folder, self._every, self._call = RunFolder(folder), every, call
        self._before: tuple[Identity, int] | None = None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """A context in which no other process runs this folder, but for those that make this run together."""
        with ExitStack() as held:
            from_first(lambda: held.enter_context(self._folder.lock()))
            yield

    def planned(self) -> dict[str, Any]:
        """The call, with the length that the run in the folder was planned for, which may have been extended since."""
        self._before = from_first(self._folder.read)
        if self._before is None:
            return self._call
        identity, steps = self._before
        asked = require_count("steps", self._call["steps"], 1, "a run needs at least 1 step")
        remedy = f"the run in {self._folder.path} is to make {steps:,}: give as many, or more to extend it"
        require(asked >= steps, "steps", asked, remedy)
        length = {name: identity[name] for name in ("burn_in", "thin") if self._call[name] is None}
        return self._call | length | {"steps": identity["steps"]}

    def keep(self, run: Run, prepared: Prepared) -> FolderKeeper:
        """Let the run go on where the one in the folder was, if there is one; returns what writes its checkpoints."""
        identity = identity_of(prepared)
        if self._before is None:
            from_first(lambda: self._begin(identity, run.steps))
            in_all(self._folder.require_shared)
        else:
            self._folder.require_same(self._before[0], identity)
            from_first(self._keep_call)  # the process that began the run may have been killed before it did
        keeper = FolderKeeper(self._folder, self._every, _structures(prepared), _probe(prepared))
        data = keeper.restore(run)
        if run.step:
            prepared.target.seek(run.step, data)
        if self._call["steps"] > run.steps:
            run.lengthen(self._call["steps"] - run.steps)
            from_first(lambda: self._folder.write(identity, run.steps))
        return keeper

    def _begin(self, identity: Identity, steps: int) -> None:
        self._folder.write(identity, steps)
        self._keep_call()

    def _keep_call(self) -> None:
        if not self._folder.call.exists():
            _store_call(self._folder, self._call | {"checkpoint_every": self._every})


def stored_call(folder: str | Path, steps: int | None) -> dict[str, Any]:
    """The arguments of `start` for the run in a folder."""
    place = RunFolder(folder)
    require(place.path.is_dir(), "folder", str(folder), "there is no such folder")
    found = place.read()
    require(found is not None, "folder", str(folder), "it holds no run; `sample(…, checkpoint=folder)` begins one")
    assert found is not None
    remedy = "the call could not be kept in it: repeat the call of `sample`, with this folder as its checkpoint"
    require(place.call.exists(), "folder", str(folder), remedy)
    try:
        path, pickled = pickle.loads(place.read_call())
        sys.path += [entry for entry in path if entry not in sys.path]  # for modules beside the user's own
        call = pickle.loads(pickled)
    except Exception as error:
        message = f"its call cannot be read here ({type(error).__name__}: {error}): repeat the call of `sample`"
        raise ValueError(f"folder={str(folder)!r} is not possible: {message}") from error
    return call | {"steps": found[1] if steps is None else steps, "checkpoint": folder}


def _store_call(folder: RunFolder, call: dict[str, Any]) -> None:
    """Keep the call for `resume`, unless it holds what cannot be pickled."""
    import cloudpickle

    try:
        content = pickle.dumps((sys.path, cloudpickle.dumps(call)))
    except Exception:  # of any kind: objects of the user's may raise what they like
        return
    folder.write_call(content)


def require_same_everywhere(prepared: Prepared) -> None:
    """Raise if the processes of a run have been asked for different ones."""
    own = identity_of(prepared)
    found = differences(from_first(lambda: own), own)
    if any_process(bool(found)):
        what = found[0].replace(" was ", " is ").replace(" now", "") if found else "see the message of another process"
        raise ValueError(f"all processes must make the same calls, and this one differs from the first: {what}")


def identity_of(prepared: Prepared) -> Identity:
    """What must be the same when a run is resumed."""
    kernel, positions, average = prepared.kernel, prepared.positions, prepared.average
    moves = {} if kernel is None else arrays_of(kernel, "kernel", exact=False)
    added = {} if average is None else arrays_of(average, "average", exact=True)
    return plain(
        prepared.settings
        | prepared.described
        | {
            "kernel": "none: the run tunes itself" if kernel is None else describe(kernel),
            "partition": describe(prepared.partition),
            "step_size": prepared.step_size,
            "store": prepared.store,
            "precision": str(jnp.result_type(float)),
            MEASURED: schedules_of(kernel, prepared.length.steps)
            | arrays_of(prepared.target, "target", exact=True)
            | sketches_of(positions, "init")
            | added
            | moves
            | _predictions(prepared),
            "position": {name: f"{leaf.dtype}{list(leaf.shape[1:])}" for name, leaf in named_leaves(positions).items()},
        }
    )


def _predictions(prepared: Prepared) -> Identity:
    """What the models near the starts predict, by which another `predict` of an average is noticed."""
    found: Identity = {}
    for i, average in enumerate(prepared.averages):
        if not isinstance(average, ModelAverage):
            continue
        target = unstack(prepared.target, i) if prepared.per_chain else prepared.target
        position = jax.tree.map(lambda leaf, i=i: _near(leaf[i : i + 1]), prepared.positions)
        seen = unstack(position if prepared.view is None else prepared.view.of(position, 1), 0)
        state = target.drawn(target.init())
        inputs = jax.tree.map(lambda leaf, count=average.chunk: leaf[:count], average.inputs)
        arguments = (seen, inputs) if state is None else (seen, state, inputs)
        predict = Traced(with_plain_functions(average).predict, *arguments)
        name = f"what predict of average[{i}] gives" if prepared.per_chain else "what predict of the average gives"
        found |= sketches_of(call_compiled(_called, predict, *arguments), name, tolerance())
    return found


def _near(leaf: Any) -> Any:
    """Numbers nearby: where all parameters are zero, many models predict the same."""
    return leaf + 0.1 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape).astype(leaf.dtype)


def _called(function: Traced, *arguments: Any) -> Any:
    return function(*arguments)


def _structures(prepared: Prepared) -> list[Any]:
    """Those of the pytrees in the state of the run that are the user's, or may be, as a kernel's state is."""
    target, average, kernel = prepared.target, prepared.average, prepared.kernel
    state = target.init()
    sums = None if average is None else jax.eval_shape(average.init)
    position = shape_of_one(prepared.positions)
    moving = None if kernel is None else jax.eval_shape(kernel.init, position)
    return structures_of(moving, position, state, target.drawn(state), sums)


def _probe(prepared: Prepared) -> Any:
    """The energies at stacked positions; None for a loader, whose first batch cannot be had again."""
    if isinstance(innermost(prepared.target), StreamedPosterior):
        return None

    def probe(positions: Position) -> np.ndarray:
        return energies_at(prepared.target, positions, per_chain=prepared.per_chain)

    return probe
