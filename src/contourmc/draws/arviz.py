"""Draws for ArviZ."""

from typing import Any

import numpy as np

from contourmc._core.checks import require_count
from contourmc.draws import estimates
from contourmc.draws.storage import variables
from contourmc.draws.weighted import WeightedDraws


def to_arviz(samples: WeightedDraws, draws: int | None, seed: int) -> Any:
    """An ArviZ object: InferenceData of ArviZ 0.x, a DataTree of ArviZ 1.x."""
    import arviz

    count = require_count("draws", samples.energies.shape[1] if draws is None else draws, 1, "ask for 1 or more")
    random = np.random.default_rng(seed)
    chosen = np.stack([estimates.systematic(weights, count, random) for weights in samples.weights])
    chains = np.arange(samples.chains)[:, None]
    groups: dict[str, Any] = {
        "posterior": {name: values[chains, chosen] for name, values in variables(samples.draws).items()},
        "sample_stats": {
            "energy": samples.energies[chains, chosen],
            "log_weight": samples.log_weights[chains, chosen],
            "multiplier": samples.multipliers[chains, chosen],
        },
    }
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups)
    return arviz.from_dict(**groups)
