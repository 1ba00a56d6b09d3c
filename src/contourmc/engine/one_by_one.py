"""Chains that are evaluated one after the other, where a vector of them would be slower.

A convolution whose kernel differs from chain to chain becomes one in groups, for which neither a CPU nor a GPU has fast
routines: four chains of a small network took 5.7 times as long as one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from contourmc._core.pytrees import HoldsArrays


def one_by_one(thing: HoldsArrays, method: str) -> Callable[..., Any]:
    """A method of an object with arrays; mapped over chains, it is called for each in turn.

    On a CPU not in a compiled loop, in which convolutions are slow (see `Build.unroll`).
    """
    # Its arrays are arguments: a function with a rule for how it is mapped may not capture any.
    mapped = jax.custom_batching.custom_vmap(lambda thing, *given: getattr(thing, method)(*given))

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Any, *arguments: Any) -> tuple[Any, Any]:
        leaves, structure = jax.tree.flatten(list(arguments))
        batched = structure.flatten_up_to(in_batched)

        def of_one(some: list[Any]) -> Any:
            own = iter(some)
            return mapped(
                *structure.unflatten([next(own) if b else leaf for leaf, b in zip(leaves, batched, strict=True)])
            )

        stacked = [leaf for leaf, b in zip(leaves, batched, strict=True) if b]
        if jax.default_backend() == "cpu":
            results = [of_one([leaf[i] for leaf in stacked]) for i in range(axis_size)]
            result = jax.tree.map(lambda *each: jnp.stack(each), *results)
        else:
            result = jax.lax.map(of_one, stacked)
        return result, jax.tree.map(lambda _: True, result)

    return partial(mapped, thing)
