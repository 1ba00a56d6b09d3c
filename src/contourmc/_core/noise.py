"""Gaussian noise in the shape of a position."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from contourmc._core.pytrees import Position


def normal_like(
    key: PRNGKeyArray, position: Position, scale: Float[Array, " steps"]
) -> PyTree[Float[Array, "steps ..."]]:
    """Gaussian noise shaped like the position, for every step, with the given standard deviations.

    Arrays of the same type share one draw, so that a position gets the same noise as the vector of its numbers.
    """
    leaves, structure = jax.tree.flatten(position)
    types = sorted({jnp.dtype(leaf.dtype) for leaf in leaves}, key=str)
    noise: list[Array | None] = [None] * len(leaves)
    for type_key, dtype in zip(jax.random.split(key, len(types)), types, strict=True):
        places = [i for i, leaf in enumerate(leaves) if leaf.dtype == dtype]
        ends = np.cumsum([leaves[i].size for i in places])
        drawn = jax.random.normal(type_key, (*scale.shape, int(ends[-1])), dtype) * scale[:, None].astype(dtype)
        for i, part in zip(places, jnp.split(drawn, ends[:-1], axis=1), strict=True):
            noise[i] = part.reshape(*scale.shape, *leaves[i].shape)
    return jax.tree.unflatten(structure, noise)
