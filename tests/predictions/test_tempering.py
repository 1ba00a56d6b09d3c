"""Weights that leave a stated share of the models; and averages without targets."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core.info import Info
from contourmc.draws.estimates import kish, normalise
from contourmc.predictions.tempering import POWERS

RANDOM = np.random.default_rng(0)
X = jnp.linspace(-1, 1, 5)
ONES = np.ones(5)


def predict(params, x):
    return params * x, jnp.full(x.shape, 0.25)


def logits(params, x):
    return jnp.stack([params * x, -params * x], axis=1)


def after(average, values, log_weights, comparable=False):
    """The result of an average over draws with these values and log weights, of shape (chains, draws)."""

    def one_chain(values, log_weights):
        def body(sums, draw):
            nothing = jnp.zeros(())
            info = Info(nothing, jnp.zeros((), jnp.int32), nothing, draw[1])
            return average.add(sums, info, draw[0], None), None

        return jax.lax.scan(body, average.init(), (values, log_weights))[0]

    sums = jax.jit(jax.vmap(one_chain))(jnp.asarray(values, jnp.float32), jnp.asarray(log_weights, jnp.float32))
    return average.finish(sums, comparable)


VALUES = RANDOM.normal(size=(2, 60))
SHAPE = RANDOM.normal(size=(2, 60)).cumsum(axis=1)


@pytest.mark.parametrize("comparable", [False, True])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e7])
@pytest.mark.parametrize("effective", [0.2, 0.5, 0.9])
def test_the_power_is_the_largest_at_which_enough_models_count(scale, effective, comparable):
    """Against all powers in float64. Rounding of log weights of 10⁷ in float32 is far below 1% of the mean."""
    log_weights = (scale * SHAPE).astype(np.float32).astype(float)

    def weights_at(power):
        weights = normalise(np.ravel(power * log_weights)) if comparable else np.ravel(normalise(power * log_weights))
        return weights / weights.sum()

    enough = [power for power in POWERS if kish(weights_at(power)) >= effective * log_weights.size]
    found = after(cm.RegressionAverage(predict, X, ONES, effective=effective), VALUES, log_weights, comparable)
    assert found.tempering == max(enough)
    assert found.effective_share >= effective - 1e-4
    assert found.effective_share == pytest.approx(kish(weights_at(found.tempering)) / log_weights.size, rel=1e-3)
    np.testing.assert_allclose(found.mean, (weights_at(found.tempering) @ np.ravel(VALUES)) * np.asarray(X), atol=2e-3)
    same = after(cm.RegressionAverage(predict, X, ONES, found.tempering), VALUES, log_weights, comparable)
    for name, values in same.means.items():
        np.testing.assert_allclose(found.means[name], values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.shares, same.shares, rtol=1e-5)


def test_equal_weights_are_left_alone_and_all_models_can_be_asked_for():
    found = after(cm.RegressionAverage(predict, X, ONES, effective=1.0), VALUES, np.zeros((2, 60)))
    assert found.tempering == 1
    found = after(cm.RegressionAverage(predict, X, ONES, effective=1.0), VALUES, 1e6 * SHAPE)
    assert found.tempering == 0
    assert "power of 0)" in repr(found)


def contour_run(zeta, **settings):
    """A slope of two signs: y = |a|·x, so that a has two modes."""
    x = jnp.linspace(-1, 1, 40)
    y = x + 0.5 * jnp.asarray(np.random.default_rng(1).normal(size=40), jnp.float32)
    likelihood = cm.GaussianLikelihood(lambda a, x: jnp.abs(a) * x, noise=0.5)
    posterior = cm.Posterior(likelihood, cm.GaussianPrior(0.1), (x, y), batch_size=40)
    kernel = cm.csgld(0.003, cm.Partition(low=25.0, width=1.0, bins=20), temperature=1.0, zeta=zeta, rule="scalable")
    return cm.sample(posterior, init=1.0, steps=4000, kernel=kernel, chains=2, **settings), likelihood


TEMPERED = r"weights of the .* models .* tempered.*effective=0.5.*tempering=1"


def test_without_settings_at_least_half_of_the_models_count_and_it_is_said():
    x = np.linspace(-1, 1, 8)
    average = cm.RegressionAverage(lambda a, x: (jnp.abs(a) * x, jnp.full(x.shape, 0.25)), x, x)
    with pytest.warns(UserWarning, match=TEMPERED):
        run, _ = contour_run(1e3, average=average)
    with pytest.warns(UserWarning, match=TEMPERED):
        same = average.over(run)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = cm.RegressionAverage(average.predict, x, x, effective=0.5).over(run)
        as_they_are = cm.RegressionAverage(average.predict, x, x, 1.0).over(run)
    assert as_they_are.tempering == 1
    assert as_they_are.effective_share < 0.05  # a few of 200 draws have all the weight
    for found in (run.average, same):
        assert 0.5 <= found.effective_share < 1
        assert found.tempering == asked.tempering < 1
        assert f"power of {found.tempering:.2g})" in repr(found)
        np.testing.assert_allclose(found.mean, asked.mean, rtol=1e-5)
    (table, *_) = run.average.exhibits()
    assert ("power of the weights", run.average.tempering) in table.rows


def test_a_loop_of_ones_own_gets_the_same_average():
    """As with Optax: the draws of a single chain, added one by one."""
    average, sums, zero = cm.RegressionAverage(predict, X), None, jnp.zeros(())
    for value, log_weight in ((1.0, -1e6), (3.0, 1e6), (2.0, 0.0)):
        info = Info(zero, jnp.zeros((), jnp.int32), zero, jnp.float32(log_weight))
        sums = average.add(average.init() if sums is None else sums, info, jnp.float32(value), None)
    with pytest.warns(UserWarning, match="the 3 models.*" + TEMPERED[24:]):
        found = average.of_one_chain(sums)
    weights = normalise(found.tempering * np.array([-1e6, 1e6, 0.0]))
    assert 1.5 <= kish(weights) < 3
    np.testing.assert_allclose(found.mean, weights @ [1.0, 3.0, 2.0] * np.asarray(X), rtol=1e-4, atol=1e-6)


def test_without_targets_there_are_predictions_but_no_accuracy(tmp_path):
    x = np.linspace(-1, 1, 8)
    run, likelihood = contour_run(1.0, thin=36)
    average = cm.RegressionAverage(likelihood.predict, x, effective=0.5)
    known = cm.RegressionAverage(likelihood.predict, x, x, effective=0.5).over(run)
    found = average.over(run)
    np.testing.assert_array_equal(found.mean, known.mean)
    np.testing.assert_array_equal(found.variance, known.variance)
    assert "8 inputs without targets" in repr(found)
    for figure in (lambda: found.rmse, lambda: found.nll, lambda: found.coverage(0.9)):
        with pytest.raises(ValueError, match=r"^targets=None.*give them to the average"):
            figure()
    others = average.over(run, x[:3] + 0.1)
    assert others.mean.shape == (3,)
    assert average.over(run, x[:3], x[:3]).rmse == pytest.approx(np.sqrt(np.mean((known.mean[:3] - x[:3]) ** 2)))
    with pytest.raises(ValueError, match=r"^targets=.*new inputs"):
        average.over(run, targets=x)
    streamed, _ = contour_run(1.0, average=average, store=False, thin=36)
    np.testing.assert_allclose(streamed.average.mean, found.mean, rtol=1e-4, atol=1e-5)
    loaded = cm.Samples.load(streamed.save(tmp_path / "run.nc")).average
    assert loaded.truth is None
    assert loaded.tempering == streamed.average.tempering


def test_classes_without_targets():
    average = cm.ClassificationAverage(logits, X, classes=2)
    found = after(average, VALUES, np.zeros((2, 60)))
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-5)
    assert found.mutual_information.shape == (5,)
    for figure in (lambda: found.accuracy, lambda: found.nll, lambda: found.brier, found.calibration_error):
        with pytest.raises(ValueError, match=r"^targets=None"):
            figure()


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(effective=0.0), "^effective=0.0"),
        (dict(effective=1.5), "^effective=1.5"),
        (dict(effective=0.5, tempering=0.1), "^tempering=0.1.*leave one"),
    ],
)
def test_bad_shares_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        cm.RegressionAverage(predict, X, ONES, **settings)
