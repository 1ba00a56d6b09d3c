"""Likelihoods with a random key, as of dropout, and with a state, as of batch norm; in Linen and in NNX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.targets.base import first_step

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 2))
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)
W = jnp.array([[1.0, -1.0], [0.5, 2.0]])
PRIOR = cm.GaussianPrior(1.0)


def dropped(w, x, key):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 2 * x, 0) @ w


def whole(w, x):
    return x @ w


DROPOUT = cm.CategoricalLikelihood(dropped, classes=2, evaluate=whole)


def posterior(likelihood=DROPOUT, **settings):
    return cm.Posterior(likelihood, PRIOR, (X, LABELS), **(dict(batch_size=50) | settings))


def sampled(target, **settings):
    settings = dict(init=W, steps=60, kernel=cm.sgld(1e-4), chains=3, burn_in=0, thin=1) | settings
    return np.asarray(cm.sample(target, **settings).draws)


def test_the_key_depends_on_seed_chain_and_step_alone():
    whole_run = sampled(posterior())
    np.testing.assert_array_equal(sampled(posterior()), whole_run)
    np.testing.assert_allclose(sampled(posterior(), chains=2), whole_run[:2], rtol=1e-5)
    assert not np.allclose(sampled(posterior(), seed=1), whole_run)
    settings = dict(init=W, steps=60, kernel=cm.sgld(1e-4), chains=3, burn_in=0, thin=1)
    run = cm.start(posterior(), **settings)
    for steps in (1, 7, 20, 32):
        run.advance(steps)
    np.testing.assert_array_equal(np.asarray(run.samples().draws), whole_run)


def test_every_step_and_chain_has_its_own_key():
    """A likelihood that shows its key: the energy is a uniform number."""

    def log_likelihood(x, batch, key):
        return jnp.full(len(batch), jax.random.uniform(key)) + 0 * x

    target = cm.Posterior(log_likelihood, lambda x: 0.0 * x, jnp.zeros(10), batch_size=10)
    assert not target.exact
    run = cm.sample(target, init=0.0, steps=50, kernel=cm.sgld(1e-3), chains=4, burn_in=0, thin=1)
    assert len(np.unique(run.energies)) == 200
    assert -10 < run.energies.min() < -9
    assert -1 < run.energies.max() < 0


def test_the_augmentation_and_the_likelihood_have_different_keys():
    seen = []

    def augment(key, batch):
        seen.append(jax.random.key_data(key))
        return batch

    def log_likelihood(x, batch, key):
        seen.append(jax.random.key_data(key))
        return 0 * x + jnp.zeros(len(batch))

    target = cm.Posterior(log_likelihood, lambda x: 0.0 * x, jnp.zeros(10), batch_size=5, augment=augment)
    inputs, _ = first_step(target, jnp.zeros(()))
    with jax.disable_jit():
        target.evaluate(inputs, jnp.zeros(()))
    assert not np.array_equal(seen[0], seen[1])


def test_what_does_not_ask_for_a_key_is_evaluated_as_before():
    def log_likelihood(w, batch):
        return cm.CategoricalLikelihood(whole, classes=2)(w, batch)

    def ignoring(w, batch, key):
        return log_likelihood(w, batch)

    np.testing.assert_allclose(sampled(posterior(ignoring)), sampled(posterior(log_likelihood)), rtol=1e-5)
    assert posterior(log_likelihood, batch_size=200).exact
    assert not posterior(ignoring, batch_size=200).exact


def test_parts_of_a_batch_have_their_own_keys():
    def log_likelihood(x, batch, key):
        return jnp.full(len(batch), jax.random.uniform(key)) + 0 * x

    target = cm.Posterior(log_likelihood, lambda x: 0.0 * x, jnp.zeros(10), batch_size=10, batch_parts=2)
    inputs, _ = first_step(target, jnp.zeros(()))
    energies = [target.evaluate_part(inputs, jnp.int32(part), jnp.zeros(()), None)[0] for part in (0, 1)]
    assert energies[0] != energies[1]


def batch_norm_of_nnx():
    nnx = pytest.importorskip("flax.nnx")

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.hidden, self.output = nnx.Linear(2, 16, rngs=rngs), nnx.Linear(16, 2, rngs=rngs)
            self.norm = nnx.BatchNorm(16, momentum=0.9, rngs=rngs)

        def __call__(self, x, train):
            return self.output(jnp.tanh(self.norm(self.hidden(x), use_running_average=not train)))

    graph, params, statistics = nnx.split(Network(nnx.Rngs(0)), nnx.Param, nnx.BatchStat)

    def apply(params, statistics, x):
        network = nnx.merge(graph, params, statistics)
        return network(x, True), nnx.state(network, nnx.BatchStat)

    def evaluate(params, statistics, x):
        return nnx.merge(graph, params, statistics)(x, False)

    return apply, evaluate, params, statistics


def dropout_and_batch_norm_of_linen():
    nn = pytest.importorskip("flax.linen")

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = jnp.tanh(nn.BatchNorm(use_running_average=not train, momentum=0.9)(nn.Dense(32)(x)))
            return nn.Dense(2)(nn.Dropout(0.1)(x, deterministic=not train))

    network = Network()
    variables = network.init(jax.random.key(0), jnp.zeros((1, 2)), train=False)

    def apply(params, statistics, x, key):
        given = {"params": params, "batch_stats": statistics}
        outputs, new = network.apply(given, x, True, mutable=["batch_stats"], rngs={"dropout": key})
        return outputs, new["batch_stats"]

    def evaluate(params, statistics, x):
        return network.apply({"params": params, "batch_stats": statistics}, x, False)

    return apply, evaluate, variables["params"], variables["batch_stats"]


@pytest.mark.parametrize("make", [batch_norm_of_nnx, dropout_and_batch_norm_of_linen])
def test_a_network_with_state(make):
    """It learns "the same sign", and the average made on the way is that over the stored draws and states."""
    apply, evaluate, params, statistics = make()
    likelihood = cm.CategoricalLikelihood(apply, classes=2, evaluate=evaluate)
    average = cm.ClassificationAverage(likelihood.predict, X, LABELS, classes=2)
    settings = dict(init=params, steps=1000, kernel=cm.sghmc(1e-3), chains=2, thin=20, average=average)
    run = cm.sample(posterior(likelihood, state=statistics), **settings)
    assert run.average.accuracy > 0.9
    np.testing.assert_allclose(average.over(run).probabilities, run.average.probabilities, atol=1e-5)


@pytest.mark.parametrize("kind", [cm.GaussianLikelihood, cm.HeteroscedasticLikelihood])
def test_regressions_take_state_and_key(kind):
    """The state counts steps; the key shifts nothing here."""
    columns = 1 if kind is cm.GaussianLikelihood else 2

    def apply(w, count, x, key):
        return (x @ w)[:, :columns] + 0 * jax.random.uniform(key), count + 1

    def evaluate(w, count, x):
        return (x @ w)[:, :columns] + 0 * count

    likelihood = kind(apply, evaluate=evaluate)
    targets = jnp.asarray(X[:, 0], jnp.float32)
    values, count = likelihood(W, jnp.float32(3), (jnp.asarray(X, jnp.float32), targets), jax.random.key(0))
    plain = kind(lambda w, x: (x @ w)[:, :columns])
    np.testing.assert_allclose(values, plain(W, (jnp.asarray(X, jnp.float32), targets)), rtol=1e-6)
    assert count == 4
    for found, expected in zip(likelihood.predict(W, jnp.float32(0), X), plain.predict(W, X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cm.CategoricalLikelihood(dropped, classes=2).predict(W, X), r"^evaluate=None.*without dropout"),
        (lambda: cm.CategoricalLikelihood(whole, classes=2).predict(W, W, X), r"^evaluate=None.*state"),
        (lambda: posterior(snapshot_epochs=1), r"^snapshot_epochs=1.*random key"),
        (
            lambda: sampled(posterior(cm.CategoricalLikelihood(lambda w, s, x: x @ w, classes=2), state=jnp.zeros(1))),
            r"^apply=.*new state",
        ),
    ],
)
def test_what_is_missing_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()
