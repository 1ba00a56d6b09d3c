"""The power of the weights at which a stated share of the models counts.

With weights w_k of n draws, (Σ w)² / Σ w² is how many of them count. It falls as a power p of the weights grows, from n
at p = 0, so that there is a largest p at which enough count. Which one that is shows only at the end of a run, when a
sum over w^p can no longer be changed into one over another power, and how far log weights differ is not known
beforehand: by 10 at ζ = 1, by 10⁷ at ζ = 10⁶. So sums are made for a ladder of powers side by side, and the result is
that of the largest with enough models. It is exact for that power, and at most a factor of 2 below the one asked for:
if log weights are Gaussian and half of the models must count, between 50% and 84% of them do.
"""

import numpy as np
from jaxtyping import Float

from contourmc.draws.estimates import normalise

POWERS = (*(2.0**-k for k in range(28)), 0.0)  # down to 7·10⁻⁹; the last makes all draws equal
ROUNDING = 1e-4  # of sums in float32


def chain_shares(log_totals: Float[np.ndarray, "chains ..."], comparable: bool) -> Float[np.ndarray, "chains ..."]:
    """How much each chain counts: by the sum of its weights if these can be compared between chains, else equally."""
    log_totals = np.asarray(log_totals, float)
    return np.moveaxis(normalise(np.moveaxis(log_totals if comparable else np.zeros_like(log_totals), 0, -1)), -1, 0)


def share_that_counts(
    concentrations: Float[np.ndarray, "chains ..."], shares: Float[np.ndarray, "chains ..."], models: int
) -> Float[np.ndarray | np.generic, "..."]:
    """(Σ w)² / Σ w² over the draws of all chains, as a share of their number.

    concentrations: Σ w² / (Σ w)² of each chain.
    shares: how much each chain counts.
    models: the draws of a chain.
    """
    return 1 / np.sum(shares**2 * concentrations, axis=0) / (models * len(shares))


def largest_power(counting: Float[np.ndarray | np.generic, " powers"], effective: float) -> int:
    """The index of the largest power at which at least this share of the models counts."""
    enough = np.asarray(counting, float) >= effective - ROUNDING
    return int(np.argmax(np.append(enough[:-1], True)))  # at the last power all do
