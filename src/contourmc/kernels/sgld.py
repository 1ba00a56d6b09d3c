"""Stochastic gradient Langevin dynamics (Welling & Teh 2011), and SGD as its limit at temperature 0."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from contourmc.kernels.base import (
    Dynamics,
    Flatten,
    Info,
    LangevinInputs,
    Position,
    describe_point,
    multiply,
    unflattened,
)
from contourmc.schedules import Schedule


class SGLDState(NamedTuple):
    """position: x_k.  steps: k, the steps done so far."""

    position: Position
    steps: Int[Array, ""]


@dataclass(frozen=True)
class SGLD(Dynamics):
    """x_{k+1} = x_k − ε ∇U(x_k) + √(2τε) w_k,   w_k ~ N(0, I).

    On a Gaussian of unit variance at τ = 1 the stationary variance is exactly 1 / (1 − ε/2).
    """

    def init(self, position: Position) -> SGLDState:
        return SGLDState(position, jnp.zeros((), jnp.int32))

    def move(
        self,
        inputs: LangevinInputs,
        state: SGLDState,
        energy: Array,
        gradient: Position,
        flatten: Flatten = unflattened,
    ) -> tuple[SGLDState, Info]:
        info = describe_point(energy, flatten)
        gradient = multiply(info.multiplier, gradient)
        position = jax.tree.map(lambda x, g: x - inputs.step_size.astype(x.dtype) * g, state.position, gradient)
        if inputs.noise is not None:
            position = jax.tree.map(jnp.add, position, inputs.noise)
        return SGLDState(position, state.steps + 1), info


def sgld(step_size: Schedule, temperature: Schedule = 1.0) -> SGLD:
    """Plain SGLD: right for one mode, and the baseline for many."""
    return SGLD(step_size, temperature)


def sgd(step_size: Schedule) -> SGLD:
    """Stochastic gradient descent: SGLD at temperature 0."""
    return SGLD(step_size, 0.0)
