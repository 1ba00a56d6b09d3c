"""Histograms of the energies that a run visited."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from contourmc.draws.weighted import WeightedDraws


class EnergyHistogram(NamedTuple):
    """edges: of the bins.  sampled: the density of the energies as sampled.  weighted: as weighted to the target."""

    edges: Float[np.ndarray, " edges"]
    sampled: Float[np.ndarray, " bins"]
    weighted: Float[np.ndarray, " bins"]


def energy_histogram(samples: WeightedDraws, bins: int = 60) -> EnergyHistogram:
    """From the lowest energy up to all but one in a thousand: a chain may have begun far above the others."""
    energies = np.asarray(samples.energies, float).ravel()
    low, high = float(energies.min()), float(np.quantile(energies, 0.999))
    edges = np.histogram_bin_edges(energies, bins, (low, high))
    densities = [
        np.histogram(energies, edges, weights=weights, density=True)[0] for weights in (None, samples.weights.ravel())
    ]
    return EnergyHistogram(edges, *densities)
