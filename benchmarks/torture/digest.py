"""Everything that a run has computed, as one number: equal only if all is equal, bit for bit."""

import hashlib
from dataclasses import fields
from typing import Any

import jax
import numpy as np

import contourmc as cm

NOT_COMPUTED = {"seconds", "compile_seconds", "target", "settings"}


def digest(samples: cm.Samples) -> str:
    """Of draws, weights, energies, θ, the path, averages, predictions and totals; not of the time that they took."""
    found = hashlib.sha256()
    for field in fields(samples):
        if field.name not in NOT_COMPUTED:
            _add(found, field.name, getattr(samples, field.name))
    return found.hexdigest()


def _add(found: Any, name: str, value: Any) -> None:
    if hasattr(value, "to_arrays"):
        value = value.to_arrays()
    elif hasattr(value, "__dataclass_fields__") and not hasattr(value, "__array__"):
        value = {field: getattr(value, field) for field in value.__dataclass_fields__}
    leaves = jax.tree_util.tree_leaves_with_path(value, is_leaf=lambda node: hasattr(node, "to_arrays"))
    for path, leaf in leaves:
        here = name + jax.tree_util.keystr(path)
        if hasattr(leaf, "to_arrays") or (hasattr(leaf, "__dataclass_fields__") and not hasattr(leaf, "__array__")):
            _add(found, here, leaf)
        else:
            array = np.asarray(leaf)
            found.update(f"{here} {array.dtype} {array.shape}".encode())
            found.update(repr(leaf).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes())
