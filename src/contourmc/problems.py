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
