"""What is kept about the flattening, together with the draws."""

from dataclasses import dataclass

from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme


@dataclass(frozen=True)
class Flattening:
    """partition: the energy bins.
    visit_power: the power p with which bins are visited in proportion to θ^p, once θ is learnt.
    fixed: whether θ was fixed and the same for all chains, so that weights can be compared between chains.
    temperature: τ, to which the weights lead: weighted draws are those of e^{−U/τ}; None if it changes along the run.
    automatic: whether the run chose the partition by itself.
    following: whether the bins follow the energies: they are then those of (smoothed energy − mean) / spread.
    zeta: ζ, how far the landscape was flattened; None if the run found it, as with bins that follow.
    scheme: how log Ψ interpolates log θ; None with bins that follow.
    step_weights: True if draws are weighted by θ^ζ(J) instead of Ψ^ζ(U).
    tilt: weights also have the factor e^{tilt·U}: 1/τ − 1/T once draws were weighted for another temperature T.
    """

    partition: Partition
    visit_power: float
    fixed: bool
    temperature: float | None = None
    automatic: bool = False
    following: bool = False
    zeta: float | None = None
    scheme: Scheme | None = None
    step_weights: bool = False
    tilt: float = 0.0

    @property
    def axis(self) -> str:
        """What the bins are of, for the axis of a chart."""
        return "(smoothed energy − mean) / spread" if self.following else "energy"
