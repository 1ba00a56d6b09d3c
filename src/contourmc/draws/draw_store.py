"""The draws of a run in a Zarr store on disk, to which it adds while it goes on.

xarray opens it, also while a run writes: `xarray.open_datatree(folder, engine="zarr", consolidated=False)`. Energies,
weights and the steps of draws are in the root, positions in the group `draws`, and in `unconstrained` as they were
sampled if that differs, states of the target in `target_states`; all arrays have axes (chain, draw, …).

Draws are written in whole chunks; only the last may be incomplete, and is written again as a whole when there are more.
Whoever knows how many draws are there can read those while more are added, and a process that is killed leaves no
draw half written. Of several processes each writes the chunks of its own chains.
"""

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from contourmc._core.processes import from_first, in_all, is_first, joined_rows, process, several
from contourmc._core.pytrees import is_key
from contourmc.draws.tree_files import from_group, structure_of, variables

CHUNK_BYTES = 2**24  # of the draws of all chains in a chunk, over all arrays
MOST_DRAWS = 4096  # in a chunk
LAZY = ("draws", "unconstrained")  # the groups whose arrays are read when they are used

# Pytrees of arrays with axes (chain, draw, …), by the path of their group; a tree may be None.
Columns = dict[str, Any]


@dataclass(frozen=True)
class StoredArray:
    """Draws on disk, and some more in memory, as an array with axes (chain, draw, …) that is read when it is used."""

    stored: Any
    count: int
    rest: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        chains, rest, *own = self.rest.shape
        return (chains, self.count + rest, *own)

    @property
    def dtype(self) -> np.dtype:
        return self.rest.dtype

    @property
    def ndim(self) -> int:
        return self.rest.ndim

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        stored = np.asarray(self.stored[:, : self.count]).astype(self.dtype, copy=False)
        return np.concatenate([stored, self.rest], axis=1).astype(dtype or self.dtype, copy=False)


class DrawStore:
    """path: of the folder.
    chunk: draws of each chain in a chunk.
    """

    def __init__(self, path: Path, like: Columns, steps: np.ndarray):
        """Open a store for draws like these, of which only shapes and types matter; make it if there is none."""
        self.path = path

        def make() -> None:
            if not (path / "zarr.json").exists():
                _create(path, like, steps, _draws_in_chunk(like))

        from_first(make)
        self._root = in_all(self._open)
        self.chunk: int = self._root["draw"].chunks[0]

    def write(self, first: int, columns: Columns, steps: np.ndarray) -> None:
        """Write draws, of this process's chains, from number `first` on, a multiple of the chunk.

        Draws after these, which a run has left that was killed and resumed, are the same as those that are to come.
        """
        in_all(self._require_there)  # or Zarr would make another one, in which what was there is zeros
        named = ((path, variables(tree)) for path, tree in _given(columns))
        arrays = {f"{path}/{name}": values for path, group in named for name, values in group.items()}
        chains = next(iter(arrays.values())).shape[0]
        in_chunk = self._root[next(iter(arrays))].chunks[0]
        number, _ = process()
        begin, writes = number * chains, True
        if chains % in_chunk:  # chunks with chains of several processes, which must not write to the same one
            arrays, begin, writes = joined_rows(arrays), 0, is_first()
        end = first + len(steps)

        def grow() -> None:
            for name in arrays:
                _grow(self._root[name], end, axis=1)
            _grow(self._root["draw"], end, axis=0)
            self._root["draw"][first:end] = steps

        def put() -> None:
            for name, values in arrays.items() if writes else ():
                self._root[name][begin : begin + len(values), first:end] = values

        from_first(grow)
        if several():
            self._root = in_all(self._open)  # its arrays have grown
        in_all(put)

    def with_rest(self, count: int, rest: Columns) -> Columns:
        """The first `count` draws and some more, which are in memory; positions are read when they are used."""
        in_all(self._require_there)
        joined = dict(rest)
        for path, tree in _given(rest):
            names, (leaves, structure) = variables(tree), jax.tree.flatten(tree)
            arrays = [self._root[f"{path}/{name}"] for name in names]
            joined[path] = structure.unflatten(map(partial(_join, count, lazy=path in LAZY), arrays, leaves))
        return joined

    def _open(self) -> Any:
        import zarr

        return zarr.open_group(self.path, mode="r+", use_consolidated=False)

    def _require_there(self) -> None:
        if not (self.path / "zarr.json").exists():
            raise FileNotFoundError(f"the draws of the run are gone: somebody has removed {self.path}")


def read_store(path: Path, count: int) -> Columns:
    """The first `count` draws of a store; positions are read when they are used."""
    import zarr

    root: Any = zarr.open_group(path, mode="r", use_consolidated=False)

    def later(array: Any, dtype: Any) -> StoredArray:
        return StoredArray(array, count, np.empty((array.shape[0], 0, *array.shape[2:]), dtype))

    def now(array: Any, dtype: Any) -> np.ndarray:
        return np.asarray(later(array, dtype))

    columns = {"/": from_group(root, now), "draw": root["draw"][:count]}
    return columns | {name: from_group(root[name], later if name in LAZY else now) for name in root.group_keys()}


def _join(count: int, array: Any, rest: Any, *, lazy: bool) -> Any:
    """Draws on disk and in memory, as one array."""
    if is_key(rest):
        stored = jax.random.wrap_key_data(array[:, :count], impl=str(jax.random.key_impl(rest)))
        return jnp.concatenate([stored, rest], axis=1)
    joined = StoredArray(array, count, np.asarray(rest))
    return joined if lazy else np.asarray(joined)


def _given(columns: Columns) -> list[tuple[str, Any]]:
    return [(path, tree) for path, tree in columns.items() if tree is not None]


def _draws_in_chunk(like: Columns) -> int:
    """A power of two, so that a chunk of all arrays has a size that is worth a file and fits into memory."""
    leaves = [leaf for _, tree in _given(like) for leaf in variables(tree).values()]
    one = sum(leaf.dtype.itemsize * leaf.shape[0] * int(np.prod(leaf.shape[2:])) for leaf in leaves)
    return min(MOST_DRAWS, 2 ** max(0, (CHUNK_BYTES // max(1, one)).bit_length() - 1))


def _create(path: Path, like: Columns, steps: np.ndarray, chunk: int) -> None:
    """An empty store, made aside and moved to its place when it is complete."""
    import zarr

    aside, (_, processes) = path.with_name(f".{path.name}"), process()
    shutil.rmtree(aside, ignore_errors=True)
    root = zarr.open_group(aside, mode="w")
    for place, tree in _given(like):
        group = root if place == "/" else root.create_group(place)
        group.attrs["structure"] = structure_of(tree)
        for name, values in variables(tree).items():
            own = [f"{name}_{i}" for i in range(values.ndim - 2)]
            shape = (values.shape[0] * processes, 0, *values.shape[2:])
            _array(group, name, shape, (values.shape[0], chunk, *values.shape[2:]), values, ("chain", "draw", *own))
    _array(root, "draw", (0,), (chunk,), steps, ("draw",))
    aside.rename(path)


def _array(group: Any, name: str, shape: Any, chunks: Any, like: np.ndarray, axes: tuple[str, ...]) -> None:
    chunks = tuple(max(1, size) for size in chunks)
    group.create_array(name, shape=shape, chunks=chunks, dtype=like.dtype, dimension_names=axes)


def _grow(array: Any, end: int, axis: int) -> None:
    if array.shape[axis] < end:
        array.resize((*array.shape[:axis], end, *array.shape[axis + 1 :]))
