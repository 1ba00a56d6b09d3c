"""Targets with many modes whose truth is known."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc.partition import Partition


@dataclass(frozen=True)
class GaussianMixture:
    """A mixture of Gaussians on the line; its energy includes the normalising constant.

    The defaults are the paper's mixture 0.4·N(−6, 1) + 0.6·N(4, 1), whose mean is 0.
    """

    weights: tuple[float, ...] = (0.4, 0.6)
    means: tuple[float, ...] = (-6.0, 4.0)
    scales: tuple[float, ...] = (1.0, 1.0)

    def energy(self, x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """U(x) = −log Σ_i w_i N(x; μ_i, σ_i²)."""
        terms = [
            np.log(w / (s * np.sqrt(2 * np.pi))) - 0.5 * ((x - mean) / s) ** 2
            for w, mean, s in zip(self.weights, self.means, self.scales, strict=True)
        ]
        if len(terms) == 2:  # the same number, in fewer operations
            return -jnp.logaddexp(terms[0], terms[1])
        return -jax.nn.logsumexp(jnp.stack(terms), axis=0)

    @property
    def mean(self) -> float:
        return float(np.dot(self.weights, self.means))

    def grid(self, points: int = 200_001) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points that cover the mixture to 14 scales, their energies, and their probabilities."""
        reach = 14 * max(self.scales)
        x = np.linspace(min(self.means) - reach, max(self.means) + reach, points)
        log_terms = [
            np.log(w / s) - 0.5 * ((x - mean) / s) ** 2
            for w, mean, s in zip(self.weights, self.means, self.scales, strict=True)
        ]
        energy = 0.5 * np.log(2 * np.pi) - np.logaddexp.reduce(log_terms)
        probability = np.exp(-energy)
        return x, energy, probability / probability.sum()

    def theta(self, partition: Partition) -> Float[np.ndarray, " bins"]:
        """The true probability of every energy bin, by quadrature in float64."""
        _, energy, probability = self.grid(2_000_001)
        index = np.clip(np.ceil((energy - partition.low) / partition.width), 0, partition.bins - 1)
        return np.bincount(index.astype(int), probability, minlength=partition.bins)


@dataclass(frozen=True)
class NineModes:
    """The paper's two-dimensional target: U(x) = Σ_i (x_i² − 10·cos(1.2π x_i))/3, held in by a regulariser.

    The regulariser of the supplement, (‖x‖² − 7)·1[‖x‖² > 7], leaves nine modes on a 3 × 3 grid, at 0 and
    about ±1.63 in each coordinate; the centre is the most probable, the corners the least.
    """

    def energy(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        """U(x) with the regulariser."""
        square = jnp.sum(x**2)
        waves = jnp.sum(x**2 - 10 * jnp.cos(1.2 * jnp.pi * x)) / 3
        return waves + jnp.maximum(square - 7, 0.0)

    @staticmethod
    def cell(x: np.ndarray) -> np.ndarray:
        """The number 0 … 8 of the mode whose cell a point (last axis of length 2) lies in, row by row."""
        column = np.digitize(x, [-5 / 6, 5 / 6])  # the crests of the waves
        return 3 * column[..., 1] + column[..., 0]

    def grid(self, points: int = 1001, reach: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates of a square grid (points, points, 2), and the energies there."""
        line = np.linspace(-reach, reach, points)
        x = np.stack(np.meshgrid(line, line), axis=-1)
        square = np.sum(x**2, axis=-1)
        waves = np.sum(x**2 - 10 * np.cos(1.2 * np.pi * x), axis=-1) / 3
        return x, waves + np.maximum(square - 7, 0.0)

    @property
    def masses(self) -> Float[np.ndarray, " 9"]:
        """The true probability of each cell, by quadrature."""
        x, energy = self.grid()
        probability = np.exp(energy.min() - energy)
        return np.bincount(self.cell(x).ravel(), probability.ravel() / probability.sum(), minlength=9)
