"""A gradient in two terms, of which the flattening of a landscape multiplies one.

A landscape may be flattened by any function f of the position, ϖ(x) ∝ π(x) / Ψ^ζ(f(x)). Then

    τ ∇ log ϖ = −∇U − ζτ·s(f)·∇f,     s = d log Ψ / df,

and if f is a term of U, such as that of the data in U = f − log prior, this is

    −(1 + ζτ·s(f))·∇f − ∇(U − f):

the multiplier acts on the gradient of f alone. With f = U it acts on all of it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contourmc._core.checks import require
from contourmc._core.pytrees import Position


class GradientTerms(NamedTuple):
    """flattened: ∇f, of the term by which the landscape is flattened.  rest: ∇(U − f), of all others."""

    flattened: Position
    rest: Position


Gradient = Position | GradientTerms


def multiplied(gradient: Gradient, multiplier: Float[Array, ""]) -> Position:
    """The gradient of the flattened landscape."""

    def times(g: Array) -> Array:
        return multiplier.astype(g.dtype) * g

    if isinstance(gradient, GradientTerms):
        return jax.tree.map(lambda g, rest: times(g) + rest, *gradient)
    return jax.tree.map(times, gradient)


def whole(gradient: Gradient) -> Position:
    """∇U."""
    return jax.tree.map(jnp.add, *gradient) if isinstance(gradient, GradientTerms) else gradient


def require_whole(gradient: Any, what: str) -> None:
    """Raise for a target that is flattened by a term of its energy, where `what` needs all of it."""
    remedy = f"{what} needs all of the energy: leave flatten_by out, or take sghmc(...)"
    require(not isinstance(gradient, GradientTerms), "flatten_by", "data", remedy)


def of_each_term(function: Callable[[Position], Any], gradient: Gradient) -> Any:
    """A function of a gradient, applied to each term."""
    return GradientTerms(*map(function, gradient)) if isinstance(gradient, GradientTerms) else function(gradient)
