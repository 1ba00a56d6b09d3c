"""Replica exchange over any dynamics (reSGLD; Deng et al. 2020): hot copies explore, and swap with colder ones."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from contourmc._core.checks import require, require_number
from contourmc._core.gradient_terms import require_whole
from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.kernels.adjusted import Adjusted
from contourmc.kernels.base import Collect, Kernel
from contourmc.kernels.dynamics import Dynamics, LangevinInputs, describe_point, unflattened
from contourmc.targets.base import Target


class ReplicaState(NamedTuple):
    """replicas: the states of the dynamics, the coldest first.
    swaps: how many swaps each pair of neighbours has accepted.
    swapped: whether it has in the last step.
    """

    replicas: tuple[Any, ...]
    swaps: Int[Array, " pairs"]
    swapped: Bool[Array, " pairs"]

    @property
    def position(self) -> tuple[Position, ...]:
        return tuple(replica.position for replica in self.replicas)

    @property
    def steps(self) -> Int[Array, ""]:
        return self.replicas[0].steps

    def at(self, position: tuple[Position, ...]) -> "ReplicaState":
        moved = tuple(replica.at(x) for replica, x in zip(self.replicas, position, strict=True))
        return self._replace(replicas=moved)


class ReplicaInputs(NamedTuple):
    """replicas: what each dynamics needs.  log_uniform: the logarithm of a uniform number for each pair."""

    replicas: tuple[LangevinInputs, ...]
    log_uniform: Array


@dataclass(frozen=True)
class ReplicaExchange(Kernel, arrays=("dynamics",)):
    """Dynamics at temperatures τ₁ < τ₂ < …, whose neighbours exchange positions with probability

        min(1, exp(δ·(Ũ(x_i) − Ũ(x_j) − δσ²))),     δ = 1/τ_i − 1/τ_j,

    before each move. Ũ is the energy as observed, and σ² the variance of its noise; the last term undoes the effect
    of the noise on the exponential (the variance-corrected swap). The draws are those of the first dynamics, the
    coldest. A step costs one evaluation for each replica. What a target carries along with a position, such as
    batch-norm statistics, goes with it.

    dynamics: from cold to hot; two or more.
    energy_variance: σ², the variance of the noise of one energy; 0 for exact energies.
    """

    dynamics: tuple[Dynamics, ...]
    energy_variance: float = 0.0

    def __post_init__(self):
        fine = len(self.dynamics) > 1 and all(isinstance(one, Dynamics) for one in self.dynamics)
        require(fine, "dynamics", self.dynamics, "give two or more dynamics, such as sgld(...)")
        plain = not any(isinstance(one, Adjusted) for one in self.dynamics)
        require(
            plain,
            "dynamics",
            self.dynamics,
            "the position of adjusted(...) is a proposal, which cannot be exchanged; use langevin(...)",
        )
        remedy = "the variance of the energies must be 0 or more"
        require_number("energy_variance", self.energy_variance, remedy, positive=False)

    @property
    def elementwise(self) -> bool:
        return all(one.elementwise for one in self.dynamics)

    @property
    def evaluations(self) -> int:
        return len(self.dynamics)

    def prepare_target(
        self, target: Target, key: PRNGKeyArray, position: tuple[Position, ...], steps: Int[Array, " steps"]
    ) -> tuple[Any, ...]:
        keys = jax.random.split(key, len(position))
        return tuple(target.prepare(key, x, steps) for key, x in zip(keys, position, strict=True))

    def init_target(self, target: Target) -> tuple[Any, ...]:
        return tuple(target.init() for _ in self.dynamics)

    def evaluate(
        self, target: Target, inputs: tuple[Any, ...], position: tuple[Position, ...], target_state: tuple[Any, ...]
    ) -> tuple[Any, Any, Any]:
        of_each = zip(inputs, position, target_state, strict=True)
        energies, gradients, states = zip(*(target.evaluate_from(*one) for one in of_each), strict=True)
        return energies, gradients, states

    def follow(self, state: ReplicaState, target_state: tuple[Any, ...]) -> tuple[Any, ...]:
        states = list(target_state)
        for i in range(len(states) - 1):
            states[i : i + 2] = _exchange(state.swapped[i], *states[i : i + 2])
        return tuple(states)

    def init(self, position: Position) -> ReplicaState:
        replicas = tuple(one.init(position) for one in self.dynamics)
        pairs = len(replicas) - 1
        return ReplicaState(replicas, jnp.zeros(pairs, jnp.int32), jnp.zeros(pairs, bool))

    def draw(self, state: ReplicaState) -> Position:
        return state.replicas[0].position

    def drawn(self, target: Target, target_state: tuple[Any, ...]) -> Any:
        return target.drawn(target_state[0])

    def found(self, collect: Collect) -> dict[str, Any]:
        """How often each pair of neighbours changed places in a chain, on average over the chains."""
        return {"swaps": np.mean(np.asarray(collect(lambda state: state.swaps), float), axis=0).tolist()}

    def settle(self, state: ReplicaState) -> ReplicaState:
        settled = zip(self.dynamics, state.replicas, strict=True)
        return state._replace(replicas=tuple(one.settle(replica) for one, replica in settled))

    def virial(
        self, inputs: ReplicaInputs, state: ReplicaState, gradient: Any, centre: Position | None
    ) -> Float[Array, ""] | None:
        return self.dynamics[0].virial(inputs.replicas[0], state.replicas[0], gradient[0], centre)

    def watched(self, state: ReplicaState) -> tuple[Position, ...]:
        return state.position

    def prepare(self, key: PRNGKeyArray, position: tuple[Position, ...], steps: Int[Array, " steps"]) -> ReplicaInputs:
        swap_key, *keys = jax.random.split(key, 1 + len(self.dynamics))
        replicas = tuple(one.prepare(key, x, steps) for one, key, x in zip(self.dynamics, keys, position, strict=True))
        shape = (*steps.shape, len(self.dynamics) - 1)
        return ReplicaInputs(replicas, jnp.log(jax.random.uniform(swap_key, shape, minval=1e-38)))

    def move(self, inputs: ReplicaInputs, state: ReplicaState, energy: Any, gradient: Any) -> tuple[ReplicaState, Info]:
        require_whole(gradient[0], "a swap of replicas")
        info = describe_point(energy[0], unflattened)
        positions, energies, gradients = list(state.position), list(energy), list(gradient)
        accepted = []
        for i in range(len(positions) - 1):
            j = i + 1
            delta = 1 / inputs.replicas[i].temperature - 1 / inputs.replicas[j].temperature
            log_rate = delta * (energies[i] - energies[j] - delta * self.energy_variance)
            swap = inputs.log_uniform[i] < log_rate
            for things in (positions, energies, gradients):
                things[i], things[j] = _exchange(swap, things[i], things[j])
            accepted.append(swap)
        # Only positions are exchanged: each replica keeps the velocity of its own temperature.
        moved = tuple(
            one.move(settings, replica.at(x), energy, gradient)[0]
            for one, settings, replica, x, energy, gradient in zip(
                self.dynamics, inputs.replicas, state.replicas, positions, energies, gradients, strict=True
            )
        )
        swapped = jnp.stack(accepted)
        return ReplicaState(moved, state.swaps + swapped, swapped), info


def _exchange(swap: Array, a: Any, b: Any) -> tuple[Any, Any]:
    first = jax.tree.map(lambda x, y: jnp.where(swap, y, x), a, b)
    return first, jax.tree.map(lambda x, y: jnp.where(swap, x, y), a, b)


def replica_exchange(*dynamics: Dynamics, energy_variance: float = 0.0) -> ReplicaExchange:
    """Replica exchange over dynamics from cold to hot, such as `replica_exchange(sgld(ε, 1), sgld(ε, 3))`.

    >>> kernel = cm.replica_exchange(cm.sgld(0.002), cm.sgld(0.002, temperature=4.0))
    >>> cm.sample(energy, init=1.0, steps=2_000, kernel=kernel)
    Samples(4 chains × 1800 draws, ReplicaExchange)
    """
    return ReplicaExchange(tuple(dynamics), energy_variance)
