"""Priors of the parameters of a model."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contourmc._core.checks import require, require_number
from contourmc._core.pytrees import Position


@dataclass(frozen=True)
class GaussianPrior:
    """log p(x) = −½·Σ_i λ_i x_i², up to a constant: independent Gaussians of precision λ, or weight decay.

    precision: λ, of every parameter that belongs to no group. Weight decay λ' on a *mean* of the loss over N
        observations, as in deep-learning optimisers, is a precision of N·λ'.
    groups: parameters with their own precision, such as {"bias": 0.0}. A name is a whole part of the path
        to a leaf, as "bias" is of `params["layer"]["bias"]`; the first that matches counts. 0 is a flat prior.

    >>> prior = cm.GaussianPrior(2.0, groups={"bias": 0.0})
    >>> print(prior({"weight": jnp.array([1.0, 3.0]), "bias": jnp.array(5.0)}))
    -10.0
    """

    precision: float
    groups: Mapping[str, float] | tuple[tuple[str, float], ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "groups", tuple(dict(self.groups).items()))  # hashable
        for argument, value in (
            ("precision", self.precision),
            *((f"groups[{n!r}]", v) for n, v in dict(self.groups).items()),
        ):
            require_number(argument, value, "a precision must be 0 or more", positive=False)

    def __call__(self, position: Position) -> Float[Array, ""]:
        leaves = jax.tree_util.tree_leaves_with_path(position)
        paths = [jax.tree_util.keystr(path, simple=True, separator=".").split(".") for path, _ in leaves]
        for name in dict(self.groups):
            remedy = f"it matches no parameter; there are {', '.join('.'.join(path) for path in paths)}"
            require(any(name in path for path in paths), "groups", name, remedy)
        terms = [
            -0.5 * self._precision_of(path) * jnp.sum(jnp.square(leaf))
            for path, (_, leaf) in zip(paths, leaves, strict=True)
        ]
        return jnp.sum(jnp.stack(terms))

    def _precision_of(self, path: list[str]) -> float:
        return next((value for name, value in dict(self.groups).items() if name in path), self.precision)
