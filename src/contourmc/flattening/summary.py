"""What the draws of a flattened run must know of its flattening."""

from dataclasses import dataclass

from contourmc.flattening.partition import Partition


@dataclass(frozen=True)
class Flattening:
    """partition: the energy bins.
    visit_power: bins are visited in proportion to θ to this power, once θ is learnt.
    fixed: whether θ stood still and was the same for all chains, so that weights can be compared between chains.
    """

    partition: Partition
    visit_power: float
    fixed: bool
