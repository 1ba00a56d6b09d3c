"""Runs whose draws are given."""

import jax
import jax.numpy as jnp
import numpy as np

import contourmc as cm
from contourmc.draws.samples import Samples
from contourmc.draws.trajectory import Trajectory
from contourmc.flattening.summary import Flattening

BINS = 5


def samples_of(draws, log_weights=None, *, target=None, **others) -> Samples:
    """A flattened run with these draws, (chain, draw, …), at temperature 1; they count equally without weights."""
    draws = np.asarray(draws, np.float32)
    chains, count = draws.shape[:2]
    none, random = np.zeros((chains, count)), np.random.default_rng(0)
    energies = random.uniform(0, BINS - 2, size=none.shape)
    if target is not None:
        energies = np.asarray(jax.jit(jax.vmap(jax.vmap(lambda x: target.evaluate(None, x)[0])))(jnp.asarray(draws)))
    theta, visits = np.full((chains, 1, BINS), 1 / BINS), np.full((chains, 1, BINS), count)
    return Samples(
        draws=draws, energies=energies, log_weights=none if log_weights is None else log_weights,
        multipliers=none + 1, steps=100 * (1 + np.arange(count)), settings={}, seconds=1.0, target=target,
        trajectory=Trajectory(np.array([100 * count]), np.zeros((chains, 1)), None, None, None, theta, visits),
        flattening=Flattening(cm.Partition(0.0, 1.0, BINS), 1.0, fixed=True, temperature=1.0), **others,
    )  # fmt: skip
