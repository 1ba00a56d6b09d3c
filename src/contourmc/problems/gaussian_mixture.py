"""A mixture of Gaussians on the line: the paper's first simulation."""

from dataclasses import KW_ONLY, dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc.flattening.partition import Partition
from contourmc.problems.base import Problem, Truth
from contourmc.problems.mixture_powers import log_power_integral


@dataclass(frozen=True)
class GaussianMixture(Problem):
    """A mixture of Gaussians on the line; its energy includes the normalising constant.

    The defaults are the paper's mixture 0.4·N(−6, 1) + 0.6·N(4, 1), whose mean is 0; the barrier between its
    modes is nearly 12. Label: the component that is most responsible for x. Truth: the grid; exact moments.

    >>> problem = contourmc.problems.GaussianMixture(weights=(0.5, 0.5), means=(-3.0, 3.0), scales=(1.0, 1.0))
    >>> print(problem.mean, problem.draw(1_000).shape)
    0.0 (1000,)
    """

    weights: tuple[float, ...] = (0.4, 0.6)
    means: tuple[float, ...] = (-6.0, 4.0)
    scales: tuple[float, ...] = (1.0, 1.0)
    _: KW_ONLY
    name: str = "mixture"

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
    def start(self) -> Float[np.ndarray, ""]:
        """The centre of the least probable component."""
        return np.array(self.means[int(np.argmin(self.weights))], float)

    @property
    def mean(self) -> float:
        return float(np.dot(self.weights, self.means))

    @property
    def variance(self) -> float:
        return float(np.dot(self.weights, np.square(self.scales) + np.square(self.means)) - self.mean**2)

    def mode(self, x: np.ndarray) -> Int[np.ndarray, "*batch"]:
        """The component that is most responsible for each of a batch of numbers."""
        return np.asarray(np.argmax(self._log_terms(x), axis=0))

    def draw(self, count: int, seed: int = 0) -> Float[np.ndarray, " count"]:
        random = np.random.default_rng(seed)
        component = random.choice(len(self.weights), count, p=self.weights)
        return np.array(self.means)[component] + np.array(self.scales)[component] * random.normal(size=count)

    def grid(self, points: int = 200_001) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points that cover the mixture to 14 scales, their energies, and their probabilities."""
        reach = 14 * max(self.scales)
        x = np.linspace(min(self.means) - reach, max(self.means) + reach, points)
        energy = 0.5 * np.log(2 * np.pi) - np.logaddexp.reduce(self._log_terms(x))
        probability = np.exp(-energy)
        return x, energy, probability / probability.sum()

    def theta(self, partition: Partition) -> Float[np.ndarray, " bins"]:
        """The true probability of every energy bin, by quadrature in float64; the array is read-only."""
        return _theta(self, partition)

    def _log_terms(self, x: np.ndarray) -> Float[np.ndarray, " components *batch"]:
        """log w_i N(x; μ_i, σ_i²) for every component, without the constant ½ log 2π."""
        return np.array(
            [
                np.log(w / s) - 0.5 * ((x - mean) / s) ** 2
                for w, mean, s in zip(self.weights, self.means, self.scales, strict=True)
            ]
        )

    def _find_log_normaliser(self, temperature: float) -> float | None:
        """Quadrature; 0 at temperature 1."""
        centres, scales = (np.array(part, float)[:, None] for part in (self.means, self.scales))
        return log_power_integral(np.array(self.weights), centres, scales, 1 / temperature)

    def _find_truth(self) -> Truth:
        x, _, probability = self.grid()
        masses = np.bincount(self.mode(x), probability, minlength=len(self.weights))
        return Truth(masses, np.array(self.mean), np.array(self.variance))


@lru_cache(maxsize=32)
def _theta(mixture: GaussianMixture, partition: Partition) -> Float[np.ndarray, " bins"]:
    _, energy, probability = mixture.grid(2_000_001)
    theta = bin_probabilities(energy, probability, partition)
    theta.setflags(write=False)  # it is shared by all who ask
    return theta


def bin_probabilities(
    energy: Float[np.ndarray, " points"], probability: Float[np.ndarray, " points"], partition: Partition
) -> Float[np.ndarray, " bins"]:
    """The probability of every energy bin, from the energies and probabilities of a grid's points."""
    index = np.clip(np.ceil((energy - partition.low) / partition.width), 0, partition.bins - 1)
    return np.bincount(index.astype(int), probability, minlength=partition.bins)
