"""Pytrees in files: each array is a variable with a readable name, and the structure is kept beside them as JSON.

The structure is plain data, such as `{"dict": [["bias", {"array": "bias", "dtype": "float32"}]]}`. A file never makes
Python import or call anything: classes are only looked up among the modules that have been imported already.
"""

import inspect
import json
import re
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_leaves_with_path

from contourmc._core.pytrees import is_key, name_of

AXES = ("chain", "draw", "mark", "bin", "basin")
_NOT_IN_NAMES = re.compile(r"[/\x00-\x1f\x7f\ud800-\udfff]")
_PLAIN = (str, int, float, bool, type(None))


def variables(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a pytree by name: `x` for a bare array, else the path to it, such as `layer.bias`.

    Names are valid in netCDF, and none is that of an axis: characters are replaced by `_`, or `_` is added, where they
    would not be, or would clash. Numbers of types that netCDF does not have, such as bfloat16, become float32.
    """
    taken: set[str] = set(AXES)
    leaves = tree_leaves_with_path(tree)
    return {_unique(_valid(name_of(path)), taken): _known(leaf) for path, leaf in leaves}


def to_dataset(tree: Any, axes: tuple[str, ...]) -> Any:
    """An xarray.Dataset of the arrays, with the structure as an attribute.

    axes: the names of leading axes; an array with fewer axes has the first of them. Further axes of `x` are `x_0`, ….
    """
    import xarray

    arrays, data = variables(tree), {}
    taken = {*AXES, *arrays}
    for (path, _), (name, values) in zip(tree_leaves_with_path(tree), arrays.items(), strict=True):
        own = [_unique(f"{name}_{i}", taken) for i in range(values.ndim - len(axes))]
        data[name] = ((*axes[: values.ndim], *own), values, {"path": keystr(path)})
    return xarray.Dataset(data, attrs={"structure": structure_of(tree)})


def structure_of(tree: Any) -> str:
    """The structure of a pytree, with the names that `variables` gives its arrays, as JSON."""
    return json.dumps(_structure(tree, iter(variables(tree))))


def _whole(array: Any, dtype: Any) -> np.ndarray | np.generic:
    return array[()].astype(dtype, copy=False)


def from_group(group: Any, read: Callable[[Any, Any], Any] = _whole) -> Any:
    """The pytree that `to_dataset` was given, from the group of an h5py or Zarr file that holds the dataset.

    read: what makes a leaf of an array in the file and its type; by default it is read as a whole.

    Lists, tuples, and dictionaries with strings or integers as keys come back as they were. So do named tuples, and
    dataclasses that are pytrees, whose other fields are numbers or strings, if their modules have been imported;
    anything else comes back as a dictionary by field name, with a warning.
    """
    return _tree(json.loads(group.attrs["structure"]), group, read)


def _unique(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _valid(name: str) -> str:
    name = _NOT_IN_NAMES.sub("_", name).strip()
    return name if re.match(r"\w", name) else f"_{name}"


def _known(leaf: Any) -> np.ndarray:
    """The array with a type that netCDF has; float32 holds every number of smaller floating types."""
    values = np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf)
    small = jnp.issubdtype(values.dtype, jnp.floating) and values.dtype.itemsize < 4
    return values.astype(np.float32) if small else values


def _structure(node: Any, names: Iterator[str]) -> Any:
    """The structure of a pytree as plain data; takes the names of its arrays in their order."""
    if node is None:
        return None
    children, _ = tree_flatten_with_path(node, is_leaf=lambda part: part is not node)
    if children and not children[0][0]:
        if is_key(node):
            return {"key": next(names), "kind": str(jax.random.key_impl(node))}
        return {"array": next(names), "dtype": np.asarray(node).dtype.name}
    items = [_structure(child, names) for _, child in children]
    kind = type(node)
    if kind in (list, tuple):
        return {kind.__name__: items}
    named = [[_key(path[0]), item] for (path, _), item in zip(children, items, strict=True)]
    if kind in (dict, OrderedDict):
        return {kind.__name__: named}
    return {"class": f"{kind.__module__}:{kind.__qualname__}", "items": named, "fields": _other_fields(node, named)}


def _key(entry: Any) -> str | int:
    """The key, field or index of a child."""
    key = next((getattr(entry, name) for name in ("key", "name", "idx") if hasattr(entry, name)), entry)
    if isinstance(key, np.integer):
        return int(key)
    return key if isinstance(key, (str, int)) else str(key)


def _other_fields(node: Any, named: list[Any]) -> dict[str, Any]:
    """The fields of a dataclass that are not part of the pytree, as far as they are plain."""
    if not is_dataclass(node):
        return {}
    others = {field.name for field in fields(node)} - {name for name, _ in named}
    return {name: getattr(node, name) for name in sorted(others) if isinstance(getattr(node, name), _PLAIN)}


def _tree(structure: Any, group: Any, read: Callable[[Any, Any], Any]) -> Any:
    """The pytree with this structure, its arrays read from a group."""

    def each(items: list[Any]) -> dict[Any, Any]:
        return {key: _tree(item, group, read) for key, item in items}

    match structure:
        case None:
            return None
        case {"array": name, "dtype": dtype}:
            return read(group[name], jnp.dtype(dtype))
        case {"key": name, "kind": kind}:
            return jax.random.wrap_key_data(read(group[name], np.dtype(np.uint32)), impl=kind)
        case {"list": items}:
            return [_tree(item, group, read) for item in items]
        case {"tuple": items}:
            return tuple(_tree(item, group, read) for item in items)
        case {"dict": items}:
            return each(items)
        case {"OrderedDict": items}:
            return OrderedDict(each(items))
        case {"class": name, "items": items, "fields": others}:
            return _instance(name, each(items), others)
    raise KeyError("structure")


def _instance(name: str, items: dict[Any, Any], others: dict[str, Any]) -> Any:
    """An instance of the class `module:name` without calling it, or a dictionary if there is no such class now."""
    module, _, path = name.partition(":")
    kind: Any = sys.modules.get(module)
    for part in path.split("."):
        kind = inspect.getattr_static(kind, part, None)
    if isinstance(kind, type) and issubclass(kind, tuple) and getattr(kind, "_fields", None) == tuple(items):
        return tuple.__new__(kind, items.values())
    if isinstance(kind, type) and is_dataclass(kind) and {field.name for field in fields(kind)} == {*items, *others}:
        made = object.__new__(kind)
        for field, value in (items | others).items():
            object.__setattr__(made, field, value)
        return made
    message = f"{name} comes back as a dictionary: it is no named tuple or dataclass of a module that has been imported"
    warnings.warn(message, stacklevel=2)
    return items
