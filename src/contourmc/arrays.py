"""Things that hold arrays which a compiled program takes as arguments."""

from typing import Any

import jax


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
