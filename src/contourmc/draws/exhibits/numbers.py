"""Numbers as people read them: with as many digits as it takes to tell them apart, and no more."""

import math
from typing import Any

import numpy as np

DIGITS = 4  # that differ
MOST = 15  # digits of a float


class Measured(float):
    """A number among others of some spread: 2,459,000.013 if that is 0.01, and 2,459,000 if it is 1,000."""

    spread: float

    def __new__(cls, value: Any, spread: Any) -> "Measured":
        number = super().__new__(cls, value)
        number.spread = float(spread)
        return number


def shown(cell: str | int | float) -> str:
    """A text, or a number, as a page shows it; a dash for one that is not known."""
    if isinstance(cell, (bool, str)):
        return str(cell)
    if isinstance(cell, int):
        return f"{cell:,}"
    if math.isnan(cell):
        return "–"
    size, decimals = abs(cell), 0 if abs(cell) >= 10 ** (DIGITS - 1) else None
    if isinstance(cell, Measured) and 0 < cell.spread < math.inf:
        decimals = max(0, DIGITS - 1 - math.floor(math.log10(cell.spread)))
    if decimals is None or decimals > MOST - 3 or size >= 10**MOST:
        return f"{cell:#.{DIGITS}g}"
    return f"{cell:,.{decimals}f}"


def counted(number: int, noun: str) -> str:
    """1 chain, 8 chains."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def digits_of(values: Any) -> int:
    """How many significant digits tell some numbers apart, however far they are from 0."""
    numbers = np.ravel(np.asarray(values, float))
    numbers = numbers[np.isfinite(numbers)]
    spread = np.ptp(numbers) if numbers.size else 0.0
    shared = math.floor(math.log10(np.max(np.abs(numbers)) / spread)) if spread > 0 else 0
    return min(DIGITS + 1 + max(shared, 0), MOST)
