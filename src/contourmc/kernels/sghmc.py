"""Stochastic gradient Hamiltonian Monte Carlo in the form of Saatci & Wilson (2017), and momentum SGD."""

from dataclasses import dataclass

import jax

from contourmc._core.pytrees import Position
from contourmc.kernels.dynamics import IncrementalDynamics, LangevinInputs, add_noise
from contourmc.kernels.momentum import MomentumDynamics, VelocityState
from contourmc.kernels.schedules import Number, Schedule


@dataclass(frozen=True)
class SGHMC(MomentumDynamics, IncrementalDynamics):
    """v_{k+1} = β v_k − ε ∇U(x_k) + √(2(1−β)τε) w_k,   x_{k+1} = x_k + v_{k+1},   w_k ~ N(0, I).

    On a Gaussian of unit variance at τ = 1 the stationary variance of x is exactly 1 / (1 − ε/(2(1+β))).
    """

    @property
    def friction(self) -> Number:
        return 1 - self.momentum

    def displace(
        self, inputs: LangevinInputs, state: VelocityState, gradient: Position
    ) -> tuple[Position, VelocityState]:
        velocity = jax.tree.map(
            lambda v, g: self.momentum * v - inputs.step_size.astype(v.dtype) * g, state.velocity, gradient
        )
        velocity = add_noise(velocity, inputs.noise)
        return velocity, state._replace(velocity=velocity, steps=state.steps + 1)


def sghmc(step_size: Schedule, temperature: Schedule = 1.0, momentum: Number = 0.9) -> SGHMC:
    """SGHMC: SGLD with momentum.

    >>> cm.sample(energy, init=1.0, steps=2_000, kernel=cm.sghmc(0.0005, momentum=0.9))
    Samples(4 chains × 1800 draws, SGHMC)
    """
    return SGHMC(step_size, temperature, momentum)


def momentum_sgd(step_size: Schedule, momentum: Number = 0.9) -> SGHMC:
    """Momentum SGD: SGHMC at temperature 0.

    >>> cm.momentum_sgd(0.01) == cm.sghmc(0.01, temperature=0.0)
    True
    """
    return SGHMC(step_size, 0.0, momentum)
