"""A mixture of Gaussians over vectors: its density, and draws from it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Gaussians:
    """Σ_k a_k N(x; μ_k, L_k L_kᵀ).

    shares: a_k, which sum to 1.
    means: μ_k.
    factors: L_k, lower triangular.
    """

    shares: Float[np.ndarray, " components"]
    means: Float[np.ndarray, "components size"]
    factors: Float[np.ndarray, "components size size"]

    def draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count size"]:
        """Draws that fill the space evenly: scrambled Sobol points, one coordinate of which chooses the component.

        Each is distributed as it should be, and their mean is unbiased, with an error that falls faster than
        1/√count for smooth functions of few coordinates. They are not independent of one another: errors come from
        several calls.
        """
        from scipy.special import ndtri  # not above: both slow down `import contourmc`
        from scipy.stats import qmc

        sobol = qmc.Sobol(1 + self.means.shape[1], rng=random)
        points = sobol.random_base2(max(0, int(count - 1).bit_length()))[:count].clip(1e-12, 1 - 1e-12)
        ends = np.cumsum(self.shares)
        component = np.searchsorted(ends, points[:, 0] * ends[-1], side="right").clip(max=len(ends) - 1)
        noise = ndtri(points[:, 1:])
        drawn = np.empty_like(noise)
        for k, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            drawn[component == k] = mean + noise[component == k] @ factor.T
        return drawn

    def log_density(self, x: Float[np.ndarray, "count size"]) -> Float[np.ndarray, " count"]:
        return np.logaddexp.reduce(self.log_terms(x), axis=0)

    def log_terms(self, x: Float[np.ndarray, "count size"]) -> Float[np.ndarray, "components count"]:
        """log a_k N(x; μ_k, L_k L_kᵀ) of every component."""
        terms = []
        for share, mean, factor in zip(self.shares, self.means, self.factors, strict=True):
            white = (x - mean) @ np.linalg.inv(factor).T
            volume = np.sum(np.log(np.diag(factor))) + 0.5 * len(mean) * np.log(2 * np.pi)
            terms.append(np.log(share) - volume - 0.5 * np.sum(white * white, axis=1))
        return np.stack(terms)

    def with_wider_tails(self, share: float) -> "Gaussians":
        """The same with a second, wider copy of each component, which has a share of it.

        In d dimensions a Gaussian lives at a distance of √d ± 0.7 from its mean, in units of its scale; the wide copy
        is larger by 1 + 2/√d, so that it lives 2 farther out.
        """
        wider = 1 + 2 / self.means.shape[1] ** 0.5
        return Gaussians(
            np.concatenate([(1 - share) * self.shares, share * self.shares]),
            np.concatenate([self.means, self.means]),
            np.concatenate([self.factors, wider * self.factors]),
        )
