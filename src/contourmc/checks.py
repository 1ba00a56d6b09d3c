"""Errors for bad input: each names the argument, what came, and the remedy."""

import numbers
from typing import Any

import numpy as np


def require(condition: bool, argument: str, value: Any, remedy: str) -> None:
    """Raise a ValueError that names the argument, the value it had, and what to do."""
    if not condition:
        raise ValueError(f"{argument}={value!r} is not possible: {remedy}")


def require_count(argument: str, value: Any, least: int, remedy: str) -> int:
    """A whole number of at least `least`, as a Python int; 1e6 is accepted as 1_000_000."""
    whole = isinstance(value, numbers.Real) and not isinstance(value, bool) and float(value).is_integer()
    require(whole and int(value) >= least, argument, value, remedy)
    return int(value)


def require_number(argument: str, value: Any, remedy: str, *, positive: bool) -> None:
    """A finite number, above zero if `positive`, else at least zero."""
    number = isinstance(value, (numbers.Real, np.generic)) and not isinstance(value, bool)
    fine = number and np.isfinite(float(value)) and (float(value) > 0 if positive else float(value) >= 0)
    require(fine, argument, value, remedy)
