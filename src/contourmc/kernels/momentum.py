"""What dynamics with a velocity have in common: its share that stays, and where they start."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from contourmc.checks import require
from contourmc.kernels.base import Dynamics, Position


class VelocityState(NamedTuple):
    """position: x_k.  velocity: v_k.  steps: k, the steps done so far."""

    position: Position
    velocity: Position
    steps: Int[Array, ""]


@dataclass(frozen=True)
class MomentumDynamics(Dynamics):
    """Dynamics whose velocity is multiplied by the momentum β in every step; they start at rest."""

    momentum: float = 0.9

    def __post_init__(self):
        super().__post_init__()
        require(0 <= self.momentum < 1, "momentum", self.momentum, "the momentum β must be in [0, 1)")

    def init(self, position: Position) -> Any:
        return VelocityState(position, jax.tree.map(jnp.zeros_like, position), jnp.zeros((), jnp.int32))
