"""The modes that a run knows of: the minima that its pilot found, with the mass of the draws nearest to each."""

from typing import NamedTuple

import jax
import numpy as np

from contourmc._core.checks import require
from contourmc._core.pytrees import Position
from contourmc.draws import estimates
from contourmc.draws.weighted import WeightedDraws


class Mode(NamedTuple):
    """mass: the probability of being nearest to this mode's minimum.
    error: its standard error, from the spread of the chains, or NaN for a single one.
    minimum: the lowest point that the pilot found there, in the user's coordinates.
    energy: the energy of that point.
    """

    mass: float
    error: float
    minimum: Position
    energy: float

    def __str__(self) -> str:
        place = ", ".join(np.array2string(np.asarray(leaf), precision=4) for leaf in jax.tree.leaves(self.minimum))
        return f"mass {self.mass:.3f} ± {self.error:.3f} around {place} (energy {self.energy:.4g})"


def find_modes(samples: WeightedDraws) -> list[Mode]:
    """The modes, the largest mass first."""
    basins = samples.basins
    require(basins is not None, "modes", None, "a pilot finds them: sample without a kernel")
    assert basins is not None
    masses = basins.masses(samples.sampled, samples.weights)[samples.pooled]
    shares = masses.sum(axis=1)
    by_chain = masses / np.where(shares > 0, shares, 1.0)[:, None]
    single = np.full(masses.shape[1], np.nan)
    errors = single if len(masses) == 1 else np.asarray(estimates.chain_error(shares / shares.sum(), by_chain))
    found = [
        Mode(
            float(masses[:, i].sum()),
            float(errors[i]),
            jax.tree.map(lambda leaf, i=i: leaf[i], basins.minima if basins.seen is None else basins.seen),
            float(u),
        )
        for i, u in enumerate(basins.energies)
    ]
    return sorted(found, key=lambda mode: -mode.mass)
