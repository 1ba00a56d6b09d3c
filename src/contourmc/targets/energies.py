"""Energy functions as targets: exact, or observed with noise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.checks import naming, require, require_number
from contourmc._core.noise import normal_like
from contourmc._core.pytrees import Position
from contourmc.targets.base import Target, at_init

Energy = Callable[[Any], Array]


@dataclass(frozen=True)
class ExactEnergy(Target):
    """An energy function that is evaluated as it is.

    >>> cm.sample(cm.ExactEnergy(energy), init=1.0, steps=2_000, kernel=cm.sgld(0.002))
    Samples(4 chains × 1800 draws, SGLD)
    """

    exact: ClassVar[bool] = True
    functions: ClassVar[tuple[str, ...]] = ("energy",)
    energy: Energy

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> None:
        return None

    def evaluate(self, inputs: None, position: Position) -> tuple[Float[Array, ""], Position]:
        return jax.value_and_grad(self.energy)(position)

    def check(self, position: Any) -> None:
        _check_energy(self.energy, position)


@dataclass(frozen=True)
class NoisyEnergy(Target):
    """An energy function seen through Gaussian noise, as in the paper's simulations.

    gradient_variance: the variance added to each coordinate of the gradient.
    energy_variance: the variance added to the energy.

    >>> target = cm.NoisyEnergy(energy, gradient_variance=0.1, energy_variance=0.01)
    >>> cm.sample(target, init=1.0, steps=2_000, kernel=cm.sgld(0.002))
    Samples(4 chains × 1800 draws, SGLD)
    """

    functions: ClassVar[tuple[str, ...]] = ("energy",)
    energy: Energy
    gradient_variance: float = 0.0
    energy_variance: float = 0.0

    def __post_init__(self):
        for argument in ("gradient_variance", "energy_variance"):
            value = getattr(self, argument)
            require_number(argument, value, "a variance must be 0 or more", positive=False)

    def prepare(
        self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]
    ) -> tuple[Position | None, Array | None]:
        gradient_key, energy_key = jax.random.split(jax.random.fold_in(key, steps[0]))
        gradient_noise = energy_noise = None
        if self.gradient_variance:
            gradient_noise = normal_like(gradient_key, position, jnp.full(steps.shape, self.gradient_variance**0.5))
        if self.energy_variance:
            energy_noise = self.energy_variance**0.5 * jax.random.normal(energy_key, steps.shape)
        return gradient_noise, energy_noise

    def evaluate(
        self, inputs: tuple[Position | None, Array | None], position: Position
    ) -> tuple[Float[Array, ""], Position]:
        gradient_noise, energy_noise = inputs
        energy, gradient = jax.value_and_grad(self.energy)(position)
        if gradient_noise is not None:
            gradient = jax.tree.map(jnp.add, gradient, gradient_noise)
        if energy_noise is not None:
            energy = energy + energy_noise
        return energy, gradient

    def check(self, position: Any) -> None:
        _check_energy(self.energy, position)


def from_log_density(log_density: Callable[[Any], Array]) -> ExactEnergy:
    """A log density, as BlackJAX and others take it, as a target: its energy is minus that.

    >>> target = cm.from_log_density(lambda x: -(x**2) / 2)
    >>> print(target.energy(jnp.array(3.0)))
    4.5
    """
    require(callable(log_density), "log_density", log_density, "give a function of a position")

    @wraps(log_density)  # its name is what describes the target
    def energy(position: Any) -> Array:
        return -log_density(position)

    return ExactEnergy(energy)


def as_target(target: Target | Energy) -> Target:
    """The target itself, or a function of a position as an exact energy."""
    if isinstance(target, Target):
        return target
    require(callable(target), "target", target, "give a function of a position, or a Target")
    return ExactEnergy(target)


def _check_energy(energy: Energy, position: Any) -> None:
    """Raise unless the function gives one float at such a position."""
    with naming("target", energy, at_init(position)):
        value = jax.eval_shape(lambda x: energy(x), position)  # a new function, which JAX cannot remember
    scalar = getattr(value, "shape", None) == () and jnp.issubdtype(value.dtype, jnp.floating)
    remedy = "an energy must be one float: sum over its terms, and check that init is one position"
    require(scalar, "target", value, remedy)
