"""The power of the weights at which a stated share of the models counts; by default half of them.

With weights w_k of n draws, (Σ w)² / Σ w² is how many of them count. It falls as a power p of the weights grows, from n
at p = 0, so that there is a largest p at which enough count. Which one that is shows only at the end of a run, when a
sum over w^p can no longer be changed into one over another power, and how far log weights differ is not known
beforehand: by 10 at ζ = 1, by 10⁷ at ζ = 10⁶. So sums are made for a ladder of powers side by side, and the result is
that of the largest with enough models. It is exact for that power, and at most a factor of 2 below the one asked for:
if log weights are Gaussian and half of the models must count, between 50% and 84% of them do.

The averages of JAX, which Optax's loops use too, and the ensemble of PyTorch take their power from here.
"""

import warnings

import numpy as np
from jaxtyping import Float

from contourmc._core.checks import require, require_number
from contourmc.draws.estimates import kish, normalise

EFFECTIVE = 0.5  # the share of the models that must count, unless the user says otherwise
POWERS = (*(2.0**-k for k in range(28)), 0.0)  # down to 7·10⁻⁹; the last makes all draws equal
ROUNDING = 1e-4  # of sums in float32


def required_share(tempering: float | None, effective: float | None) -> float | None:
    """The share of the models that must count by these settings of an average, or None if `tempering` is their power;
    raises for settings that are not possible.
    """
    if tempering is not None:
        remedy = "the power of the weights must be in [0, 1]"
        require_number("tempering", tempering, remedy, positive=False)
        require(tempering <= 1, "tempering", tempering, remedy)
        remedy = "with a share of the models that must count, the power follows: leave one of the two out"
        require(effective is None, "tempering", tempering, remedy)
        return None
    if effective is not None:
        remedy = "the share of the models that must count is in (0, 1], such as 0.5"
        require_number("effective", effective, remedy, positive=True)
        require(effective <= 1, "effective", effective, remedy)
    return EFFECTIVE if effective is None else effective


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


def power_of_one_chain(log_weights: Float[np.ndarray, " draws"], effective: float) -> int:
    """The index of the largest power at which at least this share of the draws of a chain counts."""
    counting = np.array([float(kish(normalise(power * log_weights))) for power in POWERS])
    return largest_power(counting / len(log_weights), effective)


def warn_tempered(power: float, models: int, stacklevel: int) -> None:
    """Say that weights were tempered, which nobody asked for."""
    message = f"the weights of the {models} models differ so much that they were tempered, to the power of {power:.2g},"
    message += f" so that at least {EFFECTIVE:.0%} of the models count. `effective={EFFECTIVE}` says that this is meant"
    message += "; `tempering=1` leaves the weights as they are"
    warnings.warn(message, stacklevel=stacklevel + 1)
