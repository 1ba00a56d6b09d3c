"""Runs by a learning rate: what is chosen, what is said, and what is refused."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(400, 3)).astype(np.float32)
Y = (X @ np.array([1.0, -2.0, 0.5]) > 0).astype(np.int32)


def apply(params, x):
    hidden = jnp.tanh(x @ params["hidden"])
    return hidden @ params["output"]


def init(key):
    first, second = jax.random.split(key)
    return {"hidden": jax.random.normal(first, (3, 8)), "output": jax.random.normal(second, (8, 2)) / 3}


LIKELIHOOD = cm.CategoricalLikelihood(apply, classes=2)


def posterior(**settings):
    return cm.Posterior(LIKELIHOOD, cm.GaussianPrior(1.0), (X[:300], Y[:300]), batch_size=50, **settings)


def average(**settings):
    return cm.ClassificationAverage(LIKELIHOOD.predict, X[300:], Y[300:], classes=2, **settings)


sample = partial(cm.sample, init=init, progress=False)


AVERAGE = average()


@pytest.fixture(scope="module")
def run():
    return sample(posterior(), steps=3000, learning_rate=0.3, average=AVERAGE)


def test_a_network_is_trained_by_its_learning_rate_alone(run):
    """A boundary in three dimensions that a network of this size can draw: nine of ten are far above chance."""
    assert run.average.accuracy > 0.9
    assert run.chains == 1
    assert run.settings["burn_in"] == 1200
    assert run.average.effective_share >= 0.5
    assert np.all(np.abs(run.multipliers - 1) <= 0.5 + 1e-5)
    assert np.ptp(run.multipliers) > 0.1


def test_what_was_validated_is_what_is_served(run):
    """The user's object predicts by the weights that the run validated, and at new inputs too."""
    assert run.average.tempering < 1  # or this test would say nothing
    for served in (AVERAGE.over(run), AVERAGE.over(run, X[300:]), AVERAGE.over(run, X[300:], Y[300:])):
        assert served.tempering == run.average.tempering
        np.testing.assert_allclose(served.probabilities, run.average.probabilities, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(served.effective_models, run.average.effective_models, rtol=1e-4)
    assert AVERAGE.over(run).nll == pytest.approx(run.average.nll, rel=1e-4)


def test_the_kernel_is_contour_sghmc_by_the_mean_loss(run):
    kernel = run.settings["kernel"]
    assert kernel["dynamics"]["step_size"] == pytest.approx(0.3 / 300)
    assert kernel["dynamics"]["temperature"] == 0.01
    assert kernel["following"]["begin"] == 1200
    found = run.settings["following"]
    assert found["width"] >= found["noise"] / np.sqrt(19) * 0.999


def test_energies_are_those_of_the_data(run):
    """Of 300 observations at a mean loss below log 2; the prior, of precision 1, would add to that at temperature 0."""
    by_energy = sample(posterior(flatten_by="energy"), steps=3000, learning_rate=0.3)
    assert run.energies.mean() < by_energy.energies.mean() - 1
    assert run.energies.mean() < 300 * np.log(2)


def test_a_fall_of_the_energy_while_it_is_flattened_is_told(run):
    """A learning rate that falls to a hundredth after 50% and 75% of the steps, when 40% and when 80% are burn-in."""

    def steps(k):
        return 3.0 * jnp.where(k <= 1500, 1.0, jnp.where(k <= 2250, 0.1, 0.01))

    told = "fell by .* while it was flattened, so that the bins are as wide as this fall"
    early, late = (sample(posterior(), steps=3000, learning_rate=steps, burn_in=burn_in) for burn_in in (1200, 2400))
    assert re.search(told, str(early.diagnose()))
    assert not re.search(told, str(late.diagnose()))
    assert not re.search(told, str(run.diagnose()))


def test_a_cycle_gives_a_model_at_its_end():
    cycles = cm.CyclicCosine(0.5, 200)
    run = sample(posterior(), steps=1000, learning_rate=cycles, average=average())
    assert run.steps.tolist() == [400, 600, 800, 1000]
    assert run.settings["burn_in"] == 200


def test_lists_of_posteriors_states_and_several_chains():
    two = sample([posterior(), posterior()], steps=300, learning_rate=0.3, average=[average(), average()])
    assert [one.models for one in two.average] == [180, 180]

    def with_state(params, state, batch):
        return LIKELIHOOD(params, batch), state + 1

    target = cm.Posterior(
        with_state, cm.GaussianPrior(1.0), (X, Y), batch_size=50, state=jnp.zeros((), jnp.int32)
    )  # fmt: skip
    run = sample(target, steps=300, learning_rate=0.3, chains=3)
    assert run.chains == 3
    assert run.settings["kernel"]["shared"]
    assert np.ravel(run.target_states)[-1] == 300


def test_weights_that_were_asked_for_stay():
    run = sample(posterior(), steps=300, learning_rate=0.3, average=average(tempering=0.0))
    assert run.average.tempering == 0.0


def test_a_learning_rate_that_diverges_is_told_with_one_that_does_not():
    """Of a quadratic loss with curvature 1 momentum SGD is stable below 2(1 + β) = 3.8: halving 100 ends at 3.1."""

    def log_likelihood(params, batch):
        return -0.5 * (params - batch) ** 2

    data = np.zeros(100, np.float32)
    target = cm.Posterior(log_likelihood, cm.GaussianPrior(0.0), data, batch_size=10)
    with pytest.raises(cm.DivergenceError, match=r"learning_rate=100 diverged.*halving, is 3\.125: ") as caught:
        cm.sample(target, init=1.0, steps=2000, learning_rate=100.0, progress=False)
    assert caught.value.samples is not None
    with pytest.raises(cm.DivergenceError, match=r"0\.03125 times the schedule"):
        cm.sample(target, init=1.0, steps=2000, learning_rate=lambda step: 100.0 + 0 * step, progress=False)


def test_energies_that_never_change_are_told():
    target = cm.Posterior(
        lambda params, batch: jnp.zeros(10) + 0 * params, cm.GaussianPrior(0.0), np.zeros(100, np.float32), 10
    )
    run = cm.sample(target, init=1.0, steps=500, learning_rate=0.1, progress=False)
    assert np.all(run.multipliers == 1)
    assert "all energies are the same" in str(run.diagnose())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(learning_rate=-1.0), "learning_rate=-1.0 is not possible: give a number above 0"),
        (dict(kernel=cm.sgld(0.1)), "kernel=.*a learning_rate takes its place"),
        (dict(step_size=0.1), "step_size=0.1.*a learning_rate takes its place"),
        (dict(partition=cm.Partition(0.0, 1.0, 10)), "partition=.*Following"),
        (dict(steps=40), "steps=40 is not possible: the bins need 20 steps"),
        (dict(partition=cm.Following(begin=5000)), "partition=.*begins after 5000 steps"),
        (dict(temperature=-1.0), "temperature=-1.0"),
    ],
)
def test_what_is_not_possible_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        sample(posterior(), **({"steps": 1000, "learning_rate": 0.1} | settings))


def test_a_learning_rate_needs_data_and_a_temperature_a_learning_rate():
    with pytest.raises(ValueError, match=r"learning_rate=0\.1.*give a Posterior"):
        cm.sample(lambda x: x**2, init=0.0, steps=1000, learning_rate=0.1)
    with pytest.raises(ValueError, match=r"temperature=0\.1.*belongs to the kernel"):
        sample(posterior(), steps=1000, kernel=cm.sgld(1e-4), temperature=0.1)
    with pytest.raises(ValueError, match="Give a learning_rate"):
        sample(posterior(), steps=1000)


@pytest.mark.usefixtures("untyped")
def test_flattening_by_the_data_splits_energy_and_gradient():
    """Energy and gradient of the two terms add up to those of the whole."""
    position, key = init(jax.random.key(0)), jax.random.key(1)
    whole, split = posterior(flatten_by="energy"), posterior(flatten_by="data")
    inputs = jax.tree.map(lambda leaf: leaf[0], whole.prepare(key, position, jnp.arange(1, 2)))
    energy, gradient, _ = whole.evaluate_from(inputs, position, None)
    of_data, terms, _ = split.evaluate_from(inputs, position, None)
    assert float(energy) == pytest.approx(float(of_data - whole.log_prior(position)), rel=1e-5)
    for name in gradient:
        np.testing.assert_allclose(terms.flattened[name] + terms.rest[name], gradient[name], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(terms.rest[name], position[name], rtol=1e-5)
    assert not cm.Posterior(LIKELIHOOD, cm.GaussianPrior(1.0), (X, Y), batch_size=400, flatten_by="data").exact
    with pytest.raises(ValueError, match="flatten_by="):
        posterior(flatten_by="prior")
    with pytest.raises(ValueError, match=r"flatten_by=.*Metropolis"):
        sample(split, steps=100, kernel=cm.adjusted(1e-3))
    with pytest.raises(ValueError, match=r"flatten_by=.*replicas"):
        sample(split, steps=100, kernel=cm.replica_exchange(cm.sghmc(1e-4), cm.sghmc(1e-4, 2.0)))
