"""Energies on the host: a compiled program calls back for the energies and gradients of all its chains at once."""

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require
from contourmc._core.cores import available_cores
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
        self._pool: tuple[Any, WorkerPool] | None = None  # and what kind of positions it is for
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

    def evaluate(self, step: int, positions: Position, seeds: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The energies of stacked positions and their gradients, these as vectors of all their numbers.

        Raises an `EnergyError`.
        """
        leaves, structure = jax.tree.flatten(positions)
        count = leaves[0].shape[0]
        rows = np.concatenate([np.reshape(leaf, (count, -1)) for leaf in leaves], axis=1).astype(np.float64)
        with self._lock:
            try:
                pool = self._pool_for(structure, tuple(leaf.shape[1:] for leaf in leaves))
                if self.difference_step is None:
                    found = pool.evaluate(rows, seeds, lambda: self.stopped)
                    return found[:, 0], found[:, 1:]
                points = neighbours(rows, self.difference_step)
                rows = points.reshape(-1, rows.shape[1])
                # The same noise at all neighbours of a position, so that it cancels from their differences.
                repeated = None if seeds is None else np.repeat(seeds, points.shape[1], axis=0)
                energies = pool.evaluate(rows, repeated, lambda: self.stopped).reshape(count, -1)
                return energies[:, 0], slopes(points, energies)
            except WorkerError as error:
                raise EnergyError(self._message(error, rows), step) from error

    def _pool_for(self, structure: Any, shapes: tuple[tuple[int, ...], ...]) -> WorkerPool:
        kind = structure, shapes
        if self._pool is None or self._pool[0] != kind:
            template = structure.unflatten(range(len(shapes)))
            work = Work(self.function, template, shapes, self.difference_step is None)
            if self.workers == "threads":
                pool = WorkerPool(available_cores(), work, None)
            else:
                function = _pickled(self.function) if self._content is None else self._content
                content = _dumps((function, template, shapes, work.gradient))
                pool = WorkerPool(self.workers or available_cores(), work, content)
            if self._pool is not None:
                self._pool[1].close()
            self._pool = kind, pool
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
        energy = jax.ShapeDtypeStruct((), jnp.result_type(float))
        gradient = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), position)
        return jax.pure_callback(
            _evaluate, (energy, gradient), self.number, step, position, seed, vmap_method="broadcast_all"
        )

    def __reduce__(self) -> Any:
        return HostFunction, (self.side,)


def _evaluate(number: Any, step: Any, position: Any, seed: Any) -> Any:
    """For any number of leading axes, along which chains lie."""
    axes, evaluator = np.shape(number), side_of(number)
    position, seed = jax.tree.map(np.asarray, (position, seed))
    kind = jax.dtypes.canonicalize_dtype(np.float64)

    def compute() -> Any:
        stacked, seeds = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(axes) :]), (position, seed))
        energies, gradients = evaluator.evaluate(int(np.max(step)), stacked, seeds)
        leaves, structure = jax.tree.flatten(position)
        ends = np.cumsum([leaf[(0,) * len(axes)].size for leaf in leaves])
        parts = np.split(gradients, ends[:-1], axis=1)
        parts = [part.reshape(leaf.shape).astype(leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
        with np.errstate(over="ignore"):  # what is beyond 32-bit numbers is infinite
            return energies.reshape(axes).astype(kind), structure.unflatten(parts)

    return evaluator.answer(compute, lambda: (np.full(axes, np.nan, kind), jax.tree.map(np.zeros_like, position)))


def _pickled(function: Callable[..., Any]) -> bytes:
    posix = os.name == "posix"
    require(posix, "workers", "processes", 'they need Linux or macOS here: give workers="threads"')
    try:
        return _dumps(function)
    except Exception as error:
        message = 'it cannot be pickled for worker processes: make what it needs inside of it, or give workers="threads"'
        raise ValueError(f"function={function!r} is not possible: {message} ({type(error).__name__}: {error})") from error


def _dumps(thing: Any) -> bytes:
    """By cloudpickle, which also takes functions of a notebook, where it is installed."""
    dumps = pickle.dumps
    with suppress(ImportError):
        from cloudpickle import dumps
    return dumps(thing)


def _shown(row: np.ndarray) -> str:
    return np.array2string(row, threshold=20, separator=", ", max_line_width=10**6)
