"""What dynamics with a velocity share: how much of it a step keeps, and that they start at rest."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from contourmc._core.checks import is_known, require, require_number
from contourmc._core.pytrees import Position
from contourmc.kernels.dynamics import Dynamics
from contourmc.kernels.schedules import Number


class VelocityState(NamedTuple):
    """position: x_k.  velocity: v_k.  steps: k, the steps done so far."""

    position: Position
    velocity: Position
    steps: Int[Array, ""]

    def at(self, position: Position) -> "VelocityState":
        return self._replace(position=position)


@dataclass(frozen=True)
class MomentumDynamics(Dynamics):
    """Dynamics whose velocity is multiplied by the momentum β in every step; they start at rest."""

    momentum: Number = 0.9

    def __post_init__(self):
        super().__post_init__()
        remedy = "the momentum β must be in [0, 1)"
        require_number("momentum", self.momentum, remedy, positive=False)
        require(not is_known(self.momentum) or bool(self.momentum < 1), "momentum", self.momentum, remedy)

    def init(self, position: Position) -> Any:
        return VelocityState(position, jax.tree.map(jnp.zeros_like, position), jnp.zeros((), jnp.int32))
