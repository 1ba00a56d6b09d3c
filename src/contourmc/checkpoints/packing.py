"""The state of a run as a dictionary of arrays, as `numpy.savez` writes them, and back.

An outline, which is JSON, says where the arrays belong: the same pytree, with the number of an array in its place.
Named tuples are named in it by their classes, which are only looked up: nothing is called or imported. Pytrees of the
user's, such as positions, are not described at all, since their classes may have been defined in a notebook: they are
rebuilt with the structures that the run has when it is resumed.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from contourmc._core.pytrees import is_key

Arrays = dict[str, np.ndarray]
_OUTLINE, _DIGEST = "outline", "digest"


class DamagedError(Exception):
    """Arrays that are not those which were packed."""


def pack(tree: Any, structures: Sequence[Any]) -> Arrays:
    """A pytree as arrays, which are on the host, and do not change when the run goes on.

    structures: those of the user's pytrees that may be in it.
    """
    arrays: Arrays = {}
    outline = _outline(tree, structures, arrays)
    return arrays | {_OUTLINE: np.frombuffer(json.dumps(outline).encode(), np.uint8)}


def sealed(arrays: Arrays) -> Arrays:
    """With a digest of them, by which damage is noticed."""
    return arrays | {_DIGEST: _digest(arrays)}


def unpack(arrays: Arrays, structures: Sequence[Any]) -> Any:
    """The pytree that was packed; raises a `DamagedError` if anything has changed since it was sealed."""
    arrays = dict(arrays)
    given = arrays.pop(_DIGEST, None)
    if given is None or _OUTLINE not in arrays or not np.array_equal(given, _digest(arrays)):
        raise DamagedError("its arrays are not those that were written")
    return _filled(json.loads(arrays[_OUTLINE].tobytes()), structures, arrays)


def structures_of(*trees: Any) -> list[Any]:
    """The structures of pytrees of the user's; single arrays, and None, have none worth naming."""
    structures = [jax.tree.structure(tree) for tree in trees]
    return [one for one in structures if one.num_leaves and one != jax.tree.structure(0)]


def _outline(node: Any, structures: Sequence[Any], arrays: Arrays) -> Any:
    """The outline of a pytree, whose arrays are added to the others."""

    def each(parts: Sequence[Any]) -> list[Any]:
        return [_outline(part, structures, arrays) for part in parts]

    if node is None or (isinstance(node, (bool, int, float, str)) and not isinstance(node, np.generic)):
        return node
    if isinstance(node, (jax.Array, np.ndarray, np.generic)):
        return _slot(node, arrays)
    structure = jax.tree.structure(node)
    if structure in structures:
        return {"structure": structures.index(structure), "leaves": each(jax.tree.leaves(node))}
    kind = type(node)
    if isinstance(node, tuple) and hasattr(kind, "_fields"):
        fields = dict(zip(kind._fields, each(node), strict=True))
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": fields}
    if kind in (tuple, list):
        return {kind.__name__: each(node)}
    if isinstance(node, dict) and kind is dict:
        return {"dict": [*map(list, zip(node, each([*node.values()]), strict=True))]}
    raise TypeError(f"a checkpoint cannot hold a {kind.__module__}.{kind.__qualname__}")


def _slot(leaf: Any, arrays: Arrays) -> dict[str, Any]:
    """The place of an array, which is added to the others."""
    number = str(len(arrays))
    if is_key(leaf):
        arrays[number] = np.asarray(jax.random.key_data(leaf))
        return {"array": number, "as": "key", "key": str(jax.random.key_impl(leaf))}
    kind = "jax" if isinstance(leaf, jax.Array) else "numpy" if isinstance(leaf, np.ndarray) else "scalar"
    array = np.asarray(leaf)
    if array.dtype.hasobject:
        raise TypeError("a checkpoint cannot hold an array of Python objects")
    if array.dtype.type.__module__ == "numpy":
        arrays[number] = array
        return {"array": number, "as": kind}
    # NumPy's files lose the names of other types, such as bfloat16.
    arrays[number] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return {"array": number, "as": kind, "dtype": array.dtype.name, "shape": array.shape}


def _filled(node: Any, structures: Sequence[Any], arrays: Arrays) -> Any:
    """The pytree of an outline."""

    def each(parts: Sequence[Any]) -> list[Any]:
        return [_filled(part, structures, arrays) for part in parts]

    match node:
        case {"structure": which, "leaves": leaves}:
            return structures[which].unflatten(each(leaves))
        case {"class": name, "fields": fields}:
            return tuple.__new__(_class(name, [*fields]), each([*fields.values()]))
        case {"array": number, "as": kind}:
            return _array(arrays[number], kind, node)
        case {"tuple": parts}:
            return tuple(each(parts))
        case {"list": parts}:
            return each(parts)
        case {"dict": items}:
            return {key: _filled(value, structures, arrays) for key, value in items}
    return node


def _array(stored: np.ndarray, kind: str, slot: dict[str, Any]) -> Any:
    if kind == "key":
        return jax.random.wrap_key_data(jnp.asarray(stored), impl=slot["key"])
    array = stored.view(jnp.dtype(slot["dtype"])).reshape(slot["shape"]) if "dtype" in slot else stored
    return jnp.asarray(array) if kind == "jax" else array[()] if kind == "scalar" else array


def _class(name: str, fields: list[str]) -> type:
    """A class of named tuples that has been imported."""
    module, _, path = name.partition(":")
    kind = reduce(lambda part, one: getattr(part, one, None), path.split("."), sys.modules.get(module))
    if not (isinstance(kind, type) and issubclass(kind, tuple) and getattr(kind, "_fields", None) == tuple(fields)):
        raise TypeError(f"there is no {name} with the fields {', '.join(fields)} here")
    return kind


def _digest(arrays: Arrays) -> np.ndarray:
    digest = hashlib.blake2b()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return np.frombuffer(digest.digest(), np.uint8)
