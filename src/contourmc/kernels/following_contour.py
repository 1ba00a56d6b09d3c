"""A dynamics on a landscape that is flattened by bins which follow the energies (see flattening/following.py)."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.checks import require
from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.flattening.following import Energies, Following
from contourmc.flattening.rules import Visits
from contourmc.flattening.summary import Flattening
from contourmc.flattening.theta import LogTheta
from contourmc.kernels.base import Collect, chain_axes
from contourmc.kernels.dynamics import Flatten, Flattenable, IncrementalDynamics
from contourmc.kernels.flattened import ContourInputs, ContourState, FlattenedKernel, one_more, start_theta

EVEN = 100  # visits for which the uniform θ at the start counts
RULE = Visits()


@dataclass(frozen=True)
class FollowingContour(FlattenedKernel, arrays=("dynamics",)):
    """A dynamics whose gradient is multiplied by numbers within a bound, by bins that find themselves.

    dynamics: how to move, with its step size and temperature: `sgld(...)`, `sghmc(...)` or `langevin(...)`.
    following: the bins.
    shared: whether the chains of a run share one θ; each has its own μ and S.
    """

    dynamics: Flattenable
    following: Following
    _: KW_ONLY
    shared: bool = False

    def __post_init__(self):
        remedy = "bins that follow the energies need sgld(...), sghmc(...) or langevin(...); others, a Partition"
        require(isinstance(self.dynamics, IncrementalDynamics), "dynamics", self.dynamics, remedy)
        require(isinstance(self.following, Following), "following", self.following, "give Following(...)")

    @property
    def learns(self) -> bool:
        return True

    @property
    def flattening(self) -> Flattening:
        temperature = self.dynamics.temperature
        constant = None if callable(temperature) else float(temperature)
        power = RULE.visit_power(1.0)
        return Flattening(self.following.partition, power, fixed=False, temperature=constant, following=True)

    def init(self, position: Position) -> ContourState:
        bins = self.following.bins
        theta = start_theta(np.full(bins, 1 / bins))
        return ContourState(self.dynamics.init(position), theta, jnp.zeros(bins, jnp.int32), self.following.init())

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> ContourInputs:
        # ω = 1/(visits so far): θ is their mean.
        visits = jnp.maximum(steps - self.following.begin, 1) + EVEN
        log_omega = -jnp.log(visits.astype(jnp.result_type(float)))
        return ContourInputs(self.dynamics.prepare(key, position, steps), log_omega)

    def begin_step(
        self, inputs: ContourInputs, state: ContourState, energy: Array
    ) -> tuple[ContourState, Array, Flatten]:
        energy, step = energy.astype(state.theta.levels.dtype), state.steps + 1
        assert state.energies is not None
        seen = self.following.seen(state.energies, energy, step)
        found = self.following.flatten(seen, state.theta, inputs.dynamics.temperature, step)

        def flatten(_: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
            return found.log_weight, found.multiplier

        return state._replace(energies=seen), energy, flatten

    def learn(self, inputs: ContourInputs, state: ContourState, info: Info) -> tuple[ContourState, Info]:
        assert state.energies is not None
        assert inputs.log_omega is not None
        theta, step = state.theta, state.steps  # the dynamics has counted this step already
        index = self.following.partition.index(self.following.level(state.energies))
        learning = step > self.following.begin
        gain = RULE.gain(theta, index, info.log_weight)
        learnt = RULE.update(theta, index, gain, inputs.log_omega, chain_axes() if self.shared else None)
        theta = jax.tree.map(lambda new, old: jnp.where(learning, new, old), learnt, theta)
        visits = one_more(state.visits, index, learning.astype(state.visits.dtype))
        return state._replace(theta=theta, visits=visits), info._replace(bin=index)

    def found(self, collect: Collect) -> dict[str, Any]:
        """What the bins have found of the energies, and ζ, as means over the chains."""
        following, temperature = self.following, self.dynamics.temperature

        def of_one(energies: Energies, theta: LogTheta, steps: Array) -> dict[str, Array]:
            figures = {
                "noise": jnp.sqrt(energies.noise),
                "mean_energy": energies.mean,
                "spread": jnp.sqrt(energies.variance),
                "width": following.width(energies),
                "share_not_noise": following.reliability(energies),
            }
            if callable(temperature):
                return figures
            at = jnp.asarray(temperature, energies.mean.dtype)
            return figures | {"zeta": following.flatten(energies, theta, at, steps + 1).zeta}

        states = collect(lambda state: (state.energies, state.theta, state.dynamics.steps))
        figures = jax.vmap(of_one)(*jax.tree.map(jnp.asarray, states))
        plain = {name: float(np.mean(np.asarray(values, float))) for name, values in figures.items()}
        return {"following": plain | {"multipliers_within": [1 - following.bound, 1 + following.bound]}}
