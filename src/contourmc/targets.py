"""What is sampled: an energy function, exact or observed with noise.

The energy U(x) is minus the log density up to a constant; x is any pytree of float arrays.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc.arrays import HoldsArrays, unstack
from contourmc.checks import require, require_number
from contourmc.kernels.base import Position, normal_like

Energy = Callable[[Any], Array]


class Target(HoldsArrays, ABC):
    """An energy and its gradient, evaluated together, once a step.

    Arrays that it holds are arguments of the compiled program if its class names them, as in
    `class Mine(Target, arrays=("data",))`; everything else is compiled into it, and must be hashable.

    exact: whether both are without noise, so that a Metropolis test makes sense.
    """

    exact: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        """The target's own randomness for the given steps (counted from 1), stacked along the first axis.

        The key is the chain's, and the same in every call.
        """

    @abstractmethod
    def evaluate(self, inputs: Any, position: Position) -> tuple[Float[Array, ""], Position]:
        """The energy and gradient at a position, perhaps random, given one step's randomness."""

    def init(self) -> Any:
        """The state that the target carries beside the position, such as batch-norm statistics; None for most."""
        return None

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> tuple[Float[Array, ""], Position, Any]:
        """`evaluate`, with the state before and after."""
        return (*self.evaluate(inputs, position), state)

    def drawn(self, state: Any) -> Any:
        """The part of the state that belongs to a draw: it is stored with it, and an average gets to see it."""
        return state

    def check(self, position: Position) -> None:
        """Raise unless the target can be evaluated at such a position and gives one float."""

    def session(self) -> AbstractContextManager[None]:
        """Around a run: what the target needs from the host meanwhile, such as a thread that reads data."""
        return nullcontext()

    def after(self, step: int) -> None:
        """After steps were made: raise what went wrong on the host. No step up to the given one is made again."""


@dataclass(frozen=True)
class ExactEnergy(Target):
    """An energy function that is evaluated as it is."""

    exact: ClassVar[bool] = True
    energy: Energy

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> None:
        return None

    def evaluate(self, inputs: None, position: Position) -> tuple[Float[Array, ""], Position]:
        return jax.value_and_grad(self.energy)(position)

    def check(self, position: Position) -> None:
        _check_energy(self.energy, position)


@dataclass(frozen=True)
class NoisyEnergy(Target):
    """An energy function seen through Gaussian noise, as in the paper's simulations.

    gradient_variance: the variance added to each coordinate of the gradient.
    energy_variance: the variance added to the energy.
    """

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

    def check(self, position: Position) -> None:
        _check_energy(self.energy, position)


def as_target(target: Target | Energy) -> Target:
    """The target itself, or a function of a position as an exact energy."""
    if isinstance(target, Target):
        return target
    require(callable(target), "target", target, "give a function of a position, or a Target")
    return ExactEnergy(target)


def check_position(position: Any) -> None:
    """Raise unless the position is a pytree of at least one float array."""
    leaves = jax.tree_util.tree_leaves_with_path(position)
    require(bool(leaves), "init", position, "a position needs at least one number")
    for path, leaf in leaves:
        floating = jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)
        remedy = "a position must be made of floats (write 0.0, not 0)"
        require(floating, "init" + jax.tree_util.keystr(path), leaf, remedy)


def check_target(target: Target, positions: Position, *, own: bool = False) -> None:
    """Raise unless the target gives one finite energy for each of a stack of starting positions.

    own: whether the target is a stack too, with one for each position.
    """
    (unstack(target, 0) if own else target).check(unstack(positions, 0))
    energies = np.asarray(_energies(target, positions, own))
    target.after(0)
    bad = np.flatnonzero(~np.isfinite(energies))
    if bad.size:
        at = f"a start of chain {bad[0]} with energy {energies[bad[0]]}"
        require(False, "init", at, "start every chain where the energy is finite")


def _check_energy(energy: Energy, position: Position) -> None:
    try:
        value = jax.eval_shape(energy, position)
    except Exception as error:
        shapes = jax.tree.map(jnp.shape, position)
        raise ValueError(
            f"target={energy!r} is not possible: at an init of shape {shapes} it fails with {error!r}"
        ) from error
    scalar = getattr(value, "shape", None) == () and jnp.issubdtype(value.dtype, jnp.floating)
    remedy = "an energy must be one float: sum over its terms, and check that init is one position"
    require(scalar, "target", value, remedy)


@partial(jax.jit, static_argnames="own")
def _energies(target: Target, positions: Position, own: bool) -> Float[Array, " chains"]:
    """The energy at each of a stack of positions."""

    def energy_at(target: Target, position: Position) -> Array:
        inputs = target.prepare(jax.random.key(0), position, jnp.arange(1, 2))
        inputs = jax.tree.map(lambda leaf: leaf[0], inputs)
        return target.evaluate_from(inputs, position, target.init())[0]

    return jax.vmap(energy_at, (0 if own else None, 0))(target, positions)
