"""The base class of targets, an energy with its gradient; and what a run checks before it begins.

The energy U(x) is minus the log density up to a constant; x is any pytree of float arrays.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from contourmc._core.checks import require
from contourmc._core.compiling import compiled_call
from contourmc._core.pytrees import HoldsArrays, Position
from contourmc.targets.view import View

Result = TypeVar("Result")

# What to do about a gradient that is NaN where the energy is finite.
NAN_GRADIENT_CURE = (
    "jnp.where(x > 0, jnp.sqrt(x), 0.0) is such an energy: for x < 0 its gradient is 0 · NaN. Give the inner function"
    " an argument that it can take, as in jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0); or, if no draw"
    " should lie there, return jnp.inf"
)


class Target(HoldsArrays, ABC):
    """An energy and its gradient, evaluated together, once a step.

    Arrays that it holds are arguments of the compiled program if its class names them, as in
    `class Mine(Target, arrays=("data",))`; everything else is a constant of the program, and must be hashable.

    exact: whether both are without noise, so that a Metropolis test makes sense.
    batch_parts: in how many parts a batch is evaluated, each by a device of its own if there are as many for a chain.
    calls_host: whether it calls the host, for data or energies, while the compiled program runs.
    functions: the names of attributes that are functions, or objects with functions, and matter to `evaluate` only.
        They are traced anew for every run, and programs that compute the same share compiled code.

    >>> target = cm.ExactEnergy(energy)
    >>> print(isinstance(target, cm.Target), target.exact, *target.evaluate(None, jnp.array(1.0)))
    True True 0.5 0.5
    """

    exact: ClassVar[bool] = False
    batch_parts: int = 1
    calls_host: bool = False
    functions: ClassVar[tuple[str, ...]] = ()

    @property
    def view(self) -> View | None:
        """How the user sees a position; None for most targets, whose users see what is sampled."""
        return None

    def starts(self, keys: Array) -> Position | None:
        """A sampled position for each key, stacked, where a chain can start; None for a target that knows none."""
        return None

    @property
    def observations(self) -> int | None:
        """How many observations the energy is a sum over; None if it is not about data."""
        return None

    @abstractmethod
    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        """The target's randomness for the given steps (counted from 1), stacked along the first axis.

        The key is the chain's, and the same in every call.
        """

    @abstractmethod
    def evaluate(self, inputs: Any, position: Position) -> tuple[Float[Array, ""], Position]:
        """The energy and gradient at a position, perhaps random, given one step's randomness."""

    def init(self) -> Any:
        """The target's state at the start, such as batch-norm statistics; None for most targets."""
        return None

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> tuple[Float[Array, ""], Position, Any]:
        """`evaluate`, with the state before and after."""
        return (*self.evaluate(inputs, position), state)

    def evaluate_part(self, inputs: Any, part: Int[Array, ""], position: Position, state: Any) -> Any:
        """`evaluate_from`, of one of several `batch_parts`: its energies and gradients add up to those of the batch."""
        raise NotImplementedError

    def drawn(self, state: Any) -> Any:
        """The part of the state that belongs to a draw: it is stored with the draw and passed to an average."""
        return state

    def check(self, position: Any) -> None:
        """Raise unless the target gives one float at a position of these shapes."""

    def session(self) -> AbstractContextManager[None]:
        """A context around a run, for work on the host such as a thread that reads data."""
        return nullcontext()

    def reading(self) -> AbstractContextManager[None]:
        """A context around calls of the compiled program: once it is left, no program waits for data any more."""
        return nullcontext()

    def after(self, step: int) -> None:
        """Called between two calls of the compiled program: raise the error if something went wrong on the host.

        Steps up to the given one will not be made again.
        """

    def data_state(self, step: int) -> Any:
        """What a checkpoint after a step holds of the data's whereabouts; None for most targets."""
        return None

    def seek(self, step: int, state: Any) -> None:
        """In a new session: let the data go on after a step, with what `data_state` gave then."""


def check_position(position: Any) -> None:
    """Raise unless the position is a pytree of at least one float array."""
    try:
        leaves = jax.tree_util.tree_leaves_with_path(position)
    except (TypeError, ValueError) as error:
        remedy = "the keys of a dictionary must be of one type, such as str, so that they can be sorted"
        raise ValueError(f"init={position!r} is not possible: {remedy}") from error
    for path, leaf in leaves:
        kind = getattr(leaf, "dtype", None) or np.asarray(leaf).dtype
        floating = jnp.issubdtype(kind, jnp.floating)
        remedy = "a position must be made of floats (write 0.0, not 0)"
        require(floating, "init" + jax.tree_util.keystr(path), leaf, remedy)
    some = any(np.size(leaf) for _, leaf in leaves)
    require(some, "init", position, "a position needs at least one number")


def at_init(position: Any) -> str:
    """Where a function of the user's was called, for an error in it."""
    return f"at an init of shape {jax.tree.map(jnp.shape, position)}"


def check_starts(target: Target, positions: Position, *, per_chain: bool = False) -> None:
    """Raise unless the target gives one finite energy for each of a stack of starting positions.

    per_chain: whether the target is a stack too, with one for each position.
    """
    energies, smooth = _evaluated(target, positions, per_chain)
    for chain in np.flatnonzero(~np.isfinite(energies)):
        at = f"a start of chain {chain} with energy {energies[chain]}"
        require(False, "init", at, "start every chain where the energy is finite")
    for chain in np.flatnonzero(~smooth):
        at = f"a start of chain {chain} where the gradient is not finite"
        remedy = "start elsewhere, or check the energy: the derivatives of √|x|, |x|**0.5 or jnp.linalg.norm fail at 0"
        require(False, "init", at, f"{remedy}; where a gradient is NaN, {NAN_GRADIENT_CURE}")


def energies_at(target: Target, positions: Position, *, per_chain: bool) -> np.ndarray:
    """The energies at stacked positions, of a target with noise those of its first step."""
    return _evaluated(target, positions, per_chain)[0]


def _evaluated(target: Target, positions: Position, per_chain: bool) -> tuple[np.ndarray, np.ndarray]:
    energies, smooth = call_on(target, _at_starts, positions, per_chain=per_chain)
    return np.asarray(energies), np.asarray(smooth)


def call_on(target: Target, function: Callable[..., Result], *arguments: Any, **static: Any) -> Result:
    """`call_compiled(function, target, …)`; raises the error if something went wrong on the host.

    A program that waits for the host is called by a thread, so that Ctrl-C takes effect meanwhile.
    """
    call = compiled_call(function, target, *arguments, **static)
    if target.calls_host:
        with ThreadPoolExecutor(1) as thread, target.reading():
            result = thread.submit(lambda: jax.block_until_ready(call())).result()
    else:
        result = call()
    target.after(0)
    return result


def first_step(target: Target, position: Position) -> tuple[Any, Any]:
    """What `evaluate_from` takes in the first step besides the position: the target's randomness and its state."""
    inputs = target.prepare(jax.random.key(0), position, jnp.arange(1, 2, dtype=jnp.int32))
    return jax.tree.map(lambda leaf: leaf[0], inputs), target.init()


def _at_starts(
    target: Target, positions: Position, *, per_chain: bool
) -> tuple[Float[Array, " chains"], Bool[Array, " chains"]]:
    """The energy at each of a stack of positions, and whether its gradient is finite."""

    def evaluate(target: Target, position: Position) -> tuple[Array, Array]:
        inputs, state = first_step(target, position)
        energy, gradient, _ = target.evaluate_from(inputs, position, state)
        finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient)]
        return energy, jnp.all(jnp.stack(finite))

    return jax.vmap(evaluate, (0 if per_chain else None, 0))(target, positions)
