"""The box that samplers with a prior are given: uniform, the same for all, and large enough to hold every mode."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from contourmc.problems import GaussianMixture, MultivariateMixture, Problem

REACH = 6.0  # standard deviations beyond the centres of a mixture
# Half the width of the others in each coordinate, about the origin: what lies outside is below 10⁻⁵ of the mass.
HALF_WIDTHS = {
    "nine-modes": (4.0, 4.0),
    "double-well": (2.0, 4.0),
    "rastrigin": (5.0, 5.0),
    "ring": (6.0, 6.0),
    "label-switching": (6.0, 6.0, 6.0),
}


@dataclass(frozen=True)
class Box:
    """All x with low ≤ x ≤ high."""

    low: Float[np.ndarray, " dimension"]
    high: Float[np.ndarray, " dimension"]

    @property
    def dimension(self) -> int:
        return len(self.low)

    @property
    def log_volume(self) -> float:
        """What is added to the log evidence under the uniform prior, to make it log ∫ e^{−U(x)} dx."""
        return float(np.log(self.high - self.low).sum())

    def stretch(self, cube: np.ndarray) -> np.ndarray:
        """Points of the unit cube, as points of the box."""
        return self.low + cube * (self.high - self.low)


def box_of(problem: Problem, at_least: int = 1) -> Box:
    """The hull of all modes, and some more.

    at_least: the fewest dimensions that a sampler can handle; those that a problem lacks go from 0 to 1, so that they
        change no volume, and are ignored.
    """
    if isinstance(problem, GaussianMixture | MultivariateMixture):
        centres = np.array(problem.means, float).reshape(len(problem.weights), -1)
        scales = np.stack([np.broadcast_to(np.asarray(scale, float), centres.shape[1]) for scale in problem.scales])
        low, high = np.min(centres - REACH * scales, axis=0), np.max(centres + REACH * scales, axis=0)
    else:
        high = np.array(HALF_WIDTHS[problem.name])
        low = -high
    missing = max(0, at_least - len(low))
    return Box(np.append(low, np.zeros(missing)), np.append(high, np.ones(missing)))
