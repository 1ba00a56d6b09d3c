"""A step size that now and then is much smaller: no place is so narrow that a chain cannot move there."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from contourmc._core.pytrees import HoldsArrays

EVERY = 12  # so few that little time is lost
STRIDES = (1 / 4, 1 / 16, 1 / 64, 1 / 256)  # of the shorter steps, in turn


@dataclass(frozen=True)
class VariedStep(HoldsArrays, arrays=("step_size",)):
    """ε, and in every twelfth step ε·c² with c = 1/4, 1/16, 1/64, 1/256 in turn: there the stride h = √(2ε) is ch.

    Where the landscape's scale shrinks by a lot, as in the neck of a funnel, all proposals of one step size may be
    refused, for ever. Each step leaves the distribution as it is whatever its size, and so do all of them together.
    """

    step_size: float | Array

    def __call__(self, step: Array) -> Array:
        turn, place = jnp.divmod(step, EVERY)
        strides = jnp.asarray(STRIDES)[turn % len(STRIDES)]
        return self.step_size * jnp.where(place == 0, strides**2, 1.0)
