"""Preconditioners: the units in which a step is measured."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc._core.checks import require
from contourmc._core.pytrees import HoldsArrays, Position, position_size


@dataclass(frozen=True, eq=False)
class Factor(HoldsArrays, arrays=("matrix",)):
    """The factor L of a covariance LLᵀ, for coordinates that depend on one another.

    It acts on the numbers of a position in the order of its leaves.
    """

    matrix: Float[Array, "size size"] = field(repr=False)


# L as σ of every coordinate, shaped like a position; as a matrix; or None for 1.
Scale = Position | Factor | None


def check_scale(scale: Scale) -> None:
    """Raise unless all its numbers are finite, and above 0 where each is that of a coordinate."""
    for leaf in jax.tree.leaves(scale):
        values = np.asarray(leaf)
        real = any(jnp.issubdtype(values.dtype, kind) for kind in (jnp.floating, jnp.integer))
        fine = real and bool(np.all(np.isfinite(values.astype(float)) & ((values > 0) | isinstance(scale, Factor))))
        require(fine, "scale", scale, "give the σ of every coordinate, shaped like a position: finite, and above 0")


def require_shape(scale: Scale, position: Position) -> None:
    """Raise unless the scale is one of such positions."""
    if isinstance(scale, Factor):
        size, given = position_size(position), scale.matrix.shape
        require(given == (size, size), "scale", f"a matrix of shape {given}", f"give one of shape {(size, size)}")
    elif scale is not None:
        alike = jax.tree.structure(scale) == jax.tree.structure(position)
        require(alike, "scale", scale, "give the σ of every coordinate, shaped like a position: a pytree as init is")
        for one, leaf in zip(jax.tree.leaves(scale), jax.tree.leaves(position), strict=True):
            given, wanted = jnp.shape(one), leaf.shape
            fine = given == () or given == wanted
            require(fine, "scale", f"an array of shape {given}", f"give one of shape {wanted}, as init has")


def scaled(scale: Scale, velocity: Position) -> Position:
    """L·v, from units of the scale to those of positions."""
    if isinstance(scale, Factor):
        return from_vector(scale.matrix @ to_vector(velocity), velocity)
    return _multiplied(scale, velocity)


def scaled_gradient(scale: Scale, gradient: Position) -> Position:
    """Lᵀ·∇U, the gradient in units of the scale."""
    if isinstance(scale, Factor):
        return from_vector(to_vector(gradient) @ scale.matrix, gradient)
    return _multiplied(scale, gradient)


def _multiplied(scale: Position | None, vector: Position) -> Position:
    if scale is None:
        return vector
    return jax.tree.map(lambda s, v: jnp.asarray(s).astype(v.dtype) * v, scale, vector)


def to_vector(position: Position) -> Float[Array, " size"]:
    """All numbers of a position, one leaf after the other."""
    leaves = [jnp.ravel(leaf) for leaf in jax.tree.leaves(position)]
    return leaves[0] if len(leaves) == 1 else jnp.concatenate(leaves)


def from_vector(vector: Float[Array, " size"], like: Position) -> Position:
    """The position with these numbers, of the same shapes and types as another."""
    leaves, structure = jax.tree.flatten(like)
    parts, begin = [], 0
    for leaf in leaves:
        parts.append(vector[begin : begin + leaf.size].reshape(leaf.shape).astype(leaf.dtype))
        begin += leaf.size
    return jax.tree.unflatten(structure, parts)
