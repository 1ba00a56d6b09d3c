"""What every method is given and gives back, and how far that is from the truth."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

import contourmc as cm
from contourmc.draws.estimates import normalise
from contourmc.problems import Problem

WITH_GRADIENT = 2  # what an energy with its gradient counts


@dataclass(frozen=True)
class Budget:
    """steps: of each chain, everything included; a step is an energy with its gradient.  chains: how many there are."""

    steps: int
    chains: int

    @property
    def evaluations(self) -> int:
        """Of the density, all chains together; a gradient counts as one more."""
        return WITH_GRADIENT * self.steps * self.chains


@dataclass(frozen=True)
class Tuning:
    """What contourmc chose by itself, handed to the methods that cannot choose.

    step_size: ε.  partition: the energy bins.
    """

    step_size: float
    partition: cm.Partition

    def plain(self) -> dict[str, float]:
        """For a file."""
        low, width, bins = float(self.partition.low), float(self.partition.width), int(self.partition.bins)
        return {"step_size": self.step_size, "low": low, "width": width, "bins": bins}

    @staticmethod
    def from_plain(fields: dict[str, float]) -> "Tuning":
        """What `plain` gave."""
        return Tuning(fields["step_size"], cm.Partition(fields["low"], fields["width"], int(fields["bins"])))


@dataclass(frozen=True)
class Outcome:
    """positions: (chain, draw, *shape).  log_weights: (chain, draw).
    evaluations: of the density, really spent, all chains together; a gradient counts as one more.
    seconds: without compilation.  compile_seconds: of the compilation, here or in an earlier run; on our own engine
        next to nothing if an earlier run, of the search say, was compiled alike.
    comparable_weights: whether weights of different chains can be compared; else chains count alike.
    trusted: what the method says of its own result, if it says anything.
    log_evidence: log ∫ e^{−U(x)} dx, for a method that estimates it.  log_evidence_error: the standard error it claims.
    """

    positions: Float[np.ndarray, "chains draws *shape"]
    log_weights: Float[np.ndarray, "chains draws"]
    evaluations: float
    seconds: float
    compile_seconds: float
    comparable_weights: bool = False
    trusted: bool | None = None
    log_evidence: float | None = None
    log_evidence_error: float | None = None


class NotFiniteError(ArithmeticError):
    """A method gave draws or weights that are not finite."""


def mass_error(
    problem: Problem, positions: np.ndarray, log_weights: np.ndarray, comparable_weights: bool = False
) -> float:
    """Total variation between the weighted mode masses, pooled over chains, and the truth."""
    bad = ~(np.isfinite(positions.reshape(len(positions), -1)).all(axis=1) & ~np.isnan(log_weights).any(axis=1))
    bad |= ~np.isfinite(log_weights.max(axis=1))
    if bad.any():
        raise NotFiniteError(f"{bad.sum()} of {len(bad)} chains are not finite")
    labels = problem.mode(np.asarray(positions, float))
    weights = normalise(log_weights.ravel()) if comparable_weights else normalise(log_weights) / len(log_weights)
    masses = np.bincount(labels.ravel(), weights.ravel(), minlength=problem.modes)
    return float(np.abs(masses - problem.masses).sum() / 2)


def compiled(function: Callable[..., Any], *arguments: Any) -> tuple[Callable[..., Any], float]:
    """The program for arguments like these, and the seconds it took to compile."""
    began = time.perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    return program, time.perf_counter() - began


def log_density(problem: Problem) -> Callable[[Any], Any]:
    """−U of a vector, also where the problem has a number for a position."""
    shape = problem.start.shape
    return lambda x: -problem.energy(x.reshape(shape))


def thinned(count: float) -> int:
    """One draw in how many to keep of `count`, so that about 10,000 remain, as contourmc does."""
    return max(1, int(count) // 10_000)
