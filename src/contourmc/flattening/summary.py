"""What is kept about the flattening, together with the draws."""

from dataclasses import dataclass

from contourmc.flattening.partition import Partition


@dataclass(frozen=True)
class Flattening:
    """partition: the energy bins.
    visit_power: the power p with which bins are visited in proportion to θ^p, once θ is learnt.
    fixed: whether θ was fixed and the same for all chains, so that weights can be compared between chains.
    temperature: τ, to which the weights lead: weighted draws are those of e^{−U/τ}; None if it changes along the run.
    automatic: whether the run chose the partition by itself.
    following: whether the bins follow the energies: they are then those of (smoothed energy − mean) / spread.
    """

    partition: Partition
    visit_power: float
    fixed: bool
    temperature: float | None = None
    automatic: bool = False
    following: bool = False

    @property
    def axis(self) -> str:
        """What the bins are of, for the axis of a chart."""
        return "(smoothed energy − mean) / spread" if self.following else "energy"
