"""What kernels on a flattened landscape share: a dynamics inside, θ and the visits of its bins, the order of a step.

At x_k, with its energy and gradient: weigh x_k, move by the multiplied gradient, and learn θ from its bin.
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require
from contourmc._core.gradient_terms import Gradient
from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.flattening.following import Energies
from contourmc.flattening.theta import LogTheta, log_theta, normalised
from contourmc.kernels.base import Collect, Kernel
from contourmc.kernels.dynamics import Flatten, Flattenable, IncrementalDynamics


class ContourState(NamedTuple):
    """dynamics: the state of the underlying dynamics.
    theta: log θ, what has been learnt of the energy bins.
    visits: how many steps started in each bin.
    energies: what bins that follow the energies have seen of them; None for fixed bins.
    """

    dynamics: Any
    theta: LogTheta
    visits: Int[Array, " bins"]
    energies: Energies | None = None

    @property
    def position(self) -> Position:
        return self.dynamics.position

    @property
    def steps(self) -> Int[Array, ""]:
        return self.dynamics.steps

    def at(self, position: Position) -> "ContourState":
        return self._replace(dynamics=self.dynamics.at(position))


class ContourInputs(NamedTuple):
    """dynamics: what the dynamics needs.  log_omega: log ω_k, or None when θ is known."""

    dynamics: Any
    log_omega: Float[Array, "..."] | None


class FlattenedKernel(Kernel):
    """dynamics: how to move.  shared: whether the chains of a run share one θ."""

    dynamics: Flattenable
    shared: bool

    @abstractmethod
    def begin_step(
        self, inputs: ContourInputs, state: ContourState, energy: Array
    ) -> tuple[ContourState, Array, Flatten]:
        """The state with this energy seen, the energy in the precision of θ, and the flattening there."""

    @abstractmethod
    def learn(self, inputs: ContourInputs, state: ContourState, info: Info) -> tuple[ContourState, Info]:
        """θ and the visits after a step, learnt from the bin in which it began; and the info with this bin."""

    @property
    @abstractmethod
    def learns(self) -> bool:
        """Whether θ is learnt; else it is known."""

    @property
    def interacting(self) -> bool:
        return self.shared

    @property
    def elementwise(self) -> bool:
        return self.dynamics.elementwise

    def draw(self, state: ContourState) -> Position:
        return self.dynamics.draw(state.dynamics)

    def move(
        self, inputs: ContourInputs, state: ContourState, energy: Array, gradient: Gradient
    ) -> tuple[ContourState, Info]:
        state, energy, flatten = self.begin_step(inputs, state, energy)
        dynamics, info = self.dynamics.move(inputs.dynamics, state.dynamics, energy, gradient, flatten)
        return self.learn(inputs, state._replace(dynamics=dynamics), info)

    def increment(
        self, inputs: ContourInputs, state: ContourState, energy: Array, gradient: Gradient
    ) -> tuple[Position, ContourState, Info]:
        """What a step adds to the position, the state after it (except for its position), and its info.

        For loops that hold the position themselves; the dynamics must be `IncrementalDynamics`.
        """
        remedy = "its steps are not increments of the position; use sgld(...), sghmc(...) or langevin(...)"
        require(isinstance(self.dynamics, IncrementalDynamics), "dynamics", self.dynamics, remedy)
        assert isinstance(self.dynamics, IncrementalDynamics)
        state, energy, flatten = self.begin_step(inputs, state, energy)
        added, dynamics, info = self.dynamics.increment(inputs.dynamics, state.dynamics, energy, gradient, flatten)
        return added, *self.learn(inputs, state._replace(dynamics=dynamics), info)

    def settle(self, state: ContourState) -> ContourState:
        theta = normalised(state.theta) if self.learns else state.theta
        return state._replace(dynamics=self.dynamics.settle(state.dynamics), theta=theta)

    def virial(
        self, inputs: ContourInputs, state: ContourState, gradient: Gradient, centre: Position | None
    ) -> Float[Array, ""] | None:
        return self.dynamics.virial(inputs.dynamics, state.dynamics, gradient, centre)

    def watched(self, state: ContourState) -> Any:
        return self.dynamics.watched(state.dynamics)

    def found(self, collect: Collect) -> dict[str, Any]:
        return self.dynamics.found(lambda part: collect(lambda state: part(state.dynamics)))


def start_theta(probabilities: Any) -> LogTheta:
    """θ at the start."""
    return normalised(log_theta(jnp.asarray(probabilities, jnp.result_type(float))))


def one_more(counts: Int[Array, " bins"], index: Int[Array, ""], times: Any = 1) -> Int[Array, " bins"]:
    """The visits after one to a bin, or none if it does not count."""
    count = jax.lax.dynamic_index_in_dim(counts, index, keepdims=False)
    return jax.lax.dynamic_update_index_in_dim(counts, count + times, index, axis=0)
