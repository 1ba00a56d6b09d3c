"""Mixtures of Gaussians in any dimension."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require
from contourmc.problems.base import Problem, Truth
from contourmc.problems.mixture_powers import log_power_integral

NEGLIGIBLE = 1e-3  # overlap below which a component's weight is taken as the mass of its label
COUNTED = 1_000_000  # draws that are counted to find the masses otherwise


@dataclass(frozen=True)
class MultivariateMixture(Problem):
    """Σ_k w_k N(x; μ_k, diag σ_k²); its energy includes the normalising constant.

    Label: the component that is most responsible for x. Moments are exact. The masses of the labels are the
    weights where `overlap` is below 0.001; elsewhere a million exact draws are counted (error below 0.0005).

    weights: of the components; they sum to 1.
    means: a point for each component.
    scales: standard deviations; for each component one number, or one for every coordinate.

    >>> problem = contourmc.problems.MultivariateMixture((0.2, 0.8), ((0.0, 0.0), (9.0, 9.0)), (1.0, 2.0))
    >>> print(problem.mean, problem.mode(np.array([8.0, 8.0])))
    [7.2 7.2] 1
    """

    weights: tuple[float, ...]
    means: tuple[tuple[float, ...], ...]
    scales: tuple[float | tuple[float, ...], ...]
    _: KW_ONLY
    name: str = "multivariate-mixture"

    def __post_init__(self):
        fine = min(self.weights) > 0 and abs(sum(self.weights) - 1) < 1e-6
        require(fine, "weights", self.weights, "give positive numbers that sum to 1")
        components, sizes = len(self.weights), {len(mean) for mean in self.means}
        require(len(self.means) == components, "means", self.means, f"give {components} points, one for each weight")
        require(len(sizes) == 1, "means", self.means, "give points of the same dimension")
        fine = len(self.scales) == components and {np.size(scale) for scale in self.scales} <= {1, *sizes}
        fine = fine and all(np.min(scale) > 0 for scale in self.scales)
        remedy = "give a positive number, or one for every coordinate, for each component"
        require(fine, "scales", self.scales, remedy)

    def energy(self, x: Float[Array, " dimension"]) -> Float[Array, ""]:
        """U(x) = −log Σ_k exp(c_k − ½‖(x − μ_k)/σ_k‖²), c_k = log w_k − Σ_i log(σ_ki √(2π))."""
        centres, scales = (jnp.asarray(part, x.dtype) for part in (self._centres, self._scales))
        terms = jnp.asarray(self._constants, x.dtype) - 0.5 * jnp.sum(((x - centres) / scales) ** 2, axis=-1)
        if len(self.weights) == 2:  # the same number, in fewer operations
            return -jnp.logaddexp(terms[0], terms[1])
        return -logsumexp(terms)

    @property
    def start(self) -> Float[np.ndarray, " dimension"]:
        """The centre of the least probable component, the first of them if there are several."""
        return self._centres[int(np.argmin(self.weights))]

    def mode(self, x: Float[np.ndarray, "*batch dimension"]) -> Int[np.ndarray, "*batch"]:
        """The component that is most responsible for each position."""
        parts = zip(self._constants, self._centres, self._scales, strict=True)
        terms = [constant - 0.5 * np.sum(((x - centre) / scale) ** 2, axis=-1) for constant, centre, scale in parts]
        return np.asarray(np.argmax(terms, axis=0))

    def draw(self, count: int, seed: int = 0) -> Float[np.ndarray, "count dimension"]:
        random = np.random.default_rng(seed)
        component = random.choice(len(self.weights), count, p=self.weights)
        noise = random.normal(size=(count, self.dimension))
        return self._centres[component] + self._scales[component] * noise

    @property
    def overlap(self) -> float:
        """A bound on the probability that the component most responsible for x is not the one that x was drawn from.

        Σ_{j<k} √(w_j w_k) ∫√(N_j N_k), where ∫√(N_j N_k) = Π_i √(2σ_ji σ_ki/s_i²)·exp(−(μ_ji − μ_ki)²/(4 s_i²)),
        s_i² = σ_ji² + σ_ki².
        """
        total = 0.0
        for j in range(len(self.weights)):
            for k in range(j):
                squares = self._scales[j] ** 2 + self._scales[k] ** 2
                widths = 0.5 * np.log(2 * self._scales[j] * self._scales[k] / squares)
                exponent = np.sum(widths - (self._centres[j] - self._centres[k]) ** 2 / (4 * squares))
                total += np.sqrt(self.weights[j] * self.weights[k]) * np.exp(exponent)
        return float(total)

    @cached_property
    def _centres(self) -> Float[np.ndarray, "components dimension"]:
        return np.array(self.means, float)

    @cached_property
    def _scales(self) -> Float[np.ndarray, "components dimension"]:
        dimension = len(self.means[0])
        return np.stack([np.broadcast_to(np.asarray(scale, float), dimension) for scale in self.scales])

    @cached_property
    def _constants(self) -> Float[np.ndarray, " components"]:
        return np.log(self.weights) - np.sum(np.log(self._scales * np.sqrt(2 * np.pi)), axis=1)

    def _find_log_normaliser(self, temperature: float) -> float | None:
        """Quadrature where few dimensions are enough (see `mixture_powers`); 0 at temperature 1."""
        return log_power_integral(np.array(self.weights), self._centres, self._scales, 1 / temperature)

    def _find_truth(self) -> Truth:
        weights = np.array(self.weights)
        mean = weights @ self._centres
        variance = weights @ (self._scales**2 + (self._centres - mean) ** 2)
        if self.overlap < NEGLIGIBLE:
            return Truth(weights, mean, variance)
        blocks = [self.mode(self.draw(COUNTED // 20, seed)) for seed in range(20)]
        counts = np.bincount(np.concatenate(blocks), minlength=len(weights))
        return Truth(counts / COUNTED, mean, variance)


def logsumexp(terms: Float[Array, " components *batch"]) -> Float[Array, "*batch"]:
    """log Σ_k exp(t_k) over the first axis for finite terms, in few operations."""
    top = jax.lax.stop_gradient(jnp.max(terms, axis=0))
    return top + jnp.log(jnp.sum(jnp.exp(terms - top), axis=0))
