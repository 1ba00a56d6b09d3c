"""How much space there is at each energy: the density of states.

g(u)du is the volume of the positions whose energy lies in du, so that Z(T) = ∫g(u)e^{−u/T}du. Draws weighted by
w·e^{U/τ} count volume, whatever their energies:

    log g(u) ≈ log Σ_{draws in the bin of u} w·e^{U/τ} − log Δu,        Σ w = 1, which sets Z(τ) = 1.

log g is also called the entropy S(u) of an energy. Add `log_evidence()` to have it in absolute units.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from contourmc.draws.jackknife import jackknife
from contourmc.draws.temperatures import log_shares, own_temperature
from contourmc.draws.weighted import WeightedDraws


@dataclass(frozen=True)
class DensityOfStates:
    """energies: the centres of bins of energy.
    log_density: log g(u), in units in which Z(τ) = 1; −∞ in a bin without draws.
    error: its standard error; NaN where a single chain has draws.
    """

    energies: Float[np.ndarray, " bins"]
    log_density: Float[np.ndarray, " bins"]
    error: Float[np.ndarray, " bins"]


def density_of_states(samples: WeightedDraws) -> DensityOfStates:
    """By the bins of the partition, which are continued down to the lowest energy."""
    own, partition = own_temperature(samples), samples.partition
    assert partition is not None
    energies = np.asarray(samples.energies, float)
    below = int(np.ceil(max(partition.low - energies.min(), 0.0) / partition.width))
    edges = partition.extended(below, 0).edges
    log_volumes = log_shares(samples) + energies / own
    weights = samples.weights
    values, errors = [], []
    for low, high in pairwise(edges):
        inside = np.where((energies > low) & (energies <= high), log_volumes, -np.inf)
        top = float(np.max(inside, initial=-1e300))
        value, error = jackknife(
            lambda sums: np.log(sums[0] / sums[1]), (np.exp(inside - top), weights), samples.pooled
        )
        values.append(value + top - np.log(high - low))
        errors.append(error)
    return DensityOfStates((edges[:-1] + edges[1:]) / 2, np.array(values), np.array(errors))
