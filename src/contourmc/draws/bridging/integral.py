"""The integral of a density, from weighted draws of it: bridge sampling to a mixture of Gaussians fitted to them.

The mixture is fitted to one half of the draws, and the bridge goes to those of the other half: a fit could mistake
their noise for structure. Then the halves change places, and log Z is the mean of both. An error in the masses of modes
matters little: one of δ₁ in the first half and δ₂ in the second changes log Z by about δ₁δ₂.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from contourmc.draws import estimates
from contourmc.draws.bridging.bridge import Bridge, bridge
from contourmc.draws.bridging.gaussians import Gaussians
from contourmc.draws.bridging.gaussians_fit import fit_gaussians
from contourmc.draws.jackknife import jackknife

REFERENCE_SETS, SET_SIZE = 8, 1024  # of draws of a reference, for each half; a power of 2 suits Sobol points
REFERENCE_DRAWS = REFERENCE_SETS * SET_SIZE
MOST_FITTED = 10_000  # draws that a mixture is fitted to
WIDER = 0.1  # the share of a component that has wider tails


@runtime_checkable
class Reference(Protocol):
    """A normalised density over vectors, and draws from it."""

    def draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count size"]: ...

    def log_density(self, x: Float[np.ndarray, "count size"]) -> Float[np.ndarray, " count"]: ...


class DensityDraws(NamedTuple):
    """Weighted draws of a density q over vectors, which need not be normalised.

    vectors: the draws, by chain.
    log_density: log q of each.
    log_weights: of each; the weights sum to 1.
    labels: the basin of each.
    counted: which chains count.
    evaluate: log q at other vectors; these as they are after rounding, with log q of each.
    """

    vectors: Float[np.ndarray, "chains draws size"]
    log_density: Float[np.ndarray, "chains draws"]
    log_weights: Float[np.ndarray, "chains draws"]
    labels: Int[np.ndarray, "chains draws"]
    counted: Bool[np.ndarray, " chains"]
    evaluate: Callable[[Float[np.ndarray, "count size"]], tuple[np.ndarray, Float[np.ndarray, " count"]]]

    def part(self, chosen: slice) -> "DensityDraws":
        """Some of the draws of every chain; their weights sum to 1."""
        vectors, densities, logs, labels = (values[:, chosen] for values in self[:4])
        return self._replace(
            vectors=vectors, log_density=densities, log_weights=logs - np.logaddexp.reduce(logs.ravel()), labels=labels
        )

    @property
    def weights(self) -> Float[np.ndarray, "chains draws"]:
        return np.exp(self.log_weights)

    @property
    def effective(self) -> float:
        """How many independent draws the weights are worth, and the mean of log q; the smaller number."""
        weights = self.weights
        return float(np.fmin(estimates.kish(weights.ravel()), estimates.effective_size(self.log_density, weights)))


class Integral(NamedTuple):
    """log_value: log ∫q.  error: its standard error.
    overlap: of the draws with the reference, from 0 to 1.
    effective: how many independent draws it rests on.
    """

    log_value: float
    error: float
    overlap: float
    effective: float


def integrate_by_halves(draws: DensityDraws, random: np.random.Generator) -> Integral:
    """log ∫q, from each half of the draws and a mixture fitted to the other half."""
    middle = draws.log_density.shape[1] // 2
    halves = draws.part(slice(middle)), draws.part(slice(middle, None))
    return integrate(halves, [_fit(half, random) for half in reversed(halves)], random)


def integrate(parts: Sequence[DensityDraws], references: Sequence[Reference], random: np.random.Generator) -> Integral:
    """The mean of log ∫q over some parts of the draws, along the chains, each with a reference of its own.

    The error has two sources: the draws of the references, which are independent, and the chains, which a jackknife
    leaves out one by one from all parts. The bridge is the best when it does not depend on Z to first order, so that it
    need not be iterated again each time.
    """
    bridges = [_bridge(part, reference, random) for part, reference in zip(parts, references, strict=True)]
    shape = len(parts[0].counted), sum(part.log_weights.shape[1] for part in parts)
    terms, begin = [], 0
    for part, found in zip(parts, bridges, strict=True):
        end = begin + part.log_weights.shape[1]
        for values in (part.weights * np.exp(found.lower), part.weights):
            terms.append(np.zeros(shape))
            terms[-1][:, begin:end] = values
        begin = end
    error = jackknife(lambda sums: np.mean(np.log(sums[::2] / sums[1::2])), terms, parts[0].counted).error
    others = sum(found.reference_error**2 for found in bridges) / len(bridges) ** 2
    return Integral(
        float(np.mean([found.log_integral for found in bridges])),
        float(np.sqrt(error**2 + others)),
        min(found.overlap for found in bridges),
        sum(part.effective for part in parts),
    )


def _bridge(draws: DensityDraws, reference: Reference, random: np.random.Generator) -> Bridge:
    drawn = np.concatenate([reference.draw(SET_SIZE, random) for _ in range(REFERENCE_SETS)])
    fresh, log_density = draws.evaluate(drawn)
    at_reference = np.reshape(log_density - reference.log_density(fresh), (REFERENCE_SETS, SET_SIZE))
    at_draws = np.stack([reference.log_density(np.asarray(chain, float)) for chain in draws.vectors])
    return bridge(at_reference, draws.log_density - at_draws, draws.log_weights, draws.effective)


def _fit(draws: DensityDraws, random: np.random.Generator) -> Gaussians:
    """A mixture with wider tails, for draws that are resampled to equal weights."""
    weights = draws.weights.ravel()
    rows = estimates.systematic(weights, min(MOST_FITTED, weights.size), random)
    vectors = draws.vectors.reshape(weights.size, -1)[rows].astype(float)
    return fit_gaussians(vectors, draws.labels.ravel()[rows], draws.effective).with_wider_tails(WIDER)
