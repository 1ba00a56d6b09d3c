"""Errors for bad input: each names the argument, its value, and the remedy."""

import numbers
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

_NOT_POSSIBLE = " is not possible: "
_OTHER_ORDER = "arrays in big-endian order, as from FITS files, are unknown to JAX: convert them, by"
_OTHER_ORDER += " x.astype(x.dtype.newbyteorder('='))"


def require(condition: bool, argument: str, value: Any, remedy: str) -> None:
    """Raise a ValueError that names the argument, the value it had, and what to do."""
    if not condition:
        raise ValueError(f"{argument}={value!r}{_NOT_POSSIBLE}{remedy}")


@contextmanager
def naming(argument: str, function: Any, where: str, remedy: str = "") -> Iterator[None]:
    """A context in which a function of the user's is called: an error in it becomes one that names the function.

    An error that names an argument already stays as it is.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ValueError) and _NOT_POSSIBLE in str(error):
            raise
        if any(re.search(r"[Dd]type[ ('=]+[<>][fiuc]\d", str(one)) for one in _with_causes(error)):
            remedy = _OTHER_ORDER
        advice = f": {remedy}" if remedy else ""
        raise ValueError(f"{argument}={function!r}{_NOT_POSSIBLE}{where} it fails with {error!r}{advice}") from error


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def require_count(argument: str, value: Any, least: int, remedy: str) -> int:
    """A whole number of at least `least`, as a Python int; 1e6 is accepted as 1_000_000."""
    finite = _number(value) and bool(np.isfinite(value))
    such = f"such as {max(least, int(value)):,}" if finite else f"{least} or more"
    require(finite and float(value).is_integer(), argument, value, f"give a whole number, {such}")
    require(bool(value >= least), argument, value, remedy)
    return int(value)


def is_known(value: Any) -> bool:
    """Whether a number has a value yet; the arguments of a program that is being traced have none."""
    return not isinstance(value, Tracer)


def require_number(argument: str, value: Any, remedy: str, *, positive: bool) -> None:
    """A finite number, above zero if `positive`, else at least zero. One that is not known yet passes."""
    if not is_known(value):
        return
    kind = "a finite number" if _number(value) else "a number"
    finite = _number(value) and bool(np.isfinite(value))
    require(finite, argument, value, remedy if remedy.startswith("give") else f"give {kind}: {remedy}")
    require(bool(value > 0 if positive else value >= 0), argument, value, remedy)


def require_memory(argument: str, value: Any, needed: float, there: float, what: str, remedy: str) -> None:
    """Raise unless what takes so many bytes fits into those that are there."""
    sizes = f"would take {needed / 2**30:,.1f} GiB, and {there / 2**30:,.1f} GiB are free"
    require(needed < there, argument, value, f"{what} {sizes}: {remedy}")


def require_seed(value: Any) -> int:
    """A seed, as a Python int."""
    fine = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < 2**64
    require(fine, "seed", value, "give a whole number from 0 to 2**64 − 1, such as seed=0")
    return int(value)


def _number(value: Any) -> bool:
    """Whether this is a real number; arrays of NumPy and JAX that hold a single one are."""
    if isinstance(value, (np.ndarray, jax.Array)):
        return value.shape == () and any(jnp.issubdtype(value.dtype, kind) for kind in (jnp.integer, jnp.floating))
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def require_finite(argument: str, values: Any) -> None:
    """Raise unless all numbers of an array are finite."""
    if jnp.issubdtype(values.dtype, jnp.inexact):
        bad = int((~np.isfinite(np.asarray(values, float))).sum())
        require(bad == 0, argument, f"{bad} numbers that are not finite", "remove them or fill them in")
