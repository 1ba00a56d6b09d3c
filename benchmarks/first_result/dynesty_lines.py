"""The README's energy by dynesty: its dynamic nested sampler as it comes, in a box of ±20 around both modes."""

import sys
from typing import Any

import dynesty  # pyright: ignore[reportMissingImports]  # an optional extra
import numpy as np


def log_density(x: np.ndarray) -> float:
    return float(np.logaddexp(np.log(0.4) - (x[0] + 6) ** 2 / 2, np.log(0.6) - (x[0] - 4) ** 2 / 2))


seed, effort = map(int, sys.argv[1:])
random = np.random.default_rng(seed)
sampler = dynesty.DynamicNestedSampler(log_density, lambda u: 40 * u - 20, 1, nlive=500 * effort, rstate=random)
sampler.run_nested(print_progress=False, n_effective=10_000 * effort)
results: Any = sampler.results
print(float(np.average(results.samples[:, 0], weights=results.importance_weights())), int(np.sum(results.ncall)))
