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

    These arrays are arguments of a compiled program, so that the program can be used again with other arrays of the
    same shapes. All other attributes are constants of the program, and must be hashable. A subclass inherits the names.
    """

    _array_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, arrays: tuple[str, ...] = (), **options: Any):
        super().__init_subclass__(**options)
        names = cls._array_names = tuple(dict.fromkeys((*cls._array_names, *arrays)))

        def flatten(thing: Any) -> tuple[list[Any], Any]:
            constants = {name: value for name, value in vars(thing).items() if name not in names}
            return [getattr(thing, name) for name in names], tuple(constants.items())

        def unflatten(constants: Any, leaves: Any) -> Any:
            thing = object.__new__(cls)
            vars(thing).update(constants, **dict(zip(names, leaves, strict=True)))
            return thing

        jax.tree_util.register_pytree_node(cls, flatten, unflatten)


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


def shape_of_one(things: Any) -> Any:
    """The shapes and types of one of the objects that were stacked, without the numbers."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), things)


def position_size(position: Any) -> int:
    """How many numbers a position has, from the position itself or its shapes."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(position))
