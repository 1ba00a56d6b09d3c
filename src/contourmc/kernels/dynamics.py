"""What all dynamics share: a step size, a temperature, and a landscape that may be flattened."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.checks import is_known
from contourmc._core.gradient_terms import Gradient, multiplied, whole
from contourmc._core.info import Info
from contourmc._core.noise import normal_like
from contourmc._core.pytrees import Position, position_size
from contourmc.kernels.base import Kernel
from contourmc.kernels.schedules import Number, Schedule, check_schedule, evaluate

# From an energy to the log weight and the gradient multiplier there: this is what flattens a landscape.
Flatten = Callable[[Float[Array, ""]], tuple[Float[Array, ""], Float[Array, ""]]]


def unflattened(energy: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The landscape as it is: log weight 0, multiplier 1."""
    return jnp.zeros_like(energy), jnp.ones_like(energy)


def describe_point(energy: Float[Array, ""], flatten: Flatten) -> Info:
    """The info of a point with this energy; a kernel with a partition adds the bin."""
    log_weight, multiplier = flatten(energy)
    return Info(energy, jnp.zeros((), jnp.int32), multiplier, log_weight)


class LangevinInputs(NamedTuple):
    """noise: √(2·friction·τε)·w, or None at temperature 0.  step_size: ε_k.  temperature: τ_k."""

    noise: Position | None
    step_size: Float[Array, "..."]
    temperature: Float[Array, "..."]


class Flattenable(Kernel):
    """A kernel that can move on any landscape that is a function of the energy, and so be flattened by `contour`.

    What it prepares for a step has the `temperature` of that step.
    """

    @property
    @abstractmethod
    def temperature(self) -> Schedule:
        """τ_k, or τ if it is constant."""

    @abstractmethod
    def move(
        self, inputs: Any, state: Any, energy: Array, gradient: Position, flatten: Flatten = unflattened
    ) -> tuple[Any, Info]:
        """One step on the landscape that `flatten` makes of the energy."""


@dataclass(frozen=True)
class Dynamics(Flattenable, arrays=("step_size",)):
    """A kernel that moves by a gradient, with a step size and a temperature.

    step_size: ε_k, above 0.
    temperature: τ_k; at 0 there is no noise, and sampling becomes optimisation.
    """

    schedules: ClassVar[tuple[str, ...]] = ("step_size", "temperature")
    step_size: Schedule
    temperature: Schedule = 1.0  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def elementwise(self) -> bool:
        return True

    @property
    def friction(self) -> Number:
        """The share of the velocity that is lost in a step, and that the noise restores."""
        return 1.0

    def __post_init__(self):
        # A schedule may begin at 0, as those of Optax that warm up do: such a step stays where it is.
        constant = not callable(self.step_size)
        remedy = f"the step size ε must be {'above 0' if constant else '0 or more'}"
        check_schedule("step_size", self.step_size, remedy, positive=constant)
        check_schedule("temperature", self.temperature, "the temperature τ must be 0 or more", positive=False)
        for name in ("step_size", "temperature"):
            value = getattr(self, name)
            if not callable(value) and is_known(value):
                object.__setattr__(self, name, float(value))

    @property
    def _cold(self) -> bool:
        """Whether the temperature is 0 throughout, so that there is no noise to draw."""
        return not callable(self.temperature) and is_known(self.temperature) and bool(self.temperature == 0)

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        step_size = evaluate(self.step_size, steps)
        temperature = evaluate(self.temperature, steps)
        if self._cold:
            return LangevinInputs(None, step_size, temperature)
        scale = self.noise_scale(step_size, temperature)
        return LangevinInputs(normal_like(key, position, scale), step_size, temperature)

    def noise_scale(self, step_size: Float[Array, "..."], temperature: Float[Array, "..."]) -> Float[Array, "..."]:
        """√(2·friction·τε), the standard deviation of the noise of a step."""
        return jnp.sqrt(2 * self.friction * temperature * step_size)


class IncrementalDynamics(Dynamics):
    """Dynamics whose increment of the position depends on the position only through the gradient.

    `increment` is for loops that hold the position themselves, such as an optimiser's. It ignores the position in the
    state, which may be None (`state.at(None)`).
    """

    @abstractmethod
    def displace(self, inputs: Any, state: Any, gradient: Position) -> tuple[Position, Any]:
        """What the gradient of the flattened landscape and the noise add to the position; and the state after the
        step, except for its position.
        """

    def increment(
        self, inputs: Any, state: Any, energy: Array, gradient: Gradient, flatten: Flatten = unflattened
    ) -> tuple[Position, Any, Info]:
        """What a step adds to the position, the state after it (except for its position), and its info."""
        info = describe_point(energy, flatten)
        added, state = self.displace(inputs, state, multiplied(gradient, info.multiplier))
        return added, state, info

    def virial(self, inputs: Any, state: Any, gradient: Gradient, centre: Position | None) -> Float[Array, ""] | None:
        if callable(self.temperature) or self._cold:
            return None
        away = state.position if centre is None else jax.tree.map(jnp.subtract, state.position, centre)
        products = [jnp.sum(x * g) for x, g in zip(*map(jax.tree.leaves, (away, whole(gradient))), strict=True)]
        return sum(products, jnp.zeros(())) / (position_size(away) * inputs.temperature)

    def move(
        self, inputs: Any, state: Any, energy: Array, gradient: Gradient, flatten: Flatten = unflattened
    ) -> tuple[Any, Info]:
        added, state, info = self.increment(inputs, state, energy, gradient, flatten)
        return state.at(jax.tree.map(jnp.add, state.position, added)), info


def add_noise(moved: Position, noise: Position | None) -> Position:
    """The move with the noise of a step added, if there is any."""
    return moved if noise is None else jax.tree.map(jnp.add, moved, noise)
