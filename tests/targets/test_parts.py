"""A batch evaluated in parts gives what it gives as a whole; on several devices: tests/engine/test_layouts.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

ROWS, BATCH = 60, 12
DATA = np.random.default_rng(0).normal(size=(ROWS, 2)).astype(np.float32)
POSITION = jnp.array([0.3, -0.2])


def log_likelihood(x, batch):
    return -0.5 * jnp.sum((batch - x) ** 2, axis=1)


def with_state(x, state, batch):
    mean, count = state
    return log_likelihood(x, batch), (0.5 * mean + 0.5 * batch.mean(axis=0), count + 1)


def log_prior(x):
    return -0.5 * jnp.sum(x**2)


def posterior(likelihood=log_likelihood, **options):
    return cm.Posterior(likelihood, log_prior, DATA, BATCH, **options)


def evaluated(target):
    steps = jnp.arange(1, 2, dtype=jnp.int32)
    inputs = jax.tree.map(lambda leaf: leaf[0], target.prepare(jax.random.key(3), POSITION, steps))
    return target.evaluate_from(inputs, POSITION, target.init())


@pytest.mark.parametrize("parts", [2, 3, 12])
def test_energies_and_gradients_of_parts_add_up(parts):
    energy, gradient, _ = evaluated(posterior())
    in_parts = evaluated(posterior(batch_parts=parts))
    np.testing.assert_allclose(in_parts[0], energy, rtol=1e-6)
    np.testing.assert_allclose(in_parts[1], gradient, rtol=1e-5)


def test_augmentation_sees_the_whole_batch():
    def augment(key, batch):
        return batch + jax.random.normal(key, batch.shape)

    energy, gradient, _ = evaluated(posterior(augment=augment))
    in_parts = evaluated(posterior(augment=augment, batch_parts=3))
    np.testing.assert_allclose(in_parts[0], energy, rtol=1e-6)
    np.testing.assert_allclose(in_parts[1], gradient, rtol=1e-5)


def test_the_state_is_the_mean_over_parts_and_counts_stay():
    state = (np.ones(2, np.float32), np.int32(0))
    *_, (mean, count) = evaluated(posterior(with_state, state=state))
    *_, (mean_in_parts, count_in_parts) = evaluated(posterior(with_state, state=state, batch_parts=4))
    np.testing.assert_allclose(mean_in_parts, mean, rtol=1e-5)
    assert int(count) == int(count_in_parts) == 1


def test_a_run_in_parts_follows_the_same_path():
    options = dict(init=np.zeros(2, np.float32), steps=200, kernel=cm.sgld(1e-3), chains=2, thin=10)
    whole, in_parts = (cm.sample(posterior(batch_parts=parts), **options) for parts in (1, 3))
    np.testing.assert_allclose(in_parts.positions, whole.positions, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(batch_parts=5), "batch_parts=5 is not possible: a batch of 12 cannot be divided"),
        (dict(batch_parts=0), "batch_parts=0 is not possible"),
        (dict(batch_parts=2, snapshot_epochs=1), "snapshots need batches in one part"),
    ],
)
def test_impossible_parts(options, message):
    with pytest.raises(ValueError, match=message):
        posterior(**options)
    with pytest.raises(ValueError, match="batch_parts=7"):
        cm.StreamedPosterior(log_likelihood, log_prior, [DATA[:BATCH]], ROWS, batch_parts=7)
