"""A batch in equal parts, which the devices of a chain evaluate side by side, and a single device one after the other.

The energy of a batch is a sum over observations, so that energies and gradients of the parts add up to those of the
batch, however many devices there are.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from contourmc._core.mesh import DATA, is_mapped
from contourmc._core.pytrees import Position

Evaluated = tuple[Float[Array, ""], Position, Any]  # energy, gradient, state


def sum_over_parts(parts: int, evaluate: Callable[[Int[Array, ""]], Evaluated]) -> Evaluated:
    """The energy and gradient of a batch from those of its parts, by their numbers; the state is the mean of theirs."""
    if is_mapped(DATA) and jax.lax.axis_size(DATA) == parts:
        energy, gradient, state = evaluate(jax.lax.axis_index(DATA))
        energy, gradient = jax.lax.psum((energy, gradient), DATA)
        return energy, gradient, _means(lambda leaf: jax.lax.pmean(leaf, DATA), state, state)
    energies, gradients, states = jax.lax.map(evaluate, jnp.arange(parts))
    first = jax.tree.map(lambda leaf: leaf[0], states)
    total = jax.tree.map(lambda leaf: leaf.sum(axis=0), (energies, gradients))
    return *total, _means(lambda leaf: leaf.mean(axis=0), states, first)


def take_part(batch: Any, part: Int[Array, ""], size: int) -> Any:
    """A part of a batch, with so many observations."""
    return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, part * size, size), batch)


def _means(mean: Callable[[Array], Array], states: Any, first: Any) -> Any:
    """The mean of numbers; counts and random keys are the same for all parts."""

    def of_leaf(leaf: Array, one: Array) -> Array:
        return mean(leaf).astype(one.dtype) if jnp.issubdtype(one.dtype, jnp.floating) else one

    return jax.tree.map(of_leaf, states, first)
