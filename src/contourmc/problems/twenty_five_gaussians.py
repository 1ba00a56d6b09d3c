"""Twenty-five narrow Gaussians on a square grid."""

from dataclasses import KW_ONLY, dataclass
from itertools import product

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc.problems.mixtures import MultivariateMixture, logsumexp

LINE = (-4.0, -2.0, 0.0, 2.0, 4.0)
SCALE = 0.03**0.5


@dataclass(frozen=True)
class TwentyFiveGaussians(MultivariateMixture):
    """Gaussians of variance 0.03 and equal weight at {−4, −2, 0, 2, 4}²; the barriers between them are 16.

    >>> problem = contourmc.problems.TwentyFiveGaussians()
    >>> print(len(problem.masses), problem.mode(np.array([-4.0, -2.0])))
    25 1
    """

    weights: tuple[float, ...] = (0.04,) * 25
    means: tuple[tuple[float, ...], ...] = tuple(product(LINE, LINE))
    scales: tuple[float | tuple[float, ...], ...] = (SCALE,) * 25
    _: KW_ONLY
    name: str = "twenty-five-gaussians"

    def energy(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        """U(x) = −Σ_i log Σ_j N(x_i; m_j, 0.03)/5: the coordinates are independent, which saves work."""
        centres = jnp.asarray(LINE, x.dtype)[:, None]
        terms = -0.5 * ((x - centres) / SCALE) ** 2
        return 2 * float(np.log(5 * SCALE * np.sqrt(2 * np.pi))) - jnp.sum(logsumexp(terms))
