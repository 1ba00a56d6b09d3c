"""What every kernel is: a state, what a step needs beyond it, and the move."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from contourmc.schedules import Schedule, check_schedule, evaluate

if TYPE_CHECKING:
    from contourmc.targets import Target

CHAINS = "chains"  # the name of the axis along which chains are mapped
Position = PyTree[Array | np.ndarray | np.generic]


class Info(NamedTuple):
    """What a step tells about the point it started from.

    energy: Ũ(x_k), the energy that came with the gradient.
    bin: the energy bin of x_k; 0 for a kernel without a partition.
    multiplier: 1 + ζτ·s, by which the gradient was multiplied; 1 for a kernel without flattening.
    log_weight: the logarithm of the importance weight of x_k; 0 for an unweighted kernel.
    """

    energy: Float[Array, ""]
    bin: Int[Array, ""]
    multiplier: Float[Array, ""]
    log_weight: Float[Array, ""]


class Kernel(ABC):
    """A Markov kernel for one chain, as pure functions.

    People with their own loop need two of them:

        state = kernel.init(position)
        state, info = kernel.step(key, state, energy, gradient)    # both at state.position

    The engine calls the parts, so that noise and schedules are made for a block of steps at once:
    `prepare` gives what a step needs beyond the state, `move` makes the step, `settle` tidies the state
    from time to time. Kernels are frozen dataclasses: equal settings compile once.
    """

    @abstractmethod
    def init(self, position: Position) -> Any:
        """The state at the start: a NamedTuple pytree with a `position` and the number of steps done."""

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
        """Whether it does the same to each number of a position, so that a position may come as one vector."""
        return False

    @property
    def evaluations(self) -> int:
        """How many evaluations of energy and gradient a step needs."""
        return 1

    def prepare_target(
        self, target: "Target", key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]
    ) -> Any:
        """The target's randomness for the given steps."""
        return target.prepare(key, position, steps)

    def evaluate(self, target: "Target", inputs: Any, position: Position, target_state: Any) -> tuple[Any, Any, Any]:
        """The energy and gradient at the state's position, as `move` takes them, and the target's new state."""
        return target.evaluate_from(inputs, position, target_state)

    def draw(self, state: Any) -> Position:
        """The position that a step contributes to the draws."""
        return state.position

    def settle(self, state: Any) -> Any:
        """The same state, with rounding kept in check; called at least every few thousand steps."""
        return state

    def step(self, key: PRNGKeyArray, state: Any, energy: Array, gradient: Position) -> tuple[Any, Info]:
        """One step for a loop of one's own: prepare, move and settle."""
        inputs = self.prepare(key, state.position, jnp.reshape(state.steps + 1, (1,)))
        state, info = self.move(jax.tree.map(lambda leaf: leaf[0], inputs), state, energy, gradient)
        return self.settle(state), info


# The log weight and the gradient multiplier at an energy: what makes a landscape flat.
Flatten = Callable[[Float[Array, ""]], tuple[Float[Array, ""], Float[Array, ""]]]


def unflattened(energy: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The landscape as it is."""
    return jnp.zeros_like(energy), jnp.ones_like(energy)


def describe_point(energy: Float[Array, ""], flatten: Flatten) -> Info:
    """The info of a point with this energy; a kernel with a partition adds the bin."""
    log_weight, multiplier = flatten(energy)
    return Info(energy, jnp.zeros((), jnp.int32), multiplier, log_weight)


def multiply(multiplier: Float[Array, ""], gradient: Position) -> Position:
    """The gradient of the flattened landscape."""
    return jax.tree.map(lambda g: multiplier.astype(g.dtype) * g, gradient)


class LangevinInputs(NamedTuple):
    """noise: √(2·friction·τε)·w, or None at temperature 0.  step_size: ε_k.  temperature: τ_k."""

    noise: Position | None
    step_size: Float[Array, "..."]
    temperature: Float[Array, "..."]


@dataclass(frozen=True)
class Dynamics(Kernel):
    """A kernel that moves by a gradient at a temperature, and so can be flattened by `contour`.

    step_size: ε_k, above 0.
    temperature: τ_k; at 0 there is no noise, and sampling becomes optimisation.
    """

    step_size: Schedule
    temperature: Schedule = 1.0

    @property
    def elementwise(self) -> bool:
        return True

    @property
    def friction(self) -> float:
        """The share of the velocity that is lost in a step, and that the noise makes good."""
        return 1.0

    def __post_init__(self):
        check_schedule("step_size", self.step_size, "the step size ε must be above 0")
        check_schedule("temperature", self.temperature, "the temperature τ must be 0 or more", positive=False)

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> LangevinInputs:
        step_size = evaluate(self.step_size, steps)
        temperature = evaluate(self.temperature, steps)
        if not callable(self.temperature) and self.temperature == 0:
            return LangevinInputs(None, step_size, temperature)
        scale = jnp.sqrt(2 * self.friction * temperature * step_size)
        return LangevinInputs(normal_like(key, position, scale), step_size, temperature)

    @abstractmethod
    def move(
        self, inputs: Any, state: Any, energy: Array, gradient: Position, flatten: Flatten = unflattened
    ) -> tuple[Any, Info]:
        """One step on the landscape that `flatten` makes of the energy."""


def normal_like(
    key: PRNGKeyArray, position: Position, scale: Float[Array, " steps"]
) -> PyTree[Float[Array, "steps ..."]]:
    """Gaussian noise shaped like the position, for every step, with the given standard deviations.

    It is drawn for all arrays of a type at once: the noise of a position is that of the vector of its numbers.
    """
    leaves, structure = jax.tree.flatten(position)
    kinds = sorted({jnp.dtype(leaf.dtype) for leaf in leaves}, key=str)
    noise: list[Array | None] = [None] * len(leaves)
    for own, kind in zip(jax.random.split(key, len(kinds)), kinds, strict=True):
        places = [i for i, leaf in enumerate(leaves) if leaf.dtype == kind]
        ends = np.cumsum([leaves[i].size for i in places])
        drawn = jax.random.normal(own, (*scale.shape, int(ends[-1])), kind) * scale[:, None].astype(kind)
        for i, part in zip(places, jnp.split(drawn, ends[:-1], axis=1), strict=True):
            noise[i] = part.reshape(*scale.shape, *leaves[i].shape)
    return jax.tree.unflatten(structure, noise)
