"""Runs to report on; each is made once."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

import contourmc as cm


def wells(x):
    """Two wells in a, and b beside them."""
    return 8 * (x["a"][0] ** 2 - 1) ** 2 + x["a"][1] ** 2 / 2 + (x["b"] - x["a"][0]) ** 2


START = {"a": jnp.array([1.0, 0.0]), "b": jnp.asarray(1.0)}


@pytest.fixture(scope="session")
def run():
    """A run that tunes itself."""
    return cm.sample(wells, init=START, steps=20_000, chains=4, seed=3)


NASTY = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    '"><img src=x onerror=alert(3)>',
    "' onmouseover='alert(4)",
    "{{ 7 * 7 }}{% raw %}",
    "a\u2028b\u2029c",
    "&lt;b&gt;",
    "image",
    "=1+1",
]


@pytest.fixture(scope="session")
def nasty():
    """A run whose parameters, labels and settings have such names."""

    def energy(x):
        return sum(jnp.sum(leaf**2) for leaf in x.values()) / 2

    energy.__qualname__ = NASTY[0]
    kernel = cm.csgld(0.1, cm.Partition(low=3.0, width=1.0, bins=20))
    run = cm.sample(energy, init=dict.fromkeys(NASTY, 0.0), steps=3000, kernel=kernel)
    return replace(run, settings=run.settings | {NASTY[1]: NASTY[3]}, average=Shown())


class Shown:
    """A model average of a class of the user's own."""

    def __repr__(self):
        return NASTY[1]
