"""The state of a run as a dictionary of arrays, as Orbax writes them, and back.

An outline says where the arrays belong: the same pytree, with the number of an array in its place. It is pickled, by
references to classes. Pytrees of the user's, such as positions, are only named in it, since their classes may have been
defined in a notebook: they are rebuilt with the structures that the run has when it is resumed.
"""

import hashlib
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from contourmc._core.pytrees import is_key

Arrays = dict[str, np.ndarray]
_OUTLINE, _DIGEST = "outline", "digest"


class DamagedError(Exception):
    """Arrays that are not those which were packed."""


class _Slot(NamedTuple):
    """The place of an array. kind: `numpy`, `jax`, or that of a random key."""

    number: str
    kind: str


class _UserTree(NamedTuple):
    """The place of a pytree of the user's. which: the number of its structure."""

    which: int
    leaves: list[Any]


def pack(tree: Any, structures: Sequence[Any]) -> Arrays:
    """A pytree as arrays.

    structures: those of the user's pytrees that may be in it.
    """
    arrays: Arrays = {}

    def slot(leaf: Any) -> Any:
        if not isinstance(leaf, (jax.Array, np.ndarray)) or leaf.size == 0:
            return leaf
        number = str(len(arrays))
        arrays[number] = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
        if is_key(leaf):
            return _Slot(number, str(jax.random.key_impl(leaf)))
        return _Slot(number, "jax" if isinstance(leaf, jax.Array) else "numpy")

    def outlined(node: Any) -> Any:
        which = _which(node, structures)
        return slot(node) if which is None else _UserTree(which, [*map(slot, jax.tree.leaves(node))])

    outline = jax.tree.map(outlined, tree, is_leaf=lambda node: _which(node, structures) is not None)
    arrays[_OUTLINE] = np.frombuffer(pickle.dumps(outline), np.uint8)
    return arrays | {_DIGEST: _digest(arrays)}


def unpack(arrays: Arrays, structures: Sequence[Any]) -> Any:
    """The pytree that was packed; raises a `DamagedError` if anything has changed since."""
    arrays = dict(arrays)
    given = arrays.pop(_DIGEST, None)
    if given is None or _OUTLINE not in arrays or not np.array_equal(given, _digest(arrays)):
        raise DamagedError("its arrays are not those that were written")

    def filled(node: Any) -> Any:
        if isinstance(node, _UserTree):
            return structures[node.which].unflatten(map(filled, node.leaves))
        if not isinstance(node, _Slot):
            return node
        array = arrays[node.number]
        if node.kind in ("numpy", "jax"):
            return array if node.kind == "numpy" else jnp.asarray(array)
        return jax.random.wrap_key_data(jnp.asarray(array), impl=node.kind)

    return jax.tree.map(
        filled, pickle.loads(arrays[_OUTLINE].tobytes()), is_leaf=lambda node: isinstance(node, (_Slot, _UserTree))
    )


def structures_of(*trees: Any) -> list[Any]:
    """The structures of pytrees of the user's; single arrays, and None, have none worth naming."""
    structures = [jax.tree.structure(tree) for tree in trees]
    return [one for one in structures if one.num_leaves and one != jax.tree.structure(0)]


def _which(node: Any, structures: Sequence[Any]) -> int | None:
    structure = jax.tree.structure(node)
    return structures.index(structure) if structure in structures else None


def _digest(arrays: Arrays) -> np.ndarray:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
