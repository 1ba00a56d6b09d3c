"""What is varied in the study, and the truth that it is compared with."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from contourmc.draws.samples import Samples
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import Weights
from contourmc.problems import GaussianMixture
from contourmc.sampling.sample import sample
from contourmc.studies.base import complete
from contourmc.targets.energies import NoisyEnergy

Variant = tuple[Scheme, Weights]

PROBLEM = GaussianMixture()
ZETA = 0.75
COLORS: dict[Variant, str] = {
    ("left", "step"): "#D55E00",
    ("left", "continuous"): "#0072B2",
    ("centred", "step"): "#E69F00",
    ("centred", "continuous"): "#56B4E9",
}
NAMES = {variant: f"{variant[0]}, {variant[1]} weights" for variant in COLORS}
SYMBOLS = {"width": "Δu", "step_size": "ε", "energy_variance": "variance of the energy noise"}


@cache
def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points on the line, their energies, and their probabilities."""
    return PROBLEM.grid()


@cache
def truth() -> dict[str, float]:
    """The true values of the two averages that are estimated."""
    x, energy, probability = grid()
    return {"E[U]": float(probability @ energy), "P(x < 0)": float(probability @ (x < 0))}


@dataclass(frozen=True)
class Setting:
    """What the errors in the theorems depend on; a sweep changes one of these."""

    width: float = 1.0
    step_size: float = 0.02
    energy_variance: float = 0.0

    @property
    def partition(self) -> Partition:
        """48 units of energy. Bin 0 shrinks with the others: it ends half a width above the lowest energy."""
        _, energy, _ = grid()
        return Partition(float(energy.min()) + self.width / 2, self.width, round(48 / self.width) + 2)

    def sample(self, kernel: Kernel, steps: int, chains: int) -> Samples:
        """Run chains from x = 0."""
        target, thin = NoisyEnergy(PROBLEM.energy, 0.01, self.energy_variance), max(1, steps // 100_000)
        return complete(sample(target, init=0.0, steps=steps, thin=thin, kernel=kernel, chains=chains))
