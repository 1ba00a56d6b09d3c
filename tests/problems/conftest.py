"""Given draws in the form of a run's result."""

from collections.abc import Callable

import numpy as np
import pytest

from contourmc.draws.samples import Samples
from contourmc.draws.trajectory import Trajectory


def _wrap(draws: np.ndarray, log_weights: np.ndarray | None = None) -> Samples:
    """Draws of shape (chain, draw, …) as if a run had made them."""
    chains, count = draws.shape[:2]
    log_weights = np.zeros((chains, count)) if log_weights is None else log_weights
    shares = np.exp(log_weights) / np.exp(log_weights).sum(axis=1, keepdims=True)
    trajectory = Trajectory(
        steps=np.array([count]),
        log_weights=np.zeros((chains, 1)),
        means=np.einsum("cd,cd...->c...", shares, draws)[:, None],
        squares=np.einsum("cd,cd...->c...", shares, draws**2)[:, None],
        centre=np.zeros_like(draws[:, 0]),
        theta=None,
        visits=None,
    )
    return Samples(
        draws=draws,
        energies=np.zeros((chains, count)),
        log_weights=log_weights,
        multipliers=np.ones((chains, count)),
        steps=np.arange(count),
        trajectory=trajectory,
        settings={"kernel": {"kind": "exact"}},
        seconds=0.0,
    )


@pytest.fixture(scope="session")
def wrap() -> Callable[..., Samples]:
    return _wrap
