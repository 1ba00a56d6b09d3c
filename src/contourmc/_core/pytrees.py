"""Positions, and other objects made of arrays that a compiled program takes as arguments."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from contourmc._core.checks import require
from contourmc._core.describe import describe

# While a run is planned, shapes stand for arrays.
Position = PyTree[Array | np.ndarray | np.generic | jax.ShapeDtypeStruct]
Kind = TypeVar("Kind")


class HoldsArrays:
    """A pytree whose leaves are the attributes that its class names: `class Mine(HoldsArrays, arrays=("data",))`.

    These arrays and numbers are arguments of a compiled program, so that the program can be used again with others of
    the same shapes. All other attributes are constants of the program, and must be hashable. A named attribute that is
    a function, such as a schedule in place of a number, is also a constant. A subclass inherits the names.
    """

    _array_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, arrays: tuple[str, ...] = (), **options: Any):
        super().__init_subclass__(**options)
        names = cls._array_names = tuple(dict.fromkeys((*cls._array_names, *arrays)))

        def flatten(thing: Any) -> tuple[list[Any], Any]:
            held = tuple(name for name in names if not _is_function(getattr(thing, name)))
            constants = tuple((name, value) for name, value in vars(thing).items() if name not in held)
            return [getattr(thing, name) for name in held], (held, constants)

        def unflatten(described: Any, leaves: Any) -> Any:
            thing, (held, constants) = object.__new__(cls), described
            vars(thing).update(constants, **dict(zip(held, leaves, strict=True)))
            return thing

        jax.tree_util.register_pytree_node(cls, flatten, unflatten)


def _is_function(value: Any) -> bool:
    return callable(value) and jax.tree_util.all_leaves([value])


def stack(argument: str, things: Sequence[Kind]) -> Kind:
    """One object, whose arrays stack those of the given ones along a leading axis; raises unless they are alike."""
    require(bool(things), argument, things, "a list needs at least one entry")
    leaves, structures = zip(*map(jax.tree.flatten, things), strict=True)
    for i, (arrays, structure) in enumerate(zip(leaves, structures, strict=True)):
        alike = structure == structures[0] and list(map(jnp.shape, arrays)) == list(map(jnp.shape, leaves[0]))
        remedy = f"all must be like {argument}[0], with the same functions and arrays of the same shapes"
        require(alike, f"{argument}[{i}]", describe(things[i]), remedy)
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *things)


def unstack(thing: Any, index: int) -> Any:
    """One of the objects that were stacked."""
    return jax.tree.map(lambda leaf: leaf[index], thing)


def as_arguments(thing: Kind) -> Kind:
    """The same object with its numbers as arrays, whose types are definite: Python's floats would be compiled anew."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(float)), thing)


def as_array(leaf: Any) -> Array:
    """An array on the device; JAX does not know numbers of NumPy in the other byte order, as FITS files have them."""
    other_order = isinstance(leaf, np.ndarray) and not leaf.dtype.isnative
    return jnp.asarray(leaf.astype(leaf.dtype.newbyteorder("=")) if other_order else leaf)


def shape_of_one(things: Any) -> Any:
    """The shapes and types of one of the objects that were stacked, without the numbers."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), things)


def is_key(leaf: Any) -> bool:
    """Whether an array is made of random keys, which NumPy does not know."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def name_of(path: Any) -> str:
    """The name of a leaf: `x` for a bare array, else the path to it, such as `layer.bias`."""
    return jax.tree_util.keystr(path, simple=True, separator=".") or "x"


def named_leaves(position: Any) -> dict[str, Any]:
    """The leaves of a position by name."""
    return {name_of(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(position)}


def coordinates(position: Any, leading: int = 0) -> dict[str, Any]:
    """The numbers of a position by name, such as `layer.bias[2]`; of several positions, along so many leading axes."""
    leaves = {name: np.asarray(leaf) for name, leaf in named_leaves(position).items()}
    return {
        name + "".join(f"[{i}]" for i in index): leaf[(slice(None),) * leading + index]
        for name, leaf in leaves.items()
        for index in np.ndindex(leaf.shape[leading:])
    }


def bytes_of(tree: Any) -> int:
    """What arrays take, given themselves or by their shapes."""
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def position_size(position: Any) -> int:
    """How many numbers a position has, from the position itself or its shapes."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(position))
