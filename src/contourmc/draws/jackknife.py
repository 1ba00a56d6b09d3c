"""Standard errors of any function of weighted sums: leave out one chain at a time, or one stretch of a chain."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

ENOUGH_CHAINS = 4  # fewer say little about their own spread: stretches of them are left out instead
STRETCHES = 24  # of all chains together, where stretches are left out


class Estimate(NamedTuple):
    """value: of a number, or of several.  error: its standard error."""

    value: Float[np.ndarray, "*shape"]
    error: Float[np.ndarray, "*shape"]


def groups_of(counted: Bool[np.ndarray, " chains"], draws: int) -> Int[np.ndarray, "chains draws"]:
    """The group of each draw, of those that are left out together; −1 in chains that do not count.

    A group is a chain, or, with fewer than 4 chains, a stretch of one.
    """
    chains = int(counted.sum())
    stretches = 1 if chains >= ENOUGH_CHAINS else min(-(-STRETCHES // chains), draws)
    groups = np.full((len(counted), draws), -1)
    within = np.arange(draws) * stretches // max(draws, 1)
    groups[counted] = within + stretches * np.arange(chains)[:, None]
    return groups


def sums_by_group(
    values: Sequence[Float[np.ndarray, "chains draws"]], groups: Int[np.ndarray, "chains draws"]
) -> Float[np.ndarray, "groups values"]:
    """The sums of some values over each group."""
    counted, count = groups >= 0, int(groups.max()) + 1
    return np.stack([np.bincount(groups[counted], one[counted], minlength=count) for one in values], axis=1)


def jackknife(
    function: Callable[[Float[np.ndarray, " sums"]], Any], sums: Float[np.ndarray, "groups sums"]
) -> Estimate:
    """f(Σ_g s_g) with the error √((G−1)/G Σ_g (f_g − f̄)²), where f_g = f(Σ_{h≠g} s_h) leaves out group g.

    The error is NaN if there is a single group, or one without which nothing remains.
    """
    count = len(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.asarray(function(sums.sum(axis=0)))
        if count < 2:
            return Estimate(value, np.full(value.shape, np.nan))
        without = np.stack([function(np.delete(sums, group, axis=0).sum(axis=0)) for group in range(count)])
        return Estimate(value, np.sqrt((count - 1) * without.var(axis=0)))
