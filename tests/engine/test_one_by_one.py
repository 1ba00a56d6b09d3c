"""Chains of a network with convolutions are evaluated one after the other, and do not depend on how many there are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.engine.one_by_one import one_by_one

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(40, 6, 6, 1)).astype(np.float32)
LABELS = RANDOM.integers(0, 3, 40)


def apply(params, images):
    dimensions = ("NHWC", "HWIO", "NHWC")
    features = jax.lax.conv_general_dilated(images, params["kernel"], (1, 1), "SAME", dimension_numbers=dimensions)
    return jax.nn.relu(features).mean((1, 2)) @ params["output"]


def init(key):
    first, second = jax.random.split(key)
    return {"kernel": jax.random.normal(first, (3, 3, 1, 4)), "output": jax.random.normal(second, (4, 3))}


LIKELIHOOD = cm.CategoricalLikelihood(apply, 3)


def sampled(chains: int) -> cm.Samples:
    posterior = cm.Posterior(LIKELIHOOD, cm.GaussianPrior(1.0), (IMAGES, LABELS), batch_size=10)
    average = cm.ClassificationAverage(LIKELIHOOD.predict, IMAGES, LABELS, classes=3)
    return cm.sample(posterior, init=init, steps=20, kernel=cm.sghmc(1e-4), chains=chains, thin=5, average=average)


def test_a_chain_is_the_same_alone_and_among_others():
    alone, among = sampled(1), sampled(3)
    np.testing.assert_array_equal(alone.positions["kernel"][0], among.positions["kernel"][0])
    for name, values in alone.average.means.items():
        np.testing.assert_array_equal(values[0], among.average.means[name][0])
    assert not np.array_equal(among.positions["kernel"][0], among.positions["kernel"][1])


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_mapped_arguments_and_others(monkeypatch, backend):
    """By a loop in Python and by a compiled one, which is for other devices than a CPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    prior = cm.GaussianPrior(2.0)
    mapped = one_by_one(cm.Posterior(LIKELIHOOD, prior, (IMAGES, LABELS), batch_size=40), "energy")
    positions = jax.vmap(init)(jax.random.split(jax.random.key(0), 3))
    expected = [
        cm.Posterior(LIKELIHOOD, prior, (IMAGES, LABELS), batch_size=40).energy(_one(positions, i)) for i in range(3)
    ]
    np.testing.assert_allclose(jax.vmap(mapped)(positions), jnp.stack(expected), rtol=1e-5)


def _one(positions, i):
    return jax.tree.map(lambda leaf: leaf[i], positions)
