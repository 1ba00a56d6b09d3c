"""The posterior of the means of a mixture, which is symmetric under permutations of the components."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import combinations, combinations_with_replacement

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc.problems.base import Problem, Truth
from contourmc.problems.quadrature import log_integral, normalise

CENTRES = (-2.5, 0.0, 2.5)
EACH = 20  # points around each centre
PRIOR_SCALE = 10.0


@dataclass(frozen=True)
class LabelSwitching(Problem):
    """Three means of a mixture of unit Gaussians with equal weights, given data and the prior N(0, s²).

    U(μ) = −Σ_n log Σ_k exp(−½ (y_n − μ_k)²) + Σ_k μ_k²/(2s²), with s = 10. The data are 20 points around each of
    −2.5, 0 and 2.5. To swap two neighbours their means must meet, 12 units above the modes. Label: the
    permutation that sorts the means, in lexicographic order; all six have the same mass by symmetry. Moments:
    quadrature over sorted means.

    >>> problem = contourmc.problems.LabelSwitching()
    >>> print(problem.mode(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])), len(problem.masses))
    [0 5] 6
    """

    _: KW_ONLY
    name: str = "label-switching"

    @cached_property
    def data(self) -> Float[np.ndarray, " points"]:
        """The data y."""
        return np.repeat(CENTRES, EACH) + np.random.default_rng(0).normal(size=3 * EACH)

    def energy(self, x: Float[Array, " 3"]) -> Float[Array, ""]:
        """U(μ), as above; factoring out the term of the nearest mean keeps it finite far from the data."""
        squares = (jnp.asarray(self.data, x.dtype) - x[:, None]) ** 2
        nearest = jax.lax.stop_gradient(jnp.min(squares, axis=0))
        likelihood = jnp.log(jnp.sum(jnp.exp(0.5 * (nearest - squares)), axis=0)) - 0.5 * nearest
        return 0.5 * jnp.sum(x**2) / PRIOR_SCALE**2 - jnp.sum(likelihood)

    @property
    def start(self) -> Float[np.ndarray, " 3"]:
        """The true centres in ascending order."""
        return np.array(CENTRES)

    def mode(self, x: Float[np.ndarray, "*batch 3"]) -> Int[np.ndarray, "*batch"]:
        """The index of argsort(μ) among the permutations of (0, 1, 2)."""
        order = np.argsort(x, axis=-1)
        return np.asarray(2 * order[..., 0] + (order[..., 1] > order[..., 2]))

    def draw(self, count: int, seed: int = 0) -> Float[np.ndarray, "count 3"]:
        raise NotImplementedError(f"{self.name} has no exact draws; its truth is known by symmetry and quadrature")

    def _energies(self, line: np.ndarray, triples: Int[np.ndarray, "points 3"]) -> Float[np.ndarray, " points"]:
        """U in double precision where the means are the given three points of a line."""
        chances = np.exp(-0.5 * (self.data - line[:, None]) ** 2)
        chances = np.maximum(chances, 1e-100)  # as good as 0, and has a logarithm
        likelihood = sum(np.log(chances[triples, n].sum(axis=1)) for n in range(len(self.data)))
        return 0.5 * np.sum(line[triples] ** 2, axis=1) / PRIOR_SCALE**2 - likelihood

    def _find_log_normaliser(self, temperature: float) -> float:
        """log ∫ e^{−U(μ)/T} dμ over sorted means, by the rectangle rule in t with μ = 3 sinh t.

        At a high temperature a mean may leave the data to the other two and wander as far as the prior lets it:
        points are 0.15 apart in the middle, and wider apart further out. A triple stands for all its orders.
        """
        reach, step = 6 * PRIOR_SCALE * max(1.0, temperature**0.5), 0.05
        count = int(np.ceil(np.arcsinh(reach / 3) / step))
        grid = step * np.arange(-count, count + 1)
        triples = np.array(list(combinations_with_replacement(range(len(grid)), 3)))
        equal = np.sum(np.diff(triples, axis=1) == 0, axis=1)
        orders, stretch = np.array([6.0, 3.0, 1.0])[equal], 3 * np.cosh(grid)
        energy = self._energies(3 * np.sinh(grid), triples) / temperature
        return log_integral(energy - np.log(orders) - np.log(stretch[triples]).sum(axis=1), step**3)

    def _find_truth(self) -> Truth:
        """The marginal moments of one mean; by symmetry, those of all three.

        By the rectangle rule on points 0.1 apart, less than half a posterior standard deviation, where it is exact
        to many digits. Points with equal means are omitted: their density is below e⁻¹² of that of a mode.
        """
        line = np.arange(-60, 61) * 0.1
        triples = np.array(list(combinations(range(len(line)), 3)))
        means = line[triples]
        probability = normalise(self._energies(line, triples))
        mean = probability @ means.mean(axis=1)
        variance = probability @ np.mean((means - mean) ** 2, axis=1)
        return Truth(np.full(6, 1 / 6), np.full(3, mean), np.full(3, variance))
