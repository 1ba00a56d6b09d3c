"""The README's energy by emcee: 32 walkers around the start, its default stretch moves."""

import sys
from typing import Any

import emcee  # pyright: ignore[reportMissingImports]  # an optional extra
import numpy as np


def log_density(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(np.log(0.4) - (x[:, 0] + 6) ** 2 / 2, np.log(0.6) - (x[:, 0] - 4) ** 2 / 2)


seed, effort = map(int, sys.argv[1:])
walkers, steps = 32, 5_000 * effort
start = -6 + np.random.default_rng(seed).normal(size=(walkers, 1))
sampler: Any = emcee.EnsembleSampler(walkers, 1, log_density, vectorize=True)
np.random.seed(seed)  # noqa: NPY002  # which it draws from
sampler.run_mcmc(start, steps)
print(float(sampler.get_chain(discard=steps // 10, flat=True).mean()), walkers * steps)
