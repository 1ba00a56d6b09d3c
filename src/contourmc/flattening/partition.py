"""The energy partition: which subregion a point belongs to."""

import math
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require, require_count, require_number
from contourmc._core.pytrees import HoldsArrays


@dataclass(frozen=True)
class Partition(HoldsArrays, arrays=("low", "width", "per_width")):
    """`bins` subregions of the sample space, by energy.

    Bin 0 is U ≤ low, bin i is low + (i−1)·width < U ≤ low + i·width, and the last bin is everything
    above. The two end bins are unbounded; the others are `width` wide.

    low: the upper end of bin 0. It must lie above the lowest energy: the θ of a bin that is
        never visited falls without limit, and the gradient multiplier next to it explodes.
    width: Δu, the width of the inner bins, in units of energy.
    bins: m, the number of subregions.
    per_width: 1/Δu, which follows from the width: a compiled loop need not divide.

    >>> partition = cm.Partition(low=2.0, width=0.5, bins=6)
    >>> print(partition.edges, partition.index(np.array([1.0, 2.3, 9.9])))
    [2.  2.5 3.  3.5 4. ] [0 1 5]
    """

    low: float
    width: float
    bins: int
    per_width: float = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        finite = isinstance(self.low, (int, float, np.number)) and math.isfinite(self.low)
        require(finite, "low", self.low, "give a finite energy a little above the lowest one")
        require_number("width", self.width, "the width Δu of an energy bin must be above 0", positive=True)
        bins = require_count("bins", self.bins, 2, "a partition needs at least 2 bins")
        object.__setattr__(self, "bins", bins)
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "width", float(self.width))
        object.__setattr__(self, "per_width", 1 / self.width)

    def extended(self, below: int, above: int) -> "Partition":
        """The same bins, with more of them below and above, or fewer if a number is negative."""
        return Partition(self.low - below * self.width, self.width, self.bins + below + above)

    @property
    def edges(self) -> Float[np.ndarray, " inner_edges"]:
        """The bins − 1 inner edges u₁ … u_{m−1}."""
        return self.low + self.width * np.arange(self.bins - 1)

    @property
    def centres(self) -> Float[np.ndarray, " bins"]:
        """The middle of each bin; of the unbounded ones as if they were as wide as the others."""
        return self.low + self.width * (np.arange(self.bins) - 0.5)

    @property
    def high(self) -> float:
        """The lower end of the last, unbounded bin."""
        return self.low + self.width * (self.bins - 2)

    def level(self, energy: ArrayLike) -> Float[Array, "..."]:
        """The energy in units of the bin width, counted from `low`."""
        return (jnp.asarray(energy) - self.low) * self.per_width

    def index(self, energy: ArrayLike) -> Int[Array, "..."]:
        """J(u) = clip(ceil((u − u₁)/Δu), 0, m−1)."""
        # Clip before the cast: a float beyond the integers has no defined cast.
        return jnp.clip(jnp.ceil(self.level(energy)), 0, self.bins - 1).astype(jnp.int32)
