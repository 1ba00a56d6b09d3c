"""The modes of the draws, with the mass of each."""

from typing import NamedTuple

import jax
import numpy as np

from contourmc._core.checks import require
from contourmc._core.pytrees import Position
from contourmc.draws import estimates
from contourmc.draws.basins import LEAST
from contourmc.draws.weighted import WeightedDraws, or_bound


class Mode(NamedTuple):
    """mass: the probability of the mode, from all draws that belong to it.
    error: its standard error, from the correlation along the chains and the spread between them. Where no draw or
        every draw belongs to the mode, the mass is with 95% confidence no farther than this from 0 or 1.
    minimum: its lowest point, in the user's coordinates.
    energy: the energy of that point.
    """

    mass: float
    error: float
    minimum: Position
    energy: float

    def __str__(self) -> str:
        place = ", ".join(np.array2string(np.asarray(leaf), precision=4) for leaf in jax.tree.leaves(self.minimum))
        mass = f"{self.mass:.3f} ± {self.error:.3f}"
        if self.mass in (0, 1):
            mass = f"at least {1 - self.error:.4f}" if self.mass else f"at most {self.error:.2g}"
        return f"mass {mass} around {place} (energy {self.energy:.4g})"


def has_modes(samples: WeightedDraws) -> bool:
    """Whether there is a list of modes: of the draws, or of the pilot."""
    return samples.draws is not None and samples.energies.size > 0 and samples.basins_of_draws is not None


def origin_of_modes(samples: WeightedDraws) -> str:
    """In words: what the modes are, or why there are none."""
    basins = samples.basins_of_draws
    if not has_modes(samples) or basins is None:
        return f"No list of modes: {samples.without_modes}."
    if basins.labels is None:
        why = (
            f"since {samples.without_modes}, modes are the minima that the pilot found, with the draws nearest to each"
        )
        return f"{why[0].upper()}{why[1:]}: others may be missing."
    return (
        "A mode is a minimum to which draws go downhill; its mass is that of all draws that belong to it. Modes of less"
        f" than {LEAST:g} are not listed."
    )


def find_modes(samples: WeightedDraws) -> list[Mode]:
    """The modes, the largest mass first."""
    basins = samples.basins_of_draws
    remedy = f"{samples.without_modes}: sample without a kernel" if basins is None else ""
    require(basins is not None, "modes", None, remedy)
    assert basins is not None
    labels, pooled = basins.labels_of(samples.sampled), samples.pooled
    weights = samples.weights[pooled]
    found = []
    for i, energy in enumerate(basins.energies):
        hits = (labels == i).astype(float)
        mass, error = estimates.mean_and_error(hits[pooled], weights)
        mass = 1.0 if np.all(hits) else mass  # but for rounding
        error = float(or_bound(samples, np.asarray(error), hits))
        places = basins.minima if basins.seen is None else basins.seen
        found.append(Mode(mass, error, jax.tree.map(lambda leaf, i=i: leaf[i], places), float(energy)))
    return sorted(found, key=lambda mode: -mode.mass)
