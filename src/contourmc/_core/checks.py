"""Errors for bad input: each names the argument, its value, and the remedy."""

import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def require(condition: bool, argument: str, value: Any, remedy: str) -> None:
    """Raise a ValueError that names the argument, the value it had, and what to do."""
    if not condition:
        raise ValueError(f"{argument}={value!r} is not possible: {remedy}")


def require_count(argument: str, value: Any, least: int, remedy: str) -> int:
    """A whole number of at least `least`, as a Python int; 1e6 is accepted as 1_000_000."""
    require(_number(value) and float(value).is_integer() and value >= least, argument, value, remedy)
    return int(value)


def is_known(value: Any) -> bool:
    """Whether a number has a value yet; the arguments of a program that is being traced have none."""
    return not isinstance(value, Tracer)


def require_number(argument: str, value: Any, remedy: str, *, positive: bool) -> None:
    """A finite number, above zero if `positive`, else at least zero. One that is not known yet passes."""
    if not is_known(value):
        return
    fine = _number(value) and bool(np.isfinite(value)) and bool(value > 0 if positive else value >= 0)
    require(fine, argument, value, remedy)


def require_seed(value: Any) -> int:
    """A seed, as a Python int."""
    fine = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < 2**64
    require(fine, "seed", value, "give a whole number from 0 to 2**64 − 1, such as seed=0")
    return int(value)


def _number(value: Any) -> bool:
    """Whether this is a real number; arrays of NumPy and JAX that hold a single one are."""
    if isinstance(value, (np.ndarray, jax.Array)):
        return value.shape == () and jnp.issubdtype(value.dtype, jnp.number)
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def require_finite(argument: str, values: Any) -> None:
    """Raise unless all numbers of an array are finite."""
    if jnp.issubdtype(values.dtype, jnp.inexact):
        bad = int((~np.isfinite(np.asarray(values, float))).sum())
        require(bad == 0, argument, f"{bad} numbers that are not finite", "remove them or fill them in")
