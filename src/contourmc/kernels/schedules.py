"""Settings that may change along a run: step size ε_k, learning rate ω_k of θ, temperature τ_k; k counts from 1.

A schedule is a number or any function of the step that JAX can trace. The ones here are small frozen
classes, so that equal settings are equal objects: they can be printed and stored, and compile once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc._core.checks import is_known, naming, require, require_count, require_number
from contourmc._core.generated import host_function
from contourmc._core.straight_line import UnknownOperationError

# Inside a compiled program a number may be an array.
Number = float | Array
Schedule = Number | Callable[[Array], Array]


@dataclass(frozen=True)
class Polynomial:
    """min(cap, scale / (k^power + offset)): the paper's ω_k.

    >>> omega = cm.Polynomial(scale=1.0, power=1.0, offset=100.0)
    >>> print(omega(jnp.array([100, 300, 900])))
    [0.005  0.0025 0.001 ]
    """

    scale: float
    power: float
    offset: float = 0.0
    cap: float = float("inf")

    def __post_init__(self):
        require_number("scale", self.scale, "the scale must be above 0", positive=True)
        require_number("power", self.power, "the power must be 0 or more", positive=False)
        require_number("offset", self.offset, "the offset must be 0 or more", positive=False)
        require(self.cap > 0, "cap", self.cap, "the cap must be above 0")

    def __call__(self, step: Array) -> Array:
        # As a float: powers of integers are slow, and inexact in float32.
        k = jnp.asarray(step, jnp.result_type(float))
        return jnp.minimum(self.cap, self.scale / (k**self.power + self.offset))


@dataclass(frozen=True)
class ExponentialDecay:
    """`value` for `begin` steps, and then multiplied by `factor` after every `every` steps.

    >>> step_size = cm.ExponentialDecay(value=0.5, factor=0.5, every=100)
    >>> print(step_size(jnp.array([1, 101, 201])))
    [0.5   0.25  0.125]
    """

    value: float
    factor: float
    every: int
    begin: int = 0

    def __post_init__(self):
        require_number("value", self.value, "the starting value must be 0 or more", positive=False)
        require_number("factor", self.factor, "the factor must be above 0", positive=True)
        require_count("every", self.every, 1, "the decay needs at least 1 step between factors")
        require_count("begin", self.begin, 0, "the decay begins at step 0 or later")

    def __call__(self, step: Array) -> Array:
        import optax  # not above: it would double the time of `import contourmc`

        decay = optax.exponential_decay(
            self.value, self.every, self.factor, transition_begin=self.begin, staircase=True
        )
        return jnp.asarray(decay(step - 1))  # Optax counts from 0


@dataclass(frozen=True)
class CyclicCosine:
    """From `value` down to 0 along half a cosine every `period` steps (Zhang et al. 2020).

    warm_up: over how many steps at the start of the run it rises from 0 instead, for networks that large first steps
        would throw out of the range where they can be trained.

    >>> learning_rate = cm.CyclicCosine(value=0.5, period=100)
    >>> print(learning_rate(jnp.array([1, 51, 101])).round(2))
    [0.5  0.25 0.5 ]
    """

    value: float
    period: int
    warm_up: int = 0

    def __post_init__(self):
        require_number("value", self.value, "the starting value must be above 0", positive=True)
        require_count("period", self.period, 1, "a cycle needs at least 1 step")
        require_count("warm_up", self.warm_up, 0, "give 0 steps or more")

    def __call__(self, step: Array) -> Array:
        import optax

        cosine = jnp.asarray(optax.cosine_decay_schedule(self.value, self.period)((step - 1) % self.period))
        return cosine * jnp.minimum(1.0, step / self.warm_up) if self.warm_up else cosine


def evaluate(schedule: Schedule, steps: Int[Array, " steps"]) -> Float[Array, " steps"]:
    """The schedule's value at each of the steps."""
    values = schedule(steps) if callable(schedule) else schedule
    if isinstance(values, (list, tuple)):
        raise TypeError(f"a schedule gave a {type(values).__name__}")
    return jnp.broadcast_to(jnp.asarray(values, jnp.result_type(float)), steps.shape)


def check_schedule(argument: str, schedule: Schedule, remedy: str, *, positive: bool = True) -> float | None:
    """The schedule's value at the first step, or None if it is not known yet; raises if it is impossible."""
    first: Any = schedule
    if callable(schedule):
        needed = "a schedule gives one number for each step of an array of them, and JAX must be able to trace it, with"
        with naming(argument, schedule, "at step 1", f"{needed} jnp.where in place of if"):
            first = values_at(schedule, [1])[0]
            first = float(first) if is_known(first) else first
    if not is_known(first):
        return None
    require_number(f"{argument} at step 1" if callable(schedule) else argument, first, remedy, positive=positive)
    return float(first)


def values_at(schedule: Any, steps: Sequence[int]) -> list[Any]:
    """The schedule's values at some steps, one by one; those of a program that is being traced are not known yet.

    On the host if NumPy can do it: a program compiled for one number would take longer, and touch a device.
    """
    numbers = np.asarray(steps, np.int32).reshape(-1, 1)
    try:
        values = host_function(lambda step: evaluate(schedule, step), jax.ShapeDtypeStruct((1,), np.int32))
        return [values(number)[0][0] for number in numbers]
    except UnknownOperationError:
        found = jax.vmap(lambda step: evaluate(schedule, step)[0])(jnp.asarray(numbers))
        return [*np.asarray(found)] if is_known(found) else [*found]
