"""Likelihoods and priors against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import contourmc as cm

X = jnp.asarray(np.random.default_rng(1).normal(size=(7, 3)), jnp.float32)
W = jnp.asarray(np.random.default_rng(2).normal(size=(3, 4)), jnp.float32)
Y = np.linspace(-1, 1, 7)
LABELS = np.array([0, 1, 2, 3, 3, 0, 1])


def linear(w, x):
    return x @ w


@pytest.mark.parametrize("shape", [(7,), (7, 1)])
def test_gaussian(shape):
    """A column of means or of targets counts as a vector, and is not broadcast against one."""
    likelihood = cm.GaussianLikelihood(lambda w, x: jnp.reshape(x @ w[:, 0], shape), noise=0.3)
    expected = stats.norm(X @ W[:, 0], 0.3).logpdf(Y)
    for targets in (Y, Y[:, None]):
        np.testing.assert_allclose(likelihood(W, (X, jnp.asarray(targets))), expected, rtol=1e-4)
    mean, variance = likelihood.predict(W, X)
    np.testing.assert_allclose(mean, X @ W[:, 0], rtol=1e-6)
    np.testing.assert_allclose(variance, 0.09, rtol=1e-6)


def test_heteroscedastic():
    likelihood = cm.HeteroscedasticLikelihood(lambda w, x: x @ w[:, :2])
    outputs = np.asarray(X @ W)
    expected = stats.norm(outputs[:, 0], np.exp(outputs[:, 1] / 2)).logpdf(Y)
    np.testing.assert_allclose(likelihood(W, (X, jnp.asarray(Y))), expected, rtol=1e-4)


def test_categorical():
    likelihood = cm.CategoricalLikelihood(linear, classes=4)
    expected = special.log_softmax(np.asarray(X @ W), axis=1)[np.arange(7), LABELS]
    np.testing.assert_allclose(likelihood(W, (X, jnp.asarray(LABELS))), expected, rtol=1e-4)


def test_a_prior_gives_each_group_its_precision():
    params = {"layer": {"weight": jnp.array([1.0, 2.0]), "bias": jnp.array([3.0])}, "bias_scale": jnp.float32(4.0)}
    assert cm.GaussianPrior(2.0)(params) == -(1 + 4 + 9 + 16)
    prior = cm.GaussianPrior(2.0, {"bias": 0.0, "layer": 4.0})
    assert prior(params) == -0.5 * (4 * (1 + 4) + 0 + 2 * 16)  # bias_scale is no bias; the first name that fits counts
    assert hash(prior) == hash(cm.GaussianPrior(2.0, {"bias": 0.0, "layer": 4.0}))
    np.testing.assert_allclose(jax.grad(prior)(params)["layer"]["weight"], [-4, -8])


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cm.GaussianLikelihood(linear, noise=0.0), "^noise=0.0"),
        (lambda: cm.CategoricalLikelihood(linear, classes=1), "^classes=1"),
        (lambda: cm.GaussianPrior(-1.0), "^precision=-1.0"),
        (lambda: cm.GaussianPrior(1.0, {"bias": float("nan")}), r"^groups\['bias'\]=nan"),
        (lambda: cm.CategoricalLikelihood(linear, classes=5)(W, (X, LABELS)), r"^apply=.*5 classes"),
        (lambda: cm.HeteroscedasticLikelihood(linear).predict(W, X), "^apply=.*log variance"),
        (lambda: cm.GaussianLikelihood(linear)(W, (X, jnp.asarray(Y))), "^apply=.*7 targets"),
    ],
)
def test_bad_settings_and_models_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.array([0, 1, 2, 4, 3, 0, 1]), r"^data\[1\]=\[4\].*0 … 3, but 1 are not"),
        (np.array([0, 1, 2, -1, 3, 0, 1]), r"^data\[1\]=\[-1\]"),
        (LABELS.astype(float), r"^data\[1\]=.*whole numbers"),
        (np.eye(7, dtype=int), r"^data\[1\]=.*vector"),
    ],
)
def test_labels_out_of_range_are_found(labels, words):
    with pytest.raises(ValueError, match=words):
        cm.Posterior(cm.CategoricalLikelihood(linear, classes=4), cm.GaussianPrior(1.0), (X, labels), batch_size=2)
