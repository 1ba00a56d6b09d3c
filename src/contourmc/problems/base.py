"""What every problem of the gallery has: an energy, a start, the truth, and the distance to it."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require
from contourmc.draws.samples import Samples


class Truth(NamedTuple):
    """masses: the probability of every mode label.  mean, variance: of every coordinate, shaped like a position.

    >>> truth = contourmc.problems.Truth(masses=np.array([0.4, 0.6]), mean=np.array(0.0), variance=np.array(25.0))
    >>> problem = contourmc.problems.GaussianMixture()
    >>> print(np.allclose(truth.masses, problem.masses, atol=1e-4), np.allclose(truth.variance, problem.variance))
    True True
    """

    masses: Float[np.ndarray, " modes"]
    mean: Float[np.ndarray, "*shape"]
    variance: Float[np.ndarray, "*shape"]


@dataclass(frozen=True)
class Problem(ABC):
    """A distribution with many modes whose truth is known.

    A position is an array of shape (dimension,), or () for a problem on the line.
    Use the same instance for all runs: a second one with equal settings has another `energy`, and compiles again.

    name: a short name.

    >>> problem = contourmc.problems.gallery()["mixture"]
    >>> run = cm.sample(problem.energy, init=problem.start, steps=20_000)
    >>> print(problem.distance(run) < 0.2)
    True
    """

    _: KW_ONLY
    name: str = "problem"

    @abstractmethod
    def energy(self, x: Array) -> Float[Array, ""]:
        """U(x), minus the log density up to a constant."""

    @property
    @abstractmethod
    def start(self) -> Float[np.ndarray, "*shape"]:
        """A position inside one mode, where all chains start; not in the most probable mode, unless all are alike."""

    @abstractmethod
    def mode(self, x: np.ndarray) -> Int[np.ndarray, "*batch"]:
        """The label 0 … modes − 1 of the mode that each position of a batch belongs to."""

    @abstractmethod
    def draw(self, count: int, seed: int = 0) -> Float[np.ndarray, " count *shape"]:
        """Independent draws from the distribution; raises NotImplementedError if there is no way to make them."""

    @abstractmethod
    def _find_truth(self) -> Truth:
        """Masses and moments, computed once per instance; the masses are those of the labels that `mode` gives."""

    def _find_log_normaliser(self, temperature: float) -> float | None:
        """log Z(T) for a positive T, None if there is no way to find it."""
        return None

    @cached_property
    def _truth(self) -> Truth:
        return self._find_truth()

    @property
    def dimension(self) -> int:
        """How many numbers a position has."""
        return self.start.size

    @property
    def modes(self) -> int:
        """How many labels there are."""
        return len(self.masses)

    @property
    def masses(self) -> Float[np.ndarray, " modes"]:
        """The true probability of each label."""
        return self._truth.masses

    @property
    def mean(self) -> Float[np.ndarray, "*shape"] | float:
        """The true mean of each coordinate."""
        return self._truth.mean

    @property
    def variance(self) -> Float[np.ndarray, "*shape"] | float:
        """The true variance of each coordinate."""
        return self._truth.variance

    @property
    def log_evidence(self) -> float | None:
        """The true log Z = log ∫ e^{−U(x)} dx; None where it is not known."""
        return self.log_normaliser(1.0)

    def log_normaliser(self, temperature: float) -> float | None:
        """The true log Z(T) = log ∫ e^{−U(x)/T} dx, to about four decimals; None where it is not known."""
        require(0 < temperature < np.inf, "temperature", temperature, "give a positive number")
        known = self._log_normalisers
        if temperature not in known:
            known[temperature] = self._find_log_normaliser(temperature)
        return known[temperature]

    @cached_property
    def _log_normalisers(self) -> dict[float, float | None]:
        """Those that were asked for, by temperature."""
        return {}

    def distance(self, samples: Samples) -> float:
        """Total variation between the weighted mode masses of all draws and the truth: ½ Σ_i |m̂_i − m_i|."""
        return float(np.abs(self._chain_masses(samples).sum(axis=0) - self.masses).sum() / 2)

    def chain_distances(self, samples: Samples) -> Float[np.ndarray, " chains"]:
        """The same for each chain by itself."""
        masses = self._chain_masses(samples)
        return np.abs(masses / masses.sum(axis=1, keepdims=True) - self.masses).sum(axis=1) / 2

    def moment_error(self, samples: Samples) -> float:
        """The largest error of a coordinate's mean, over all steps and chains, in true standard deviations."""
        error = np.abs(np.asarray(samples.mean(), float) - self.mean)
        return float(np.max(error / np.sqrt(self.variance)))

    def _chain_masses(self, samples: Samples) -> Float[np.ndarray, "chains modes"]:
        draws = np.asarray(samples.draws, float)
        shape, expected = draws.shape[2:], self.start.shape
        require(shape == expected, "samples", samples, f"positions of {self.name} have shape {expected}, not {shape}")
        return np.stack(
            [
                np.bincount(labels, chain, minlength=self.modes)
                for labels, chain in zip(self.mode(draws), samples.weights, strict=True)
            ]
        )
