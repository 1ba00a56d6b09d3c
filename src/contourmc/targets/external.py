"""Energies that are not written in JAX: a simulator, a Fortran code, a PyTorch function."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import jax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.checks import require, require_count, require_number
from contourmc._core.pytrees import Position, position_size
from contourmc.data.differences import MOST, STEP
from contourmc.data.evaluator import Evaluator, HostFunction
from contourmc.data.host_side import require_alone
from contourmc.targets.base import Target

Workers = int | Literal["threads"] | None


@dataclass(frozen=True, eq=False)
class External(Target, arrays=("host",)):
    """An energy that is evaluated outside of JAX, for all chains side by side; `external` explains the settings."""

    calls_host: ClassVar[bool] = True  # pyright: ignore[reportIncompatibleVariableOverride]
    functions: ClassVar[tuple[str, ...]] = ("function",)
    function: Callable[..., Any]
    gradient: Literal["given", "differences"] = "given"
    difference_step: float = STEP
    exact: bool = True  # pyright: ignore[reportIncompatibleVariableOverride]
    workers: Workers = field(default=None, repr=False)  # a run may go on with others
    host: HostFunction = field(init=False, repr=False)

    def __post_init__(self):
        require(callable(self.function), "function", self.function, "give a function of a position")
        known = self.gradient in ("given", "differences")
        remedy = 'give "given", or "differences" for a function that gives the energy alone'
        require(known, "gradient", self.gradient, remedy)
        require_number("difference_step", self.difference_step, "give a number above 0, such as 6e-6", positive=True)
        if self.workers is not None and self.workers != "threads":
            remedy = 'give the number of processes, 1 or more; None for one on each core; or "threads"'
            object.__setattr__(self, "workers", require_count("workers", self.workers, 1, remedy))
        step = self.difference_step if self.gradient == "differences" else None
        object.__setattr__(self, "host", HostFunction(Evaluator(self.function, self.workers, step)))

    def prepare(
        self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]
    ) -> tuple[Int[Array, " steps"], Array | None]:
        """The number of each step and, for a function with noise, a seed."""
        if self.exact:
            return steps, None
        return steps, jax.vmap(lambda step: jax.random.bits(jax.random.fold_in(key, step), (2,)))(steps)

    def evaluate(self, inputs: tuple[Array, Array | None], position: Position) -> tuple[Float[Array, ""], Position]:
        step, seed = inputs
        return self.host.evaluate(step, position, seed)

    def check(self, position: Any) -> None:
        """Raise unless the function can get such a position, and its gradient is not too costly."""
        _check_containers(position)
        size = position_size(position)
        remedy = f"differences need two evaluations for each of {size:,} numbers: above {MOST}, give a gradient"
        require(self.gradient == "given" or size <= MOST, "gradient", self.gradient, remedy)

    def session(self) -> AbstractContextManager[None]:
        require_alone(self.host)
        return self.host.side.session()

    def reading(self) -> AbstractContextManager[None]:
        return self.host.side.reading()

    def after(self, step: int) -> None:
        self.host.after(step)


def external(
    function: Callable[..., Any],
    *,
    workers: Workers = None,
    gradient: Literal["given", "differences"] = "given",
    difference_step: float = STEP,
    exact: bool = True,
) -> External:
    """An energy that is not written in JAX, as a target: `cm.sample(cm.external(value_and_gradient), …)`.

    function: from one position, the same pytree with 64-bit NumPy arrays and floats as leaves, to its energy and
        gradient, the gradient made like the position. Positions are made of dictionaries, lists and tuples.
    workers: how many processes evaluate it side by side at most, each a position at a time; one on each core unless
        given. They get the function pickled, by cloudpickle where it is installed. "threads": threads of this
        process, for a function that cannot be pickled, releases Python's lock, or takes microseconds.
    gradient: "given"; or "differences" for a function that returns the energy alone: then the gradient comes from
        central differences, 2d more evaluations in d dimensions, which are dealt to the workers too; for up to 50.
    difference_step: by how much a coordinate x is moved for them, in units of max(1, |x|). Larger for an energy that is
        only computed to a few digits, about the cube root of its relative error.
    exact: whether the energy is without noise. If not, the function gets a second argument, a NumPy random generator
        that depends on seed, chain and step alone, and a run needs a kernel or a `step_size`.

    An energy that is not finite is what it is for any target: a wall to a Metropolis test. If the function raises, or a
    worker dies, the run ends with an `EnergyError`, which shows the worker's traceback and carries the draws so far. A
    script needs no `if __name__ == "__main__"`. See docs/external.md.

    >>> def value_and_gradient(x):  # in NumPy, or anything else
    ...     return 0.5 * x**2, x
    >>> cm.sample(cm.external(value_and_gradient, workers="threads"), init=1.0, steps=200, kernel=cm.sgld(0.1))
    Samples(4 chains × 180 draws, SGLD)
    """
    return External(function, gradient, difference_step, exact, workers)


def _check_containers(position: Any) -> None:
    """Raise unless a position is made of what a worker, which has no JAX, can make too."""
    if isinstance(position, dict):
        parts = list(position.values())
    elif isinstance(position, (list, tuple)):
        parts = list(position)
    else:
        leaf = position is None or jax.tree_util.all_leaves([position])
        remedy = "an external energy gets positions made of dictionaries, lists and tuples of arrays"
        return require(leaf, "init", type(position).__name__, remedy)
    for part in parts:
        _check_containers(part)
