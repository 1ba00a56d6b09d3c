"""A small run with a folder, which most tests of checkpoints share."""

import jax.numpy as jnp
import pytest

import contourmc as cm


def wells(x):
    return 4 * jnp.sum((x**2 - 1) ** 2)


PARTITION = cm.Partition(low=0, width=0.5, bins=20)


@pytest.fixture
def begin(tmp_path):
    """Starts a run in a folder; arguments change it."""

    def start(target=wells, **changes):
        usual = dict(
            init=jnp.ones(2), steps=8000, kernel=cm.csgld(0.01, partition=PARTITION), chains=2, seed=1, thin=4,
            checkpoint=tmp_path / "run",
        )  # fmt: skip
        return cm.start(target, **(usual | changes))

    return start
