"""Standard errors of any function of weighted sums over draws: leave out a chain at a time, or a stretch of one."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

ENOUGH_CHAINS = 4  # fewer say nothing about their own spread
STRETCHES = 60  # of all chains together


class Estimate(NamedTuple):
    """value: of a number, or of several.  error: its standard error."""

    value: Float[np.ndarray, "*shape"]
    error: Float[np.ndarray, "*shape"]


def jackknife(
    function: Callable[[Float[np.ndarray, " values"]], Any],
    values: Sequence[Float[np.ndarray, "chains draws"]],
    counted: Bool[np.ndarray, " chains"],
) -> Estimate:
    """f(Σs) with the error √((G−1)/G Σ_g (f_g − f̄)²), where f_g leaves out group g of the G groups of draws.

    function: of the sums of each of the values over all draws.
    counted: which chains count.

    The groups are chains, and then stretches of chains; the error is the larger of both. Chains also see modes that
    some of them missed, but there are few, and by chance they may agree too well. With fewer than 4 chains stretches
    have to do. The error is NaN if there is a group without which nothing remains.
    """
    total = np.array([one[counted].sum() for one in values])
    errors = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for groups in _groupings(counted, values[0].shape[1]):
            sums = _sums(values, groups)
            count = len(sums)
            without = np.stack([function(np.delete(sums, group, axis=0).sum(axis=0)) for group in range(count)])
            errors.append(np.sqrt((count - 1) * without.var(axis=0)))
        return Estimate(np.asarray(function(total)), np.max(errors, axis=0))


def _groupings(counted: Bool[np.ndarray, " chains"], draws: int) -> Iterator[Int[np.ndarray, "chains draws"]]:
    """The group of each draw by chains, if there are enough, and by stretches; −1 in chains that do not count."""
    chains = int(counted.sum())
    for stretches in (1, -(-STRETCHES // chains)):
        if stretches > 1 or chains >= ENOUGH_CHAINS:
            within = np.arange(draws) * min(stretches, draws) // draws
            groups = np.full((len(counted), draws), -1)
            groups[counted] = within + (within[-1] + 1) * np.arange(chains)[:, None]
            yield groups


def _sums(
    values: Sequence[Float[np.ndarray, "chains draws"]], groups: Int[np.ndarray, "chains draws"]
) -> Float[np.ndarray, "groups values"]:
    """The sums of the values over each group."""
    counted, count = groups >= 0, int(groups.max()) + 1
    return np.stack([np.bincount(groups[counted], one[counted], minlength=count) for one in values], axis=1)
