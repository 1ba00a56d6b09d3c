"""What must be the same when a run is resumed, as plain data, and what differs, in words.

Settings are compared as they are. Functions cannot be, and arrays may be large, so that these are compared by what
follows from them: schedules by their values at some steps, data by a checksum, and numbers that JAX has computed, such
as starts and predictions, by a sketch, since programs round differently on other devices.
"""

import re
import zlib
from collections.abc import Iterator
from mmap import mmap
from typing import Any

import jax
import numpy as np

from contourmc._core.pytrees import HoldsArrays, is_key, name_of
from contourmc.data.host_callback import HostData
from contourmc.data.host_side import Handle
from contourmc.data.memmap_reader import MemmapReader
from contourmc.kernels.base import Kernel
from contourmc.kernels.schedules import values_at

Identity = dict[str, Any]

MEASURED = "measured"  # the entry of an identity that holds schedules, checksums and sketches, by their names
BLOCK = 2**20  # numbers or bytes that are looked at together
MOST_BYTES = 2**28  # of a memory-mapped array that is read as a whole
ROWS = 256  # that are read of a larger one
# By how much the same energies and predictions may differ: a GPU's programs differ between processes, and may compute
# in bfloat16.
TOLERANCES = {"cpu": 1e-4}
OTHER_TOLERANCE = 1e-2
_SAME = 1e-5  # the same of what is only rounded differently


def plain(thing: Any) -> Any:
    """An identity as JSON gives it back, and without addresses in memory, which differ between processes."""
    if isinstance(thing, dict):
        return {str(name): plain(value) for name, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [*map(plain, thing)]
    return re.sub(r" at 0x[0-9a-fA-F]+", "", thing) if isinstance(thing, str) else thing


def tolerance() -> float:
    """By how much the same energies and predictions may differ, relative to their size."""
    return TOLERANCES.get(jax.default_backend(), OTHER_TOLERANCE)


def differences(before: Identity, now: Identity) -> list[str]:
    """In words, by names such as `kernel.step_size`; empty if both are the same."""
    old, new = _flat(before), _flat(now)
    found = (_difference(name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new)))
    return [words for words in found if words]


def schedules_of(part: Any, last: int, name: str = "kernel") -> Identity:
    """The values of a kernel's schedules, at some of the steps up to the last one that was planned."""
    if isinstance(part, (tuple, list)):
        return _joined(schedules_of(one, last, f"{name}.{i}") for i, one in enumerate(part))
    if not isinstance(part, Kernel):
        return {}
    apart = (np.arange(1, min(8, last) + 1), np.geomspace(1, last, 12), np.linspace(1, last, 12))
    steps = np.unique(np.concatenate(apart).astype(int)).tolist()
    found = {}
    for entry, value in vars(part).items():
        if entry in part.schedules and callable(value):
            numbers = [float(one) for one in values_at(value, steps)]
            most = float(np.max(np.abs(numbers), initial=0.0, where=np.isfinite(numbers)))
            found[f"{name}.{entry}"] = {"numbers": numbers, "steps": steps, "relative": _SAME, "absolute": 1e-7 * most}
        else:
            found |= schedules_of(value, last, f"{name}.{entry}")
    return found


def arrays_of(thing: HoldsArrays, name: str, *, exact: bool) -> Identity:
    """The arrays that an object holds, such as data, and those that its traced functions have captured.

    exact: whether the former have checksums; if not, sketches as the latter, which JAX may have computed.
    """
    return {
        f"{name}.{path}": _checksum(leaf) if exact and "captured" not in path else _sketch(leaf, _SAME)
        for path, leaf in _held(thing)
    }


def sketches_of(tree: Any, name: str, within: float = _SAME) -> Identity:
    """Sketches of the arrays of a pytree, in which all numbers count."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {f"{name}.{name_of(path)}" if path else name: _sketch(leaf, within) for path, leaf in leaves}


def _joined(parts: Iterator[Identity]) -> Identity:
    return {name: value for part in parts for name, value in part.items()}


def _held(thing: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays that an object holds, by name."""
    if isinstance(thing, HostData):
        reader = getattr(thing, "side", None)
        yield from _held(reader.data, name) if isinstance(reader, MemmapReader) else ()
    elif isinstance(thing, HoldsArrays):
        for entry in type(thing)._array_names:
            wrapped = isinstance(value := getattr(thing, entry), HoldsArrays)
            yield from () if callable(value) and not wrapped else _held(value, name if wrapped else f"{name}.{entry}")
    elif not isinstance(thing, Handle):
        holds = (HoldsArrays, Handle)
        leaves = jax.tree_util.tree_leaves_with_path(thing, is_leaf=lambda node: isinstance(node, holds))
        for path, leaf in leaves:
            inner = f"{name}.{name_of(path)}" if path else name
            if isinstance(leaf, holds):
                yield from _held(leaf, inner)
            elif isinstance(leaf, (jax.Array, np.ndarray)):
                yield inner.lstrip("."), leaf


def _checksum(array: Any) -> str:
    """Of type, shape and all bytes; of a large memory-mapped array, of some rows, with the first and the last."""
    if is_key(array):
        array = jax.random.key_data(array)
    some = _is_mapped(array) and array.nbytes > MOST_BYTES
    rows = np.unique(np.linspace(0, len(array) - 1, ROWS).astype(int)) if some else None
    kept = np.asarray(array if rows is None else array[rows])
    flat, found = kept.reshape(-1), zlib.crc32(f"{array.dtype} {array.shape}".encode())
    for begin in range(0, flat.size, BLOCK):
        found = zlib.crc32(np.ascontiguousarray(flat[begin : begin + BLOCK]).view(np.uint8).data, found)
    return f"checksum {found:08x}"


def _is_mapped(array: Any) -> bool:
    """Whether an array, or what it is a view of, is a file."""
    while array is not None and not isinstance(array, (np.memmap, mmap)):
        array = getattr(array, "base", None)
    return array is not None


def _sketch(array: Any, within: float) -> Identity:
    """The root of the mean square of the numbers, and their sum with fixed random weights, over √n.

    One number of n that changes by δ changes the second by about δ/√n: it is noticed if δ is a few `within`·√n of the
    first.
    """
    if is_key(array):
        array = jax.random.key_data(array)
    flat = np.asarray(array).reshape(-1)
    weights = np.random.default_rng(0).uniform(-1, 1, min(flat.size, BLOCK))
    squares = total = 0.0
    for i, begin in enumerate(range(0, flat.size, BLOCK)):
        numbers = flat[begin : begin + BLOCK].astype(np.float64)
        squares += float(numbers @ numbers)
        total += (1 + i / 7 % 1) * float(numbers @ weights[: numbers.size])
    size = max(1, flat.size)
    root = float(np.sqrt(squares / size))
    return {"numbers": [root, total / size**0.5], "relative": 0.0, "absolute": within * root}


def _difference(name: str, before: Any, now: Any) -> str:
    """In words; empty if both are the same."""
    if _is_numbers(before) and _is_numbers(now):
        old, new = (np.asarray(one["numbers"], float) for one in (before, now))
        if before.get("steps") == now.get("steps") and old.shape == new.shape:
            same = np.isclose(old, new, rtol=before["relative"], atol=before["absolute"], equal_nan=True)
            if same.all():
                return ""
            if "steps" in before:
                at = int(np.argmin(same))
                return f"{name} was {old[at]:.6g} and is {new[at]:.6g} now at step {before['steps'][at]}"
    elif before == now:
        return ""
    if _is_digest(before) or _is_digest(now):
        return f"{name} {'is new' if before is None else 'is gone' if now is None else 'has other numbers now'}"
    return f"{name} was {_shown(before)} and is {_shown(now)} now"


def _is_numbers(value: Any) -> bool:
    return isinstance(value, dict) and {"numbers", "relative", "absolute"} <= value.keys()


def _is_digest(value: Any) -> bool:
    return _is_numbers(value) or (isinstance(value, str) and value.startswith("checksum "))


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def _flat(identity: Identity) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(identity, is_leaf=lambda node: node is None or _is_numbers(node))
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
    return {name.removeprefix(f"{MEASURED}."): leaf for name, leaf in named.items()}
