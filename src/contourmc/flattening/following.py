"""A partition that finds its bins by itself, for energies with the noise of mini-batches.

Three things stand in the way of bins that are given beforehand. Energies fall by orders of magnitude while a network is
trained; the noise of a batch hides which energy a position has; and how far the gradient is multiplied, 1 + ζτ·s, says
little to a user who has to give ζ. So the bins follow what the chain sees, with Ũ_k the energy of step k:

    ū_k = ū_{k−1} + (Ũ_k − ū_{k−1}) / n                 the energy, smoothed over n steps
    σ²  = the mean of (Ũ_k − Ũ_{k−1})² / 2               the variance of the noise of a batch
    σ²/(2n − 1)                                          what remains of it in ū
    μ, S² = the mean and the variance of ū               where the energies lie, and how widely they are spread

The bins are those of z = (ū − μ)/S. Their width Δu is not below the noise of ū. θ is learnt from the visits alone
(`Visits`), and the multiplier is

    1 + b·r·Δ log θ / max(1, largest |Δ log θ|),         Δ log θ: between two bins, interpolated

which stays within 1 − b … 1 + b. So ζ = b·r·Δu / (τ·max(1, …)): it follows from the bound b, for every temperature. The
factor r = max(0, 1 − noise/S²), with the noise that remains in ū, is the share of the variation of ū that the positions
have caused: where there is nothing but noise, nothing is flattened.

Once it flattens, σ², μ and S² are means in which the latest steps count most: k steps later the next one counts
γ = 3/(k + 3n'), and what was known before counts as n' = 5n steps. Of all steps the first half then counts an eighth.
So a fall of the energies just before it begins, or soon after, is forgotten; one that comes in the middle of the
flattening widens the bins for the rest of the run: `begin` belongs after the last fall of a learning rate.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require, require_count, require_number
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import LogTheta, interpolate

REACH = 3.0  # the bins end at ±3 S
PRIOR = 5.0  # n', in units of the smoothing
FORGETTING = 3.0  # 1: all steps count alike


class Energies(NamedTuple):
    """What a chain has seen of its energies.

    last: Ũ of the step before.  smooth: ū.  noise: σ².  mean, variance: μ and S².
    """

    last: Float[Array, ""]
    smooth: Float[Array, ""]
    noise: Float[Array, ""]
    mean: Float[Array, ""]
    variance: Float[Array, ""]


class Flattened(NamedTuple):
    """multiplier: of the gradient.  log_weight: ζ·log Ψ.  zeta: ζ."""

    multiplier: Float[Array, ""]
    log_weight: Float[Array, ""]
    zeta: Float[Array, ""]


@dataclass(frozen=True)
class Following:
    """Bins that follow the energies, instead of a `Partition`: for contour kernels on mini-batches.

    bound: b. The gradient is multiplied by numbers between 1 − b and 1 + b.
    begin: after how many steps the flattening begins, and θ is learnt. Until then the bins follow the energies as they
        fall in training, with a memory of a tenth as many steps.
    smoothing: n, over how many steps the energy is smoothed. A smaller n follows the position more closely, a larger
        one leaves less noise of the batches.
    bins: how many there are; all but the two outer ones lie between μ − 3S and μ + 3S.

    >>> cm.sample(posterior, init=0.0, steps=2_000, kernel=cm.csghmc(1e-5, cm.Following(bound=0.3, begin=500)))
    Samples(4 chains × 1800 draws, FollowingContour)
    """

    bound: float = 0.5
    begin: int = 1000
    smoothing: int = 10
    bins: int = 14

    def __post_init__(self):
        require_number("bound", self.bound, "multipliers lie in 1 ± bound: give a number above 0", positive=True)
        begin = require_count("begin", self.begin, 10, "the bins need at least 10 steps to find the energies")
        smoothing = require_count("smoothing", self.smoothing, 1, "smooth over 1 step or more")
        bins = require_count("bins", self.bins, 4, "a partition that follows needs at least 4 bins")
        for name, value in dict(bound=float(self.bound), begin=begin, smoothing=smoothing, bins=bins).items():
            object.__setattr__(self, name, value)
        remedy = f"smoothing over {smoothing} steps needs at least twice as many before the flattening begins"
        require(begin >= 2 * smoothing, "begin", begin, remedy)

    @property
    def partition(self) -> Partition:
        """The bins of z."""
        return Partition(-REACH, 2 * REACH / (self.bins - 2), self.bins)

    def init(self) -> Energies:
        """Before the first step."""
        zero = jnp.zeros((), jnp.result_type(float))
        return Energies(zero, zero, zero, zero, zero)

    def seen(self, energies: Energies, energy: Float[Array, ""], step: Int[Array, ""]) -> Energies:
        """With the energy of one more step; steps are counted from 1."""
        first, k = step == 1, step.astype(energy.dtype)
        last = jnp.where(first, energy, energies.last)
        smooth = last + jnp.where(first, 0.0, energies.smooth - last)
        smooth = smooth + (energy - smooth) / jnp.minimum(k, self.smoothing)
        before = 1 / jnp.minimum(k, max(self.smoothing, self.begin / 10))
        since = FORGETTING / (k - self.begin + FORGETTING * PRIOR * self.smoothing)
        gain = jnp.where(k <= self.begin, before, since)
        noise = energies.noise + gain * ((energy - last) ** 2 / 2 - energies.noise)
        away = smooth - jnp.where(first, smooth, energies.mean)
        mean = smooth - away + gain * away
        variance = (1 - gain) * (energies.variance + gain * away * away)
        return Energies(energy, smooth, noise, mean, variance)

    def flatten(
        self, energies: Energies, theta: LogTheta, temperature: Float[Array, ""], step: Int[Array, ""]
    ) -> Flattened:
        """What becomes of the energy seen last."""
        partition, level, width = self.partition, self.level(energies), self.width(energies)
        log_psi, slope = interpolate(theta, partition, level, "smooth")
        inner = theta.levels[1:-1]
        steepest = jnp.maximum(1.0, jnp.max(jnp.abs(inner[1:] - inner[:-1])))
        strength = jnp.where(step > self.begin, self.bound * self.reliability(energies) / steepest, 0.0)
        # At temperature 0 nothing is sampled that weights could lead back to: there they are equal.
        zeta = jnp.where(temperature > 0, strength * width / jnp.where(temperature > 0, temperature, 1.0), 0.0)
        return Flattened(1 + strength * partition.width * slope, zeta * log_psi, zeta)

    def level(self, energies: Energies) -> Float[Array, ""]:
        """z, of the smoothed energy; with S not below what the width of the bins asks for."""
        spread = self.width(energies) / self.partition.width
        return (energies.smooth - energies.mean) / jnp.maximum(spread, jnp.finfo(spread.dtype).tiny)

    def width(self, energies: Energies) -> Float[Array, ""]:
        """Δu, the width of a bin in units of energy."""
        return jnp.maximum(self.partition.width * jnp.sqrt(energies.variance), jnp.sqrt(self.remaining(energies)))

    def remaining(self, energies: Energies) -> Float[Array, ""]:
        """The variance of the noise in ū."""
        return energies.noise / (2 * self.smoothing - 1)

    def reliability(self, energies: Energies) -> Float[Array, ""]:
        """r, the share of the variation of ū that is not noise."""
        tiny = jnp.finfo(energies.variance.dtype).tiny
        noise = (self.remaining(energies) + tiny) / jnp.maximum(energies.variance, tiny)
        return jnp.maximum(0.0, 1 - noise)
