"""Things that hold arrays which a compiled program takes as arguments."""

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from contourmc.checks import require
from contourmc.settings import describe

Kind = TypeVar("Kind")


class HoldsArrays:
    """A pytree whose leaves are the attributes that its class names, `class Mine(HoldsArrays, arrays=("data",))`.

    They are arguments of a compiled program, which other arrays of the same shapes can use again. All other
    attributes are compiled into it, and must be hashable.
    """

    def __init_subclass__(cls, arrays: tuple[str, ...] = (), **options: Any):
        super().__init_subclass__(**options)

        def flatten(thing: Any) -> tuple[list[Any], Any]:
            fixed = {name: value for name, value in vars(thing).items() if name not in arrays}
            return [getattr(thing, name) for name in arrays], tuple(fixed.items())

        def unflatten(fixed: Any, leaves: Any) -> Any:
            thing = object.__new__(cls)
            vars(thing).update(fixed, **dict(zip(arrays, leaves, strict=True)))
            return thing

        jax.tree_util.register_pytree_node(cls, flatten, unflatten)


def stack(argument: str, things: Sequence[Kind]) -> Kind:
    """One thing, whose arrays are those of all of them along a leading axis; raises unless they are alike."""
    require(bool(things), argument, things, "a list needs at least one entry")
    leaves, structures = zip(*map(jax.tree.flatten, things), strict=True)
    for i, (own, structure) in enumerate(zip(leaves, structures, strict=True)):
        alike = structure == structures[0] and list(map(jnp.shape, own)) == list(map(jnp.shape, leaves[0]))
        remedy = f"all must be like {argument}[0], with the same functions and arrays of the same shapes"
        require(alike, f"{argument}[{i}]", describe(things[i]), remedy)
    return jax.tree.map(lambda *own: jnp.stack(own), *things)


def unstack(thing: Any, index: int) -> Any:
    """One of the things that were stacked."""
    return jax.tree.map(lambda leaf: leaf[index], thing)
