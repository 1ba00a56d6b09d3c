"""Energies on the host: a compiled program calls back for the energies and gradients of all its chains at once."""

import math
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Lock
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require
from contourmc._core.cores import available_cores
from contourmc._core.layout import Layout
from contourmc._core.pytrees import Position
from contourmc.data.data_error import EnergyError
from contourmc.data.differences import neighbours, slopes
from contourmc.data.host_side import Handle, HostSide, side_of
from contourmc.data.worker_pool import WorkerError, WorkerPool
from contourmc.data.worker_process import Work


class Evaluator(HostSide):
    """Evaluates a function of positions as NumPy arrays.

    function: gives energy and gradient, or with a `difference_step` the energy alone.
    workers: how many processes evaluate it at most; None for one on each core; "threads" for as many threads.
    difference_step: of central differences; None if the function gives the gradient.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        workers: int | Literal["threads"] | None,
        difference_step: float | None,
    ):
        super().__init__()
        self.function, self.workers, self.difference_step = function, workers, difference_step
        self._content: bytes | None = None
        self._pool: tuple[Layout, WorkerPool] | None = None  # and the layout that it is for
        self._lock = Lock()  # several callbacks of a program may come at once

    def open(self) -> None:
        """Pickle the function, with the variables that it reads as they are now."""
        self.close()
        if self.workers != "threads":
            self._content = _pickled(self.function)

    def close(self) -> None:
        if self._pool is not None:
            self._pool[1].close()
        self._pool = self._content = None

    def evaluate(self, layout: Layout, step: int, positions: np.ndarray, seeds: np.ndarray | None) -> np.ndarray:
        """The energy and after it the gradient of each position, given as vectors. Raises an `EnergyError`."""
        rows = positions
        with self._lock:
            try:
                pool = self._pool_for(layout)
                if self.difference_step is None:
                    return pool.evaluate(rows, seeds, lambda: self.stopped)
                points = neighbours(positions, self.difference_step)
                rows = points.reshape(-1, positions.shape[1])
                # The same noise at all neighbours of a position, so that it cancels from their differences.
                repeated = None if seeds is None else np.repeat(seeds, points.shape[1], axis=0)
                energies = pool.evaluate(rows, repeated, lambda: self.stopped).reshape(points.shape[:2])
                return np.concatenate([energies[:, :1], slopes(points, energies)], axis=1)
            except WorkerError as error:
                raise EnergyError(self._message(error, rows), step) from error

    def _pool_for(self, layout: Layout) -> WorkerPool:
        if self._pool is None or self._pool[0] != layout:
            template = layout.structure.unflatten(range(len(layout.shapes)))
            work = Work(self.function, template, layout.shapes, self.difference_step is None)
            most, content = available_cores(), None
            if not isinstance(self.workers, str):
                function = _pickled(self.function) if self._content is None else self._content
                most, content = self.workers or most, _dumps((function, *work[1:]))
            pool = WorkerPool(most, work, content)
            if self._pool is not None:
                self._pool[1].close()
            self._pool = layout, pool
        return self._pool[1]

    def _message(self, error: WorkerError, rows: np.ndarray) -> str:
        name = getattr(self.function, "__name__", repr(self.function))
        at = f" at a position with the numbers {_shown(rows[error.number])}" if error.number >= 0 else ""
        message = f"the external energy `{name}` failed{at}: {error}. The draws so far, if there are any, are in this"
        message += " error's `samples`."
        return f"{message}\n\nIn the worker:\n{error.traceback}" if error.traceback else message

    def __reduce__(self) -> Any:
        return Evaluator, (self.function, self.workers, self.difference_step)


@jax.tree_util.register_pytree_node_class
class HostFunction(Handle):
    """A function on the host, as a target holds it."""

    def __init__(self, evaluator: Evaluator):
        super().__init__(evaluator, None)

    def evaluate(
        self, step: Int[Array, ""], position: Position, seed: Array | None
    ) -> tuple[Float[Array, ""], Position]:
        """The energy at a position, NaN if it could not be evaluated, and the gradient."""
        leaves, structure = jax.tree.flatten(position)
        layout, kind = Layout(structure, tuple(leaf.shape for leaf in leaves)), jnp.result_type(float)
        # Few arrays, since each costs a callback some time; and no 64-bit floats, which JAX would round in the thread
        # of the callback if it uses them in this one only.
        seeds = () if seed is None else (jax.lax.bitcast_convert_type(seed, jnp.int32),)
        request = jnp.concatenate([jnp.stack([self.number, step]), *seeds])
        vector = layout.to_vector(position).astype(kind)
        given = jax.lax.bitcast_convert_type(vector, jnp.uint32)
        result = jax.ShapeDtypeStruct((vector.size + 1, *given.shape[1:]), jnp.uint32)
        bits = jax.pure_callback(_Callback(layout, kind.name), result, request, given, vmap_method="broadcast_all")
        energy, gradient = jnp.split(jax.lax.bitcast_convert_type(bits, kind), [1])
        return energy[0], jax.tree.map(lambda g, x: g.astype(x.dtype), layout.to_position(gradient), position)

    def __reduce__(self) -> Any:
        return HostFunction, (self.side,)


@dataclass(frozen=True)
class _Callback:
    """What a program calls, for any number of leading axes, along which chains lie; equal to others of the same kind.

    layout: of the positions.  kind: the type of their numbers.
    """

    layout: Layout
    kind: str

    def __call__(self, request: Any, given: Any) -> np.ndarray:
        """Bits of the numbers of a position for those of its energy and gradient."""
        request, given = np.asarray(request), np.asarray(given)
        axes, evaluator = request.shape[:-1], side_of(request[..., 0])
        size = sum(math.prod(shape) for shape in self.layout.shapes)

        def compute() -> np.ndarray:
            rows = given.reshape(-1).view(self.kind).reshape(-1, size).astype(np.float64)
            requests = request.reshape(-1, request.shape[-1])
            seeds = requests[:, 2:].view(np.uint32) if request.shape[-1] > 2 else None
            found = evaluator.evaluate(self.layout, int(requests[0, 1]), rows, seeds)
            with np.errstate(over="ignore"):  # what is beyond 32-bit numbers is infinite
                return found.astype(self.kind)

        numbers = evaluator.answer(compute, lambda: np.full((math.prod(axes), 1 + size), np.nan, self.kind))
        return numbers.view(np.uint32).reshape(*axes, 1 + size, *given.shape[len(axes) + 1 :])


def _pickled(function: Callable[..., Any]) -> bytes:
    """The function for processes; raises if they cannot get it."""
    require(os.name == "posix", "workers", "processes", 'they need Linux or macOS: give workers="threads"')
    own = getattr(function, "__module__", "") == "__main__" and find_spec("cloudpickle") is None
    remedy = "a function of a script or a notebook needs cloudpickle for worker processes: pip install cloudpickle,"
    require(not own, "function", function, f'{remedy} move it to a module, or give workers="threads"')
    try:
        return _dumps(function)
    except Exception as error:
        remedy = "it cannot be pickled for worker processes: make what it needs inside of it, or give"
        message = f'function={function!r} is not possible: {remedy} workers="threads"'
        raise ValueError(f"{message} ({type(error).__name__}: {error})") from error


def _dumps(thing: Any) -> bytes:
    """By cloudpickle, which also takes functions of a notebook, where it is installed."""
    dumps = pickle.dumps
    with suppress(ImportError):
        from cloudpickle import dumps
    return dumps(thing)


def _shown(row: np.ndarray) -> str:
    return np.array2string(row, threshold=20, separator=", ", max_line_width=10**6)
