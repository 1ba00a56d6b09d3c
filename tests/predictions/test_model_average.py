"""Model averages: streaming and kept agree, both with the formulas in float64."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import contourmc as cm
from contourmc._core.info import Info
from contourmc.draws.estimates import normalise

RANDOM = np.random.default_rng(0)
X, X_TEST = RANDOM.normal(size=(60, 2)), RANDOM.normal(size=(25, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * RANDOM.normal(size=60)
Y_TEST = np.sin(2 * X_TEST[:, 0]) + 0.2 * RANDOM.normal(size=25)
LABELS, LABELS_TEST = (np.digitize(x[:, 0] + x[:, 1], [-0.7, 0.7]) for x in (X, X_TEST))


def init(key):
    first, second = jax.random.split(key)
    return {"in": jax.random.normal(first, (2, 8)), "out": 0.5 * jax.random.normal(second, (8, 3))}


def network(params, x):
    return jnp.tanh(x @ params["in"]) @ params["out"]


def one_output(params, x):
    return network(params, x)[:, 0]


REGRESSION = cm.GaussianLikelihood(one_output, noise=0.3)
CLASSIFICATION = cm.CategoricalLikelihood(network, classes=3)
PARTITION = cm.Partition(low=0.0, width=5.0, bins=40)
THETA = np.exp(-0.3 * np.arange(40)) / np.exp(-0.3 * np.arange(40)).sum()  # known, so that weights differ at once


def run(likelihood, targets, **settings):
    posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (X, targets), batch_size=20)
    kernel = cm.ksgld(5e-4, PARTITION, THETA)
    return cm.sample(posterior, init=init, steps=3000, kernel=kernel, chains=3, thin=50, **settings)


def regression_average(**settings):
    return cm.RegressionAverage(REGRESSION.predict, X_TEST, Y_TEST, **settings)


def classification_average(**settings):
    return cm.ClassificationAverage(CLASSIFICATION.predict, X_TEST, LABELS_TEST, **(dict(classes=3) | settings))


@pytest.fixture(scope="module")
def regression_run():
    return run(REGRESSION, Y, average=regression_average())


@pytest.fixture(scope="module")
def classification_run():
    return run(CLASSIFICATION, LABELS, average=classification_average())


def outputs(result):
    return np.asarray(jax.vmap(jax.vmap(lambda params: network(params, jnp.asarray(X_TEST))))(result.draws), float)


def close(a, b, tolerance=1e-5):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_regression_streaming_and_kept_agree_with_the_formulas(regression_run):
    assert np.ptp(regression_run.log_weights) > 2  # the weights matter
    means, weights = outputs(regression_run)[..., 0], regression_run.weights
    mean = np.einsum("cd,cdn->n", weights, means)
    variance = 0.09 + np.einsum("cd,cdn->n", weights, (means - mean) ** 2)
    density = np.einsum("cd,cdn->n", weights, stats.norm(means, 0.3).pdf(Y_TEST))
    below = np.einsum("cd,cdn->n", weights, stats.norm(means, 0.3).cdf(Y_TEST))
    errors = np.sqrt(np.mean((means - Y_TEST) ** 2, axis=2))
    for found in (regression_run.average, regression_average().over(regression_run)):
        close(found.mean, mean)
        close(found.variance, variance)
        close(found.rmse, np.sqrt(np.mean((mean - Y_TEST) ** 2)))
        close(found.nll, -np.mean(np.log(density)))
        close(found.coverage(0.8), np.mean(np.abs(below - 0.5) < 0.4))
        close(found.interval(0.9)[1], mean + 1.6448536 * np.sqrt(variance))
        close(found.points.best_error, errors.min(axis=1))
        close(found.points.last_error, errors[:, -1])
        kish = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)
        np.testing.assert_allclose(found.effective_models, kish, rtol=1e-4)
        assert found.models == regression_run.energies.shape[1]
        assert f"worth at least {kish.min():.1f}" in repr(found)


def test_classification_streaming_and_kept_agree_with_the_formulas(classification_run):
    models, weights = special.softmax(outputs(classification_run), axis=-1), classification_run.weights
    probabilities = np.einsum("cd,cdnk->nk", weights, models)
    entropies = np.einsum("cd,cdn->n", weights, stats.entropy(models, axis=-1))
    errors = np.mean(models.argmax(axis=-1) != LABELS_TEST, axis=2)
    of_labels = probabilities[np.arange(25), LABELS_TEST]
    truth = np.eye(3)[LABELS_TEST]
    for found in (classification_run.average, classification_average().over(classification_run)):
        close(found.probabilities, probabilities)
        close(found.accuracy, np.mean(probabilities.argmax(axis=1) == LABELS_TEST))
        close(found.nll, -np.mean(np.log(of_labels)))
        close(found.brier, np.mean(np.sum((probabilities - truth) ** 2, axis=1)))
        close(found.entropy, stats.entropy(probabilities, axis=1))
        close(found.mutual_information, stats.entropy(probabilities, axis=1) - entropies)
        assert np.all(found.mutual_information > 0)
        close(found.points.best_error, errors.min(axis=1))
        close(found.points.last_error, errors[:, -1])
        confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == LABELS_TEST
        bins = np.floor(confidence * 15)
        gaps = [abs(np.sum(confidence[bins == b] - right[bins == b])) for b in np.unique(bins)]
        close(found.calibration_error(), sum(gaps) / 25)


def test_a_chain_alone(regression_run):
    means = outputs(regression_run)[1, :, :, 0]
    close(regression_run.average.chain(1).mean, normalise(regression_run.log_weights[1]) @ means)


def test_chains_count_by_their_weights_only_if_these_can_be_compared(regression_run):
    """θ is known here, and one for all. Chains that each learnt one count alike."""
    assert np.ptp(regression_run.average.shares) > 0.01
    close(regression_run.average.shares, regression_run.weights.sum(axis=1))
    learnt = replace(regression_run, flattening=replace(regression_run.flattening, fixed=False))
    found, means = regression_average().over(learnt), outputs(regression_run)[..., 0]
    close(found.shares, 1 / 3)
    mean = np.einsum("cd,cdn->n", normalise(learnt.log_weights) / 3, means)
    close(found.mean, mean)
    close(found.variance, 0.09 + np.einsum("cd,cdn->n", learnt.weights, (means - mean) ** 2))


def test_the_average_is_in_the_file(regression_run, classification_run, tmp_path):
    for run in (regression_run, classification_run, replace(regression_run, average=[regression_run.average] * 2)):
        loaded = cm.Samples.load(run.save(tmp_path / "run.nc")).average
        assert repr(loaded) == repr(run.average)
        one, other = (average[1] if isinstance(average, list) else average for average in (loaded, run.average))
        assert type(one) is type(other)
        assert one.truth.dtype == other.truth.dtype
        jax.tree.map(np.testing.assert_array_equal, vars(one), vars(other))
    assert cm.Samples.load(replace(run, average=None).save(tmp_path / "run.nc")).average is None


def test_positions_need_not_be_stored(regression_run, tmp_path):
    streamed = run(REGRESSION, Y, average=regression_average(), store=False)
    assert streamed.draws is None
    close(streamed.average.mean, regression_run.average.mean)
    close(streamed.mean()["in"], regression_run.mean()["in"])  # from sums over every step
    assert "average" not in str(streamed.settings)
    with pytest.raises(ValueError, match="store=True"):
        streamed.expectation(lambda params: params["in"])
    str(streamed.diagnose())
    again = cm.Samples.load(streamed.save(tmp_path / "run.nc"))
    assert again.draws is None
    close(again.mean()["in"], streamed.mean()["in"])


def test_the_average_does_not_change_the_run(regression_run):
    plain = run(REGRESSION, Y)
    np.testing.assert_array_equal(plain.draws["in"], regression_run.draws["in"])
    assert plain.average is None


@pytest.mark.parametrize("chunk", [5, 7])
def test_inputs_in_pieces_make_no_difference(chunk, regression_run, classification_run):
    """25 test inputs: without and with a remainder."""
    found = regression_average(chunk=chunk).over(regression_run)
    jax.tree.map(close, found.means, regression_run.average.means)
    found = classification_average(chunk=chunk).over(classification_run)
    jax.tree.map(close, found.means, classification_run.average.means)


def test_a_piece_is_what_the_model_gets_to_see():
    seen = []

    def predict(params, x):
        seen.append(x.shape)
        return one_output(params, x), jnp.ones(len(x))

    average = cm.RegressionAverage(predict, X_TEST, Y_TEST, chunk=10)
    info = Info(jnp.float32(0), jnp.int32(0), jnp.float32(1), jnp.float32(0))
    average.add(average.init(), info, init(jax.random.key(0)), None)
    assert set(seen) == {(10, 2), (5, 2)}


def test_a_divergence_during_burn_in_is_not_hidden_by_an_empty_average():
    posterior = cm.Posterior(REGRESSION, cm.GaussianPrior(1.0), (X, Y), batch_size=20)
    with pytest.raises(cm.DivergenceError) as caught:
        cm.sample(posterior, init=init, steps=1000, kernel=cm.sgld(10.0), average=regression_average())
    assert caught.value.samples.average is None


def test_weights_of_any_size_and_their_tempering():
    """Log weights of ±10⁶: one draw carries all, and it is told; equal weights on demand."""

    def predict(params, x):
        return jnp.full(3, params), jnp.ones(3)

    targets = np.zeros(3)
    for tempering, mean, effective in ((1.0, 3.0, 1.0), (0.0, 2.0, 3.0)):
        average = cm.RegressionAverage(predict, np.zeros((3, 1)), targets, tempering)
        sums = average.init()
        for value, log_weight in ((1.0, -1e6), (3.0, 1e6), (2.0, 0.0)):
            info = Info(jnp.float32(0), jnp.int32(0), jnp.float32(1), jnp.float32(log_weight))
            sums = average.add(sums, info, jnp.float32(value), None)
        found = average.finish(jax.tree.map(lambda leaf: leaf[None], sums))
        close(found.mean, mean)
        close(found.effective_models, effective)
        assert np.isfinite(found.nll)


def test_a_variance_that_is_not_positive_is_named():
    """At the start before anything is sampled; later without losing the run, by everything that needs variances."""

    def negative_below_zero(params, x):
        return jnp.full(3, params), jnp.stack([params, 1.0 + 0 * params, params])

    average = cm.RegressionAverage(negative_below_zero, np.zeros((3, 1)), np.zeros(3), 1.0)
    with pytest.raises(ValueError, match=r"^predict=.*variance that is not above 0, at 2 of 3 inputs.*softplus"):
        cm.sample(lambda x: x**2, init=-1.0, steps=10, kernel=cm.sgld(0.1), average=average)
    sums = average.init()
    for value in (1.0, -1.0, 2.0):
        info = Info(jnp.float32(0), jnp.int32(0), jnp.float32(1), jnp.float32(0))
        sums = average.add(sums, info, jnp.float32(value), None)
    with pytest.warns(UserWarning, match="`predict` gave variances that are not above 0, at 2 of 3 inputs"):
        found = average.of_one_chain(sums)
    close(found.mean, 2 / 3)
    assert "nll" not in repr(found)
    assert len(found.exhibits()) == 1
    for read in (lambda: found.nll, lambda: found.variance, found.interval, found.coverage):
        with pytest.raises(ValueError, match="`predict` gave variances"):
            read()


def test_predictions_from_a_state():
    def log_likelihood(params, state, batch):
        return REGRESSION(params, batch), state + 1

    def predict(params, state, x):
        return jnp.full(len(x), state), jnp.ones(len(x))

    posterior = cm.Posterior(log_likelihood, cm.GaussianPrior(1.0), (X, Y), batch_size=20, state=jnp.float32(0))
    average = cm.RegressionAverage(predict, X_TEST, Y_TEST)
    settings = dict(init=init, steps=40, kernel=cm.sgld(1e-4), chains=2, thin=10, burn_in=0, average=average)
    result = cm.sample(posterior, **settings)
    close(result.average.mean, np.mean([10, 20, 30, 40]))
    close(average.over(result).mean, 25)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cm.RegressionAverage(REGRESSION.predict, X_TEST, Y_TEST[1:]), "^inputs=.*24 targets"),
        (lambda: regression_average(tempering=1.5), "^tempering=1.5"),
        (lambda: regression_average(chunk=0), "^chunk=0.*None"),
        (lambda: regression_average(chunk=2.5), "^chunk=2.5"),
        (lambda: classification_average(classes=2), "^targets=.*0 … 1"),
        (
            lambda: run(REGRESSION, Y, average=cm.RegressionAverage(network_pair, X_TEST, Y_TEST)),
            "^predict=.*25 targets",
        ),
        (lambda: run(CLASSIFICATION, LABELS, average=four_classes()), "^predict=.*4 classes"),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def network_pair(params, x):
    return network(params, x), jnp.ones(25)


def four_classes():
    return cm.ClassificationAverage(CLASSIFICATION.predict, X_TEST, LABELS_TEST, classes=4)
