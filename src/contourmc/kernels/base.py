"""The base class of kernels: a state, what a step needs besides it, and the move."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.info import Info
from contourmc._core.mesh import DEVICES, is_mapped
from contourmc._core.pytrees import HoldsArrays, Position
from contourmc.flattening.summary import Flattening
from contourmc.targets.base import Target

Collect = Callable[[Callable[[Any], Any]], Any]
CHAINS = "chains"  # the name of the axis along which the chains of a device are mapped


def chain_axes() -> tuple[str, ...]:
    """The axes along which all chains lie, as collective operations take them."""
    return (CHAINS, DEVICES) if is_mapped(DEVICES) else (CHAINS,)


class Kernel(HoldsArrays, ABC):
    """A Markov kernel for one chain, as pure functions.

    For your own loop, `init` and `step` are enough; energy and gradient are those at `state.position`.

    The engine calls the parts, so that noise and schedules are made for a block of steps at once: `prepare` gives
    what a step needs besides the state, `move` makes the step, `settle` removes rounding from the state now and then.
    Kernels are frozen dataclasses. The numbers and other kernels that a class names, as in `class Mine(Kernel,
    arrays=("step_size",))`, are arguments of the compiled program, which can be used again with others; all other
    settings are constants of it, and must be hashable.

    schedules: the names of settings that may be functions of the step; these are traced anew for every run.

    >>> kernel = cm.sgld(0.002)
    >>> state = kernel.init(jnp.array(1.0))
    >>> value, gradient = jax.value_and_grad(energy)(state.position)
    >>> state, info = kernel.step(jax.random.key(0), state, value, gradient)
    >>> print(state.steps, info.energy)
    1 0.5
    """

    schedules: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def init(self, position: Position) -> Any:
        """The state at the start: a NamedTuple with a `position`, the number of `steps` done, and a method
        `at(position)` that gives the same state at another position.
        """

    @abstractmethod
    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        """Noise and scheduled settings of the given steps (counted from 1), stacked along the first axis."""

    @abstractmethod
    def move(self, inputs: Any, state: Any, energy: Array, gradient: Position) -> tuple[Any, Info]:
        """One step, from the energy and gradient at the state's position."""

    @property
    def interacting(self) -> bool:
        """Whether chains learn from one another, and so must make their steps together."""
        return False

    @property
    def elementwise(self) -> bool:
        """Whether it treats every number of a position alike, so that a position may be given as one vector."""
        return False

    @property
    def evaluations(self) -> int:
        """How many evaluations of energy and gradient a step needs."""
        return 1

    @property
    def flattening(self) -> Flattening | None:
        """What is kept about the flattening, together with the draws; None for a kernel without one."""
        return None

    def prepare_target(self, target: Target, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        """The target's randomness for the given steps."""
        return target.prepare(key, position, steps)

    def init_target(self, target: Target) -> Any:
        """The target's state before the first step; of a kernel with several positions, one for each."""
        return target.init()

    def evaluate(self, target: Target, inputs: Any, position: Position, target_state: Any) -> tuple[Any, Any, Any]:
        """The energy and gradient at the state's position, as `move` takes them, and the target's new state."""
        return target.evaluate_from(inputs, position, target_state)

    def follow(self, state: Any, target_state: Any) -> Any:
        """The target's state after a move: the same, unless positions have changed places."""
        return target_state

    def draw(self, state: Any) -> Position:
        """The position that a step contributes to the draws."""
        return state.position

    def drawn(self, target: Target, target_state: Any) -> Any:
        """The part of the target's state that belongs to the draw of a step."""
        return target.drawn(target_state)

    def watched(self, state: Any) -> Any:
        """The numbers of a state that must be finite for the run to go on."""
        return self.draw(state)

    def virial(self, inputs: Any, state: Any, gradient: Any, centre: Position | None) -> Float[Array, ""] | None:
        """(x − centre)·∇U(x) / (dτ) at the point that a step contributes to the draws, with d coordinates.

        Its mean is 1 in equilibrium, and larger where steps or the noise of gradients are too large: it is the
        configurational temperature over τ. None for a kernel that is exact at any step size, or cannot tell.
        """
        return None

    def found(self, collect: Collect) -> dict[str, Any]:
        """What a kernel that adapts itself has found, as plain data.

        collect: gives a part of the states of all chains, stacked, by the function that takes it from one state.
        """
        return {}

    def settle(self, state: Any) -> Any:
        """The same state without the rounding errors that build up over many steps; called once a block."""
        return state

    def step(self, key: PRNGKeyArray, state: Any, energy: Any, gradient: Any) -> tuple[Any, Info]:
        """One step for your own loop: prepare, move and settle."""
        inputs = self.prepare(key, state.position, jnp.reshape(state.steps + 1, (1,)).astype(jnp.int32))
        energy, gradient = jax.tree.map(jnp.asarray, (energy, gradient))
        state, info = self.move(jax.tree.map(lambda leaf: leaf[0], inputs), state, energy, gradient)
        return self.settle(state), info
