"""The energies of a temperature that lie above all draws: how much is missing from its estimates.

A flattened run visits energies freely up to some energy u. Just below u the density p(U) of the energies at temperature
T falls as e^{−ρU}, and goes on like that or falls faster. The n draws above u thin out, with a mean excess e, and so
reach up to about v = u + e·log n. No draw stands for the energies beyond v. Their moments about ⟨U⟩, with D = v − ⟨U⟩:

    ∫_v^∞ (U − ⟨U⟩)^k p(U) dU = q, q·(D + 1/ρ), q·(D² + 2D/ρ + 2/ρ²)  for k = 0, 1, 2,     q = p(u)·e^{−ρ(v − u)}/ρ.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from contourmc.flattening.partition import Partition

RARE = 0.01  # energies above all but this share of the draws are not visited freely
NOTHING, ALL = (0.0, 0.0, 0.0), (1.0, float("inf"), float("inf"))


class EnergyTail(NamedTuple):
    """top: u, the highest energy that was visited freely.
    mass, first, second: the probability of the energies beyond all draws, and their moments about the mean energy.
    """

    top: float
    mass: float
    first: float
    second: float


def energy_tail(
    energies: Float[np.ndarray, "chains draws"], weights: Float[np.ndarray, "chains draws"], partition: Partition
) -> EnergyTail:
    """What lies beyond all draws, from the draws and their weights at a temperature, which sum to 1."""
    top = min(partition.high, float(np.quantile(energies, 1 - RARE)))
    step = 2 * partition.width
    levels = np.ceil((energies - top) / step)  # 0 in the step up to the top, −1 in the one below it
    below, last = (float(np.sum(weights[levels == level])) for level in (-1, 0))
    if last == 0 or np.ptp(energies) == 0:
        return EnergyTail(top, *NOTHING)
    if below <= last:  # the peak of the density is higher up
        return EnergyTail(top, *ALL)
    fall = float(np.log(below / last)) / step
    excess = energies[energies > top] - top
    reach = float(excess.mean() * np.log(excess.size)) if excess.size else 0.0
    mass = last / step * float(np.exp(-fall * (reach + step / 2))) / fall
    distance = top + reach - float(np.sum(weights * energies))
    return EnergyTail(top, mass, mass * (distance + 1 / fall), mass * (distance**2 + 2 * distance / fall + 2 / fall**2))
