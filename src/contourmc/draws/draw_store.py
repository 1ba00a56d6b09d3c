"""The draws of a run in a Zarr store on disk, to which it adds while it goes on.

xarray opens it, also while a run writes: `xarray.open_datatree(folder, engine="zarr", consolidated=False)`. Energies,
weights and the steps of draws are in the root, positions in the group `draws`, and in `unconstrained` as they were
sampled if that differs, states of the target in `target_states`; all arrays have axes (chain, draw, …).

Draws are written in whole chunks; only the last may be incomplete, and is written again as a whole when there are more.
Whoever knows how many draws are there can read those while more are added, and a process that is killed leaves no
draw half written. Several processes each write the chunks of their own chains.

Zarr reads a missing chunk as zeros. Therefore every chunk is written, also one of zeros alone, and has to be there:

- The file of a chunk ends with a CRC-32C of what is before it, by Zarr's codec.
- The array `checksums` repeats the CRC-32C of every file of the chunks that are complete. So a missing chunk, an older
  one, and one from another place are noticed by the last four bytes of a file.
- The attributes of the root have digests of all metadata, the files `zarr.json`.
- A reader is given a digest of the metadata, of the checksums, and of the draws in the incomplete chunk.

Opening a store to read it looks at the ends of all files. A run that goes on reads the files as a whole, since it must
not find out after its last step that draws are lost. Draws that are used are compared with their checksums each time.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from contourmc._core.processes import from_first, in_all, is_first, joined_rows, process, several
from contourmc._core.pytrees import is_key
from contourmc.draws.tree_files import from_group, structure_of, variables

CHUNK_BYTES = 2**24  # of the draws of all chains in a chunk, over all arrays
MOST_DRAWS = 4096  # in a chunk
LAZY = ("draws", "unconstrained")  # the groups whose arrays are read when they are used

_METADATA, _CHECKSUMS, _DIGESTS = "zarr.json", "checksums", "digests"
_GROWING = ("draw", "chunk")  # axes
_CHECKSUM = np.dtype(np.uint32)

# Pytrees of arrays with axes (chain, draw, …), by the path of their group; a tree may be None.
Columns = dict[str, Any]


@dataclass(frozen=True)
class StoredArray:
    """Draws on disk, and some more in memory, as an array with axes (chain, draw, …) that is read when it is used."""

    stored: Callable[[], np.ndarray]
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
        stored = self.stored().astype(self.dtype, copy=False)
        return np.concatenate([stored, self.rest], axis=1).astype(dtype or self.dtype, copy=False)


class _Layout(NamedTuple):
    """The chunks of an array.

    numbers: how many there are along each axis.
    axis: the axis along which the array grows.
    column: of `checksums`, the first for this array.
    """

    numbers: list[int]
    axis: int
    column: int


class CheckedStore:
    """A Zarr store whose files are compared with their checksums.

    path: of the folder.
    mode: `r` to read it, `r+` to write to it, too.
    count: how many draws of each chain are known to be there.
    root: Zarr's group.
    names: of the arrays with draws, by their paths; `groups`: of the groups that they are in.
    chunk: draws of each chain in a chunk.
    digest: of its metadata.

    Raises if the metadata are damaged, or say that there are fewer draws.
    """

    def __init__(self, path: Path, mode: Literal["r", "r+"], count: int):
        import zarr

        self.path, documents = path, _read_metadata(path)
        arrays = {name: document for name, document in documents.items() if document["node_type"] == "array"}
        self.names = sorted(arrays.keys() - {_CHECKSUMS})
        self.groups = sorted(documents.keys() - arrays.keys() - {""})
        self.chunk: int = _chunks(arrays["draw"])[0]
        self._rows: int = _chunks(arrays[_CHECKSUMS])[0]
        self._layouts: dict[str, _Layout] = {}
        column = 0
        for name in (*self.names, _CHECKSUMS):
            axes, shape = arrays[name]["dimension_names"], arrays[name]["shape"]
            axis = next(i for i, one in enumerate(axes) if one in _GROWING)
            length, least = shape[axis], count // self.chunk if name == _CHECKSUMS else count
            if not isinstance(length, int) or length < least:
                what = f"it is damaged: it says that there are {length} {axes[axis]}s, and there were {least}"
                _damaged(path / name / _METADATA, what)
            numbers = [-(-size // chunk) for size, chunk in zip(shape, _chunks(arrays[name]), strict=True)]
            self._layouts[name] = _Layout(numbers, axis, column)
            column += len(self._files(name, 0))
        self.digest: str = documents[""]["attributes"][_DIGESTS][""]
        self.root: Any = zarr.open_group(path, mode=mode, use_consolidated=False)

    def require(self, names: Iterable[str], first: int, count: int, *, whole: bool) -> None:
        """Raise unless the files with the draws from number `first` to `count` are those that were written.

        whole: read the files, and not only their ends.
        """
        complete, known = count // self.chunk, self.checksums(count)
        for name in names:
            for number in range(first // self.chunk, -(-count // self.chunk)):
                for column, file in enumerate(self._files(name, number), self._layouts[name].column):
                    found = _checksum_of(file, whole=whole)
                    if number < complete and found != known[number, column]:
                        _damaged(file, "it is damaged: it is not the chunk that was written there")

    def read(self, name: str, first: int, count: int) -> np.ndarray:
        """The draws of an array from number `first` to `count`."""
        self.require((name,), first, count, whole=True)
        part = (slice(None),) * self._layouts[name].axis + (slice(first, count),)
        return np.asarray(self.root[name][part])

    def checksums(self, count: int) -> np.ndarray:
        """The checksums of the files of the chunks that the first `count` draws complete; a row for each chunk."""
        complete = count // self.chunk
        for number in range(-(-complete // self._rows)):
            for file in self._files(_CHECKSUMS, number):
                _checksum_of(file, whole=True)
        return np.asarray(self.root[_CHECKSUMS][:complete])

    def note_checksums(self, first: int, count: int) -> None:
        """Write down the checksums of the chunks that the draws from number `first` to `count` complete."""
        begin, end = first // self.chunk, count // self.chunk
        if begin < end:
            rows = [[_checksum_of(file, whole=False) for file in self._files_of_chunk(n)] for n in range(begin, end)]
            array = _writable(self.root[_CHECKSUMS])
            _grow(array, end, axis=0)
            array[begin:end] = np.array(rows, _CHECKSUM)

    def remove_damaged(self, first: int) -> None:
        """Remove damaged files of draws from number `first` on, which will be written again.

        Zarr would read such a file before it writes a part of its chunk.
        """
        number = first // self.chunk
        while files := [file for file in self._files_of_chunk(number) if file.exists()]:
            for file in files:
                try:
                    _checksum_of(file, whole=True)
                except ValueError:
                    file.unlink()
            number += 1

    def _files_of_chunk(self, number: int) -> list[Path]:
        return [file for name in self.names for file in self._files(name, number)]

    def _files(self, name: str, number: int) -> list[Path]:
        """The files of an array with one chunk of the axis along which it grows: one for each group of chains."""
        numbers, axis, _ = self._layouts[name]
        places = product(*((number,) if i == axis else range(count) for i, count in enumerate(numbers)))
        return [self.path.joinpath(name, "c", *map(str, place)) for place in places]


class DrawStore:
    """path: of the folder.
    chunk: draws of each chain in a chunk.
    """

    def __init__(self, path: Path, like: Columns, steps: np.ndarray, count: int = 0):
        """Open a store for draws like these, of which only shapes and types matter; make it if there is none.

        count: the draws of each chain that are in it already, from which the run goes on. Raises if they are damaged.
        """
        self.path, self._count = path, count

        def make() -> None:
            if count == 0 and not path.exists():
                _create(path, like, steps, _draws_in_chunk(like))

        def check() -> None:
            self._store.require(self._store.names, 0, count, whole=True)
            self._store.remove_damaged(count)

        from_first(make)
        self._store = in_all(self._open)
        from_first(check)
        self.chunk = self._store.chunk

    def write(self, first: int, columns: Columns, steps: np.ndarray) -> None:
        """Write draws, of this process's chains, from number `first` on, a multiple of the chunk.

        Draws after these, which a run has left that was killed and resumed, are the same as those that are to come.
        """
        in_all(self._require_there)  # or Zarr would make another one, in which what was there is zeros
        arrays = _named(columns)
        root = self._store.root
        chains = next(iter(arrays.values())).shape[0]
        in_chunk = root[next(iter(arrays))].chunks[0]
        number, _ = process()
        begin, writes = number * chains, True
        if chains % in_chunk:  # chunks with chains of several processes, which must not write to the same one
            arrays, begin, writes = joined_rows(arrays), 0, is_first()
        end = first + len(steps)

        def grow() -> None:
            for name in arrays:
                _grow(root[name], end, axis=1)
            _grow(root["draw"], end, axis=0)
            _writable(root["draw"])[first:end] = steps

        def put() -> None:
            for name, values in arrays.items() if writes else ():
                _writable(self._store.root[name])[begin : begin + len(values), first:end] = values

        from_first(grow)
        if several():
            self._store = in_all(self._open)  # its arrays have grown
        in_all(put)
        from_first(lambda: self._store.note_checksums(first, end))

    def with_rest(self, count: int, rest: Columns) -> Columns:
        """The first `count` draws and some more, which are in memory; positions are read when they are used."""
        in_all(self._require_there)
        joined = dict(rest)
        for path, tree in _given(rest):
            names, (leaves, structure) = variables(tree), jax.tree.flatten(tree)
            stored = [partial(self._store.read, _name(path, name), 0, count) for name in names]
            joined[path] = structure.unflatten(map(partial(_join, count, lazy=path in LAZY), stored, leaves))
        return joined

    def _open(self) -> CheckedStore:
        return CheckedStore(self.path, "r+", self._count)

    def _require_there(self) -> None:
        if not (self.path / _METADATA).exists():
            raise FileNotFoundError(f"the draws of the run are gone: somebody has removed {self.path}")


def read_store(path: Path, count: int, digest: str) -> Columns:
    """The first `count` draws of a store; positions are read when they are used.

    digest: what `digest_of` gave for these draws. Raises if they are others now.
    """
    store = CheckedStore(path, "r", count)
    store.require(store.names, 0, count, whole=False)
    complete = count - count % store.chunk
    last = {name: store.read(name, complete, count) for name in store.names}
    if _digest_of(store, count, last) != digest:
        _damaged(path, f"it is damaged: its checksums, or its draws from number {complete} on, are not the run's")

    def later(array: Any, dtype: Any) -> StoredArray:
        none = np.empty((array.shape[0], 0, *array.shape[2:]), dtype)
        return StoredArray(partial(store.read, array.path, 0, count), count, none)

    def now(array: Any, dtype: Any) -> np.ndarray:
        return np.asarray(later(array, dtype))

    columns = {"/": from_group(store.root, now), "draw": store.read("draw", 0, count)}
    return columns | {name: from_group(store.root[name], later if name in LAZY else now) for name in store.groups}


def digest_of(path: Path, count: int, columns: Columns, steps: np.ndarray) -> str:
    """A digest of the first `count` draws of a store, of which those in its incomplete chunk are given."""
    store = CheckedStore(path, "r", count)
    return _digest_of(store, count, _named(columns) | {"draw": steps})


def _digest_of(store: CheckedStore, count: int, last: dict[str, np.ndarray]) -> str:
    digest = hashlib.blake2b(store.digest.encode(), digest_size=16)
    digest.update(store.checksums(count).tobytes())
    for name, values in sorted(last.items()):
        digest.update(f"{name} {values.dtype} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _join(count: int, stored: Callable[[], np.ndarray], rest: Any, *, lazy: bool) -> Any:
    """Draws on disk and in memory, as one array."""
    if is_key(rest):
        keys = jax.random.wrap_key_data(jnp.asarray(stored()), impl=str(jax.random.key_impl(rest)))
        return jnp.concatenate([keys, rest], axis=1)
    joined = StoredArray(stored, count, np.asarray(rest))
    return joined if lazy else np.asarray(joined)


def _named(columns: Columns) -> dict[str, np.ndarray]:
    """The arrays by their paths in the store."""
    groups = ((path, variables(tree)) for path, tree in _given(columns))
    return {_name(path, name): values for path, group in groups for name, values in group.items()}


def _name(path: str, name: str) -> str:
    return name if path == "/" else f"{path}/{name}"


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
    files = 1  # with the draws of a chunk
    for place, tree in _given(like):
        group = root if place == "/" else root.create_group(place)
        group.attrs["structure"] = structure_of(tree)
        for name, values in variables(tree).items():
            own = [f"{name}_{i}" for i in range(values.ndim - 2)]
            shape = (values.shape[0] * processes, 0, *values.shape[2:])
            chunks = (values.shape[0], chunk, *values.shape[2:])
            _array(group, name, shape, chunks, values.dtype, ("chain", "draw", *own))
            files += processes if 0 not in values.shape[2:] else 0
    _array(root, "draw", (0,), (chunk,), steps.dtype, ("draw",))
    _array(root, _CHECKSUMS, (0, files), (max(1, 2**16 // files), files), _CHECKSUM, ("chunk", "file"))
    folders = sorted(file.parent for file in aside.rglob(_METADATA) if file.parent != aside)
    digests = {folder.relative_to(aside).as_posix(): _digest(_document(folder / _METADATA)) for folder in folders}
    root.attrs[_DIGESTS] = digests
    root.attrs[_DIGESTS] = digests | {"": _digest(_document(aside / _METADATA))}
    aside.rename(path)


def _array(group: Any, name: str, shape: Any, chunks: Any, dtype: Any, axes: tuple[str, ...]) -> None:
    from zarr.codecs import Crc32cCodec, ZstdCodec

    chunks = tuple(max(1, size) for size in chunks)
    codecs = ZstdCodec(), Crc32cCodec()
    group.create_array(name, shape=shape, chunks=chunks, dtype=dtype, compressors=codecs, dimension_names=axes)


def _grow(array: Any, end: int, axis: int) -> None:
    if array.shape[axis] < end:
        array.resize((*array.shape[:axis], end, *array.shape[axis + 1 :]))


def _writable(array: Any) -> Any:
    """The array, so that a chunk of zeros is written as well."""
    return array.with_config({"write_empty_chunks": True})


# --- What tells whether a file is the one that was written ----------------------------------------------------


def _damaged(file: Path, what: str) -> NoReturn:
    remedy = "Restore it from a copy, or begin the run anew in another folder"
    raise ValueError(f"file={str(file)!r} is not possible: {what}. {remedy}")


def _checksum_of(file: Path, *, whole: bool) -> int:
    """The checksum at the end of the file of a chunk; compared with the rest of the file if `whole`."""
    import google_crc32c

    size = _CHECKSUM.itemsize
    try:
        with file.open("rb", buffering=0) as opened:
            if not whole:
                opened.seek(max(0, os.fstat(opened.fileno()).st_size - size))
            content = opened.readall()
    except FileNotFoundError:
        _damaged(file, "it is missing, and with it draws of the run")
    if len(content) < size:
        _damaged(file, "it is damaged: it is cut off")
    found = int.from_bytes(content[-size:], sys.byteorder)
    if whole and found != google_crc32c.value(content[:-size]):
        _damaged(file, "it is damaged: its content is not what was written, by its checksum")
    return found


def _read_metadata(path: Path) -> dict[str, dict[str, Any]]:
    """The metadata of all arrays and groups, by their paths, and of the root by an empty one; raises if damaged."""
    root = _document(path / _METADATA)
    try:
        digests = dict(root["attributes"][_DIGESTS])
    except (KeyError, TypeError, ValueError):
        digests = {}
    documents = {"": root}
    for name in sorted({"", *digests}):
        documents[name] = document = _document(path / name / _METADATA)
        if _digest(document) != digests.get(name):
            _damaged(path / name / _METADATA, "it is damaged: it is not what was written, by its digest")
    return documents


def _document(file: Path) -> Any:
    """The metadata in a file."""
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError:
        _damaged(file, "it is missing")
    except ValueError:
        _damaged(file, "it is damaged: it is not JSON")


def _digest(document: Any) -> str:
    """A digest of metadata, but for what grows, and for the digest of the root itself; empty if these are none."""
    try:
        fixed = document | {"attributes": dict(document["attributes"])}
        if fixed["node_type"] == "array":
            sizes = zip(document["dimension_names"], document["shape"], strict=True)
            fixed["shape"] = [size for axis, size in sizes if axis not in _GROWING]
        if _DIGESTS in fixed["attributes"]:
            fixed["attributes"][_DIGESTS] = {name: one for name, one in fixed["attributes"][_DIGESTS].items() if name}
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""
    return hashlib.blake2b(json.dumps(fixed, sort_keys=True).encode(), digest_size=16).hexdigest()


def _chunks(document: dict[str, Any]) -> list[int]:
    return document["chunk_grid"]["configuration"]["chunk_shape"]
