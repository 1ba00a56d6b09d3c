"""Bridge sampling: the integral of a density, from draws of it and draws of a reference that is normalised.

With q the density, Z = ∫q its integral, r the reference, and shares s₁ + s₂ = 1, for any function that bridges them

    Z = E_r[q/(s₁q/Z + s₂r)] / E_{q/Z}[r/(s₁q/Z + s₂r)].

This bridge is the best of all if s₁ and s₂ are the shares of independent draws of q/Z and of r (Meng & Wong 1996). It
depends on Z, and so it is iterated. Neither mean is ever dominated by a few draws: the terms are at most Z/s₁ and 1/s₂.
Where both densities agree the terms are constant. In logarithms throughout, with ℓ = log q − log r.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

MOST_ROUNDS = 1000
SETTLED = 1e-9


class Bridge(NamedTuple):
    """log_integral: log Z.
    upper: log of the terms of the reference's draws, log q/(s₁q/Z + s₂r) − log r.
    lower: log of the terms of the other draws, −log(s₁q/(Zr) + s₂).
    """

    log_integral: float
    upper: Float[np.ndarray, "sets reference"]
    lower: Float[np.ndarray, "*draws"]

    @property
    def overlap(self) -> float:
        """∫ pr/(s₁p + s₂r) with p = q/Z: 1 if both densities are the same, 0 if they are nowhere near each other."""
        return float(np.exp(log_mean(self.upper) - self.log_integral))

    @property
    def reference_error(self) -> float:
        """The standard error of log Z that comes from the draws of the reference, from the spread of the n sets.

        That of few is itself uncertain, and the error larger by √((n − 1)/(n − 3)), as Student's distribution has it.
        """
        means = np.exp(self.upper - self.upper.max()).mean(axis=1)
        few = max(len(means) - 1, 3) / max(len(means) - 3, 1)
        return float(means.std(ddof=1) / means.mean() / len(means) ** 0.5 * few**0.5)


def bridge(
    at_reference: Float[np.ndarray, "sets reference"],
    at_draws: Float[np.ndarray, "*draws"],
    log_weights: Float[np.ndarray, "*draws"],
    effective: float,
) -> Bridge:
    """at_reference, at_draws: ℓ at draws of the reference, one of them finite at least, and at those of the density.
        The reference has two or more sets of draws, which are independent of each other, if not within a set.
    log_weights: of the draws of the density; weights sum to 1.
    effective: how many independent draws these are worth.
    """
    count = at_reference.size
    log_own, log_other = np.log(effective / (effective + count)), np.log(count / (effective + count))

    def terms(log_z: float) -> Bridge:
        upper = at_reference - np.logaddexp(log_own + at_reference - log_z, log_other)
        lower = -np.logaddexp(log_own + at_draws - log_z, log_other)
        return Bridge(log_mean(upper) - float(np.logaddexp.reduce((log_weights + lower).ravel())), upper, lower)

    before, found = -np.inf, terms(log_mean(at_reference))
    for _ in range(MOST_ROUNDS):
        if abs(found.log_integral - before) < SETTLED:
            break
        before, found = found.log_integral, terms(found.log_integral)
    return found


def log_mean(logs: Float[np.ndarray, "..."]) -> float:
    """log of the mean of e^logs."""
    return float(np.logaddexp.reduce(logs.ravel()) - np.log(logs.size))
