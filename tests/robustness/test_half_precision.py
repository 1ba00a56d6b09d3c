"""Positions of half precision are sampled as float32: in 8 or 11 bits, steps and noise would be rounded away."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

HALF = {"low": jnp.full(2, 0.3, jnp.bfloat16), "half": np.float16(0.3), "single": jnp.float32(0.3)}
RUN = dict(steps=2000, kernel=cm.sghmc(0.003))


def energy(position):
    return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position)) / 2


def test_draws_are_those_of_the_same_start_in_float32():
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), HALF)
    draws, expected = (cm.sample(energy, init=init, **RUN).draws for init in (HALF, single))
    jax.tree.map(np.testing.assert_array_equal, draws, expected)
    assert {leaf.dtype for leaf in jax.tree.leaves(draws)} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("target", "given"),
    [
        (energy, dict(init=lambda key: HALF)),
        (energy, dict(init=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (4, *jnp.shape(leaf))), HALF))),
        (cm.transformed(energy, {"half": cm.positive}), dict(init=HALF)),
    ],
    ids=["a function", "a start for each chain", "with constraints"],
)
def test_whatever_the_start_is_given_as(target, given):
    with cm.start(target, **given, **RUN, per_chain_init=not callable(given["init"]) and target is energy) as run:
        assert {leaf.dtype for leaf in jax.tree.leaves(run.positions)} == {np.dtype(np.float32)}


def test_double_precision_stays_and_half_becomes_single(double_precision):
    with cm.start(energy, init=HALF | {"double": 0.3}, **RUN) as run:
        kinds = {name: str(leaf.dtype) for name, leaf in run.positions.items()}
    assert kinds == {"low": "float32", "half": "float32", "single": "float32", "double": "float64"}
