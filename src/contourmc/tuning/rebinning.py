"""A partition that follows the energies the chains meet, and θ on its new bins."""

import jax
import numpy as np

from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import LogTheta
from contourmc.kernels.contour import ContourState

DEEPER = 4.0  # how far below the partition energies may lie, in bin widths
BEYOND = 0.25  # the share of energies that may lie above the partition


def bins_to_add(energies: np.ndarray, partition: Partition) -> tuple[int, int]:
    """How many bins to add below and above for these energies."""
    if energies.size == 0:
        return 0, 0
    lower = energies[energies <= partition.low]
    below = 0
    if lower.size >= 20 and partition.low - np.quantile(lower, 0.1) > DEEPER * partition.width:
        below = int((partition.low - np.median(lower)) / partition.width)  # a new bin 0 must not be empty
    crowded = np.mean(energies > partition.high) > BEYOND
    return below, partition.bins // 2 if crowded else 0


def rebin(chains: ContourState, energies: np.ndarray, old: Partition, new: Partition) -> ContourState:
    """θ of stacked chains over more bins. Nothing was flattened in an end bin: its θ is divided as its energies were
    visited.

    NumPy does it: JAX would compile a program for every number of bins, and keep it.
    """
    below = round((old.low - new.low) / old.width)
    above = new.bins - old.bins - below
    counts = np.bincount(np.searchsorted(new.edges, energies.ravel()), minlength=new.bins) + 0.5
    lower, upper = counts[: below + 1], counts[new.bins - above - 1 :]
    levels = np.asarray(chains.theta.levels)
    parts = levels[:, :1] + np.log(lower / lower.sum()), levels[:, 1:-1], levels[:, -1:] + np.log(upper / upper.sum())
    theta = np.concatenate(parts, axis=1).astype(levels.dtype)
    visits = np.zeros((len(levels), new.bins), chains.visits.dtype)
    return chains._replace(theta=LogTheta(jax.device_put(theta), chains.theta.offset), visits=jax.device_put(visits))
