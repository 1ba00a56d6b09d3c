"""−U as a function of NumPy arrays that counts its evaluations, for samplers that loop in Python."""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from benchmarks.gallery.outcome import compiled, log_density
from contourmc.problems import Problem

SMALLEST = 64  # points in a batch


class BudgetSpentError(Exception):
    """A sampler without a limit of its own has spent its evaluations."""


class LogLikelihood:
    """−U at a point, or at many at once.

    A program is compiled for one point and for batches of 64, 128, 256, … points; other batches are filled up with
    copies of their last point, which do not count. Coordinates that the problem does not have are ignored.

    limit: the evaluation after this one raises BudgetSpentError.
    evaluations: so far.
    """

    def __init__(self, problem: Problem, limit: float = float("inf")) -> None:
        self._problem = problem
        self._limit = limit
        self._sizes: set[int] = set()
        self.evaluations = 0

    @property
    def compile_seconds(self) -> float:
        """Of the programs that were used, compiled now or before."""
        return sum(_program(self._problem, size)[1] for size in self._sizes)

    def point(self, x: Float[np.ndarray, " dimension"]) -> float:
        """−U of one point."""
        return float(self._evaluate(x[None], 1)[0])

    def batch(self, x: Float[np.ndarray, "points dimension"]) -> Float[np.ndarray, " points"]:
        """−U of every row."""
        size = 1 if len(x) == 1 else max(SMALLEST, 1 << (len(x) - 1).bit_length())
        return self._evaluate(x, size)

    def _evaluate(self, x: np.ndarray, size: int) -> np.ndarray:
        if self.evaluations + len(x) > self._limit:
            raise BudgetSpentError(f"{self.evaluations:,} evaluations are spent")
        self.evaluations += len(x)
        self._sizes.add(size)
        rows = np.asarray(x[:, : self._problem.dimension], np.float32)
        if len(rows) < size:
            rows = np.concatenate([rows, np.broadcast_to(rows[-1], (size - len(rows), rows.shape[1]))])
        return np.asarray(_program(self._problem, size)[0](rows), float)[: len(x)]


@lru_cache(maxsize=32)
def _program(problem: Problem, size: int) -> tuple[Any, float]:
    return compiled(jax.vmap(log_density(problem)), jnp.zeros((size, problem.dimension), jnp.float32))
