"""Where numbers of a position may lie: each constraint is a map from free numbers, with the volume that it gains.

The maps are those of NumPyro (`biject_to`), which is imported when one is used.
"""

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from contourmc._core.checks import require, require_number
from contourmc._core.extras import import_extra

RADIUS_SPREAD = 0.25  # of log r around a circle: wide enough to walk around it, and far from its centre


class Constraint(ABC):
    """What `transformed` takes; equal ones share compiled code."""

    @abstractmethod
    def constrain(self, free: Array) -> tuple[Array, Float[Array, ""]]:
        """The numbers of the user, and the log density that the free ones gain: log |det J| for a bijection."""

    @abstractmethod
    def unconstrain(self, value: Array) -> Array:
        """Free numbers for those of the user."""

    @abstractmethod
    def fault(self, values: Any) -> str:
        """Why an array, stacked along a leading axis, is not possible, in words; empty if it is."""

    @abstractmethod
    def check(self) -> None:
        """Raise unless there is a map from free numbers."""


class _FromNumPyro(Constraint):
    """By a bijection of NumPyro's."""

    @property
    @abstractmethod
    def known(self) -> Any:
        """The constraint, as NumPyro has it."""

    def constrain(self, free: Array) -> tuple[Array, Float[Array, ""]]:
        bijection = self._bijection()
        value = bijection(free)
        return value, jnp.sum(bijection.log_abs_det_jacobian(free, value))

    def unconstrain(self, value: Array) -> Array:
        return self._bijection().inv(value)

    def fault(self, values: Any) -> str:
        known = self.known
        shape = jnp.shape(values)[1:]
        if len(shape) < known.event_dim or (known.event_dim and shape[-1] < 1):
            return f"it has the shape {shape}, too small for {self}"
        return "" if bool(jnp.all(known(jnp.asarray(values)))) else f"it is not in {self}"

    def check(self) -> None:
        try:
            self._bijection()
        except (NotImplementedError, ValueError) as error:
            remedy = "NumPyro has no map to it from free numbers: give one such as cm.positive or cm.interval(0, 1)"
            raise ValueError(f"constraints={self} is not possible: {remedy}") from error

    def _bijection(self) -> Any:
        return import_extra("numpyro.distributions", "numpyro").biject_to(self.known)


@dataclass(frozen=True)
class Named(_FromNumPyro):
    """A constraint of NumPyro's by its name, with the numbers that it takes."""

    name: str
    numbers: tuple[float, ...] = ()

    @property
    def known(self) -> Any:
        made = getattr(import_extra("numpyro.distributions.constraints", "numpyro"), self.name)
        return made(*self.numbers) if self.numbers else made

    def __str__(self) -> str:
        return self.name + (str(self.numbers) if self.numbers else "")


@dataclass(frozen=True, eq=False)
class Given(_FromNumPyro):
    """A constraint of NumPyro's that the user gave."""

    constraint: Any

    @property
    def known(self) -> Any:
        return self.constraint

    def __str__(self) -> str:
        return str(self.constraint)


@dataclass(frozen=True)
class Periodic(Constraint):
    """A number on a circle, from 0 up to the period.

    A periodic density on a line has no integral, and each of its modes is there without end. So a free position is a
    point of the plane: its angle is the number, and its radius r is independent of it, with log r normal around 1.
    The point has the density e^{−U(angle)}·p(r)/r·period/2π, whose integral is that of e^{−U} over one period.
    """

    period: float

    def constrain(self, free: Array) -> tuple[Array, Float[Array, ""]]:
        angle = jnp.arctan2(free[..., 1], free[..., 0]) * (self.period / math.tau)
        log_radius = 0.5 * jnp.log(jnp.sum(free**2, axis=-1))
        spread = RADIUS_SPREAD
        # Its mean puts the densest points of the plane on the circle of radius 1, where a start lies.
        of_radius = -0.5 * ((log_radius - 2 * spread**2) / spread) ** 2 - math.log(spread * math.sqrt(math.tau))
        gain = of_radius - 2 * log_radius + math.log(self.period / math.tau)
        return jnp.mod(angle, self.period), jnp.sum(gain)

    def unconstrain(self, value: Array) -> Array:
        angle = value * (math.tau / self.period)
        return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)

    def fault(self, values: Any) -> str:
        return ""

    def check(self) -> None:
        return

    def __str__(self) -> str:
        return f"periodic({self.period:g})"


positive = Named("positive")
"""Numbers above 0.

>>> target = cm.transformed(lambda p: p["rate"] - 2 * jnp.log(p["rate"]), {"rate": cm.positive})
>>> run = cm.sample(target, init={"rate": 1.0}, steps=2_000, kernel=cm.langevin(0.1))
>>> print(run["rate"].min() > 0)
True
"""

simplex = Named("simplex")
"""Vectors of probabilities: numbers of 0 or more that sum to 1.

>>> target = cm.transformed(lambda p: -jnp.sum(jnp.log(p)), cm.simplex)
>>> run = cm.sample(target, init=jnp.array([0.2, 0.3, 0.5]), steps=2_000, kernel=cm.langevin(0.1))
>>> print(np.allclose(run.draws.sum(axis=-1), 1))
True
"""

ordered = Named("ordered_vector")
"""Vectors whose numbers rise, such as the means of a mixture, whose components have no order of their own.

>>> target = cm.transformed(lambda p: jnp.sum(p**2) / 2, cm.ordered)
>>> run = cm.sample(target, init=jnp.array([-1.0, 0.0, 1.0]), steps=2_000, kernel=cm.langevin(0.1))
>>> print(np.all(np.diff(run.draws) > 0))
True
"""


def interval(low: float, high: float) -> Constraint:
    """Numbers between two bounds.

    >>> target = cm.transformed(lambda p: 3 * p["share"], {"share": cm.interval(0.0, 1.0)})
    >>> run = cm.sample(target, init={"share": 0.5}, steps=2_000, kernel=cm.langevin(0.1))
    >>> print(run["share"].min() > 0, run["share"].max() < 1)
    True True
    """
    for argument, value in (("low", low), ("high", high)):
        size = abs(value) if isinstance(value, numbers.Real) else value
        require_number(argument, size, "give a finite number, such as 0.0", positive=False)
    require(low < high, "high", high, f"give a number above low={low!r}")
    return Named("interval", (float(low), float(high)))


def periodic(period: float) -> Constraint:
    """Numbers on a circle, such as angles with a period of 2π; the energy must have that period too.

    >>> target = cm.transformed(lambda p: jnp.cos(p["angle"]), {"angle": cm.periodic(2 * jnp.pi)})
    >>> run = cm.sample(target, init={"angle": 0.0}, steps=2_000, kernel=cm.langevin(0.01))
    >>> print(run["angle"].min() >= 0, run["angle"].max() <= 2 * np.pi)
    True True
    """
    require_number("period", period, "give a finite number above 0, such as 2π", positive=True)
    return Periodic(float(period))


def as_constraint(name: str, given: Any) -> Constraint:
    """A constraint of ours, or of NumPyro's; raises for anything else, and for one without a map from free numbers."""
    if not isinstance(given, Constraint):
        kind = import_extra("numpyro.distributions.constraints", "numpyro").Constraint
        remedy = "give a constraint such as cm.positive, cm.interval(0, 1), or one of NumPyro's"
        require(isinstance(given, kind), name, given, remedy)
        given = Given(given)
    given.check()
    return given


def is_constraint(given: Any) -> bool:
    """Whether something stands for a constraint in a pytree of them: all but containers, which hold more of them."""
    return not isinstance(given, (dict, list, tuple)) and given is not None
