"""A partition that follows the energies the chains meet, and θ on its new bins."""

import jax.numpy as jnp
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


def rebin(state: ContourState, energies: np.ndarray, old: Partition, new: Partition) -> ContourState:
    """θ over more bins. Nothing was flattened in an end bin, so its θ is divided as its energies were visited."""
    below = round((old.low - new.low) / old.width)
    above = new.bins - old.bins - below
    counts = np.bincount(np.asarray(new.index(energies)).ravel(), minlength=new.bins) + 0.5
    lower, upper = counts[: below + 1], counts[new.bins - above - 1 :]
    levels = state.theta.levels
    theta = jnp.concatenate(
        [
            levels[0] + jnp.log(lower / lower.sum()).astype(levels.dtype),
            levels[1:-1],
            levels[-1] + jnp.log(upper / upper.sum()).astype(levels.dtype),
        ]
    )
    return state._replace(theta=LogTheta(theta, state.theta.offset), visits=jnp.zeros(new.bins, state.visits.dtype))
