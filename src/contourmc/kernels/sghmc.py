"""Stochastic gradient Hamiltonian Monte Carlo in the form of Saatci & Wilson (2017), and momentum SGD."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from contourmc.kernels.base import (
    Flatten,
    Info,
    LangevinInputs,
    Position,
    describe_point,
    multiply,
    unflattened,
)
from contourmc.kernels.momentum import MomentumDynamics, VelocityState
from contourmc.schedules import Schedule


@dataclass(frozen=True)
class SGHMC(MomentumDynamics):
    """v_{k+1} = β v_k − ε ∇U(x_k) + √(2(1−β)τε) w_k,   x_{k+1} = x_k + v_{k+1},   w_k ~ N(0, I).

    On a Gaussian of unit variance at τ = 1 the stationary variance of x is exactly 1 / (1 − ε/(2(1+β))).
    """

    @property
    def friction(self) -> float:
        return 1 - self.momentum

    def move(
        self,
        inputs: LangevinInputs,
        state: VelocityState,
        energy: Array,
        gradient: Position,
        flatten: Flatten = unflattened,
    ) -> tuple[VelocityState, Info]:
        info = describe_point(energy, flatten)
        gradient = multiply(info.multiplier, gradient)
        velocity = jax.tree.map(
            lambda v, g: self.momentum * v - inputs.step_size.astype(v.dtype) * g, state.velocity, gradient
        )
        if inputs.noise is not None:
            velocity = jax.tree.map(jnp.add, velocity, inputs.noise)
        position = jax.tree.map(jnp.add, state.position, velocity)
        return VelocityState(position, velocity, state.steps + 1), info


def sghmc(step_size: Schedule, temperature: Schedule = 1.0, momentum: float = 0.9) -> SGHMC:
    """SGHMC: SGLD with momentum."""
    return SGHMC(step_size, temperature, momentum)


def momentum_sgd(step_size: Schedule, momentum: float = 0.9) -> SGHMC:
    """Momentum SGD: SGHMC at temperature 0."""
    return SGHMC(step_size, 0.0, momentum)
