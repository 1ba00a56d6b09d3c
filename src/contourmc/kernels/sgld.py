"""Stochastic gradient Langevin dynamics (Welling & Teh 2011), and SGD as its limit at temperature 0."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from contourmc._core.pytrees import Position
from contourmc.kernels.dynamics import IncrementalDynamics, LangevinInputs, add_noise
from contourmc.kernels.schedules import Schedule


class SGLDState(NamedTuple):
    """position: x_k.  steps: k, the steps done so far."""

    position: Position
    steps: Int[Array, ""]

    def at(self, position: Position) -> "SGLDState":
        return self._replace(position=position)


@dataclass(frozen=True)
class SGLD(IncrementalDynamics):
    """x_{k+1} = x_k − ε ∇U(x_k) + √(2τε) w_k,   w_k ~ N(0, I).

    On a Gaussian of unit variance at τ = 1 the stationary variance is exactly 1 / (1 − ε/2).
    """

    def init(self, position: Position) -> SGLDState:
        return SGLDState(position, jnp.zeros((), jnp.int32))

    def displace(self, inputs: LangevinInputs, state: SGLDState, gradient: Position) -> tuple[Position, SGLDState]:
        drift = jax.tree.map(lambda g: -inputs.step_size.astype(g.dtype) * g, gradient)
        return add_noise(drift, inputs.noise), state._replace(steps=state.steps + 1)


def sgld(step_size: Schedule, temperature: Schedule = 1.0) -> SGLD:
    """Plain SGLD: right for one mode, and the baseline for many.

    >>> cm.sample(energy, init=1.0, steps=2_000, kernel=cm.sgld(0.002))
    Samples(4 chains × 1800 draws, SGLD)
    """
    return SGLD(step_size, temperature)


def sgd(step_size: Schedule) -> SGLD:
    """Stochastic gradient descent: SGLD at temperature 0.

    >>> run = cm.sample(energy, init=0.5, steps=2_000, kernel=cm.sgd(0.01))
    >>> print(f"{run.draws[0, -1]:.4f}")  # the minimum of the right well
    0.9921
    """
    return SGLD(step_size, 0.0)
