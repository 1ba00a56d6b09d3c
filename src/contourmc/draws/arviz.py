"""Draws for ArviZ."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from contourmc._core.checks import require_count
from contourmc._core.extras import import_extra
from contourmc._core.pytrees import named_leaves, position_size
from contourmc.draws import estimates
from contourmc.draws.tree_files import variables
from contourmc.draws.weighted import WeightedDraws

MOST_BALANCED = 256  # numbers of a position whose means can be kept by the choice of draws


def to_arviz(samples: WeightedDraws, draws: int | None, seed: int, log_likelihood: bool) -> Any:
    """An ArviZ object with equal weights: InferenceData of ArviZ 0.x, a DataTree of ArviZ 1.x.

    The draws of all chains are resampled together by their weights, and the list, in the order of chains and steps, is
    cut into as many rows of equal length as there were chains. So the mean over the rows is that of `mean()`, and:

    - where chains count equally, row i holds the draws of chain i;
    - where weights are comparable between chains, a chain of large weight fills several rows in turn, and chains of
      little weight share one. Rows are still stretches of chains, and ArviZ's R̂ says whether such stretches agree.

    A draw of large weight is repeated, in neighbouring places: ArviZ's ESS sees this as correlation.
    """
    arviz = import_extra("arviz", "arviz")
    weights, positions = samples.weights.ravel(), samples.positions
    count = require_count("draws", samples.energies.shape[1] if draws is None else draws, 1, "ask for 1 or more")
    rows = samples.chains, count
    chosen = _chosen(samples, weights, samples.chains * count, np.random.default_rng(seed)).reshape(rows)

    def resampled(values: np.ndarray) -> np.ndarray:
        return values.reshape(-1, *values.shape[2:])[chosen]

    posterior = {name: resampled(values) for name, values in variables(positions).items()}
    figures = {"energy": samples.energies, "log_weight": samples.log_weights, "multiplier": samples.multipliers}
    groups: dict[str, Any] = {
        "posterior": posterior,
        "sample_stats": {name: resampled(values) for name, values in variables(figures).items()},
    }
    if samples.view is not None:
        names = named_leaves(positions)
        seen = dict(zip(names, posterior.values(), strict=True))
        groups |= samples.view.arviz_groups(seen, log_likelihood=log_likelihood)
    labels = _labels(samples, groups)
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, **labels)
    return arviz.from_dict(**groups, **labels)


def _chosen(
    samples: WeightedDraws, weights: Float[np.ndarray, " draws"], count: int, random: np.random.Generator
) -> Int[np.ndarray, " count"]:
    """Which draws, so that means agree with those of the run where these come from the same draws."""
    size = position_size(samples.positions) // max(samples.energies.size, 1)
    if samples.trajectory.means is not None or size > MOST_BALANCED:
        return estimates.systematic(weights, count, random)
    values = [np.reshape(leaf, (len(weights), -1)) for leaf in jax.tree.leaves(samples.positions)]
    return estimates.balanced(weights, np.concatenate(values, axis=1), count)


def _labels(samples: WeightedDraws, groups: dict[str, Any]) -> dict[str, Any]:
    """Names of axes and labels along them, as far as there are any, by the names that arrays have for ArviZ."""
    stored = dict(zip(named_leaves(samples.positions), variables(samples.positions), strict=True))
    names = {name for group in groups.values() for name in group}
    dims = {stored.get(name, name): list(axes) for name, axes in samples.labels.dims.items()}
    dims = {name: axes for name, axes in dims.items() if name in names}
    used = {axis for axes in dims.values() for axis in axes}
    coords = {axis: labels for axis, labels in samples.labels.coords.items() if axis in used}
    return {name: given for name, given in (("dims", dims), ("coords", coords)) if given}
