"""The lines of code on the page make the same run again, bit for bit."""

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.draws.report.again import lines_of

PARTITION = cm.Partition(low=1.0, width=0.5, bins=30)
KERNELS = {
    "sgld": cm.sgld(0.01),
    "decaying": cm.sghmc(cm.Polynomial(0.01, 0.3, 10.0), temperature=1.5),
    "contour": cm.csgld(0.01, PARTITION, zeta=0.75),
    "scalable": cm.csghmc(0.01, PARTITION, rule=cm.Scalable(), weights="step", scheme="left", shared=True),
    "adjusted": cm.contour(cm.adjusted(0.3), PARTITION, rule=cm.Biased(rho=0.5)),
    "fixed": cm.ksgld(0.01, PARTITION, np.full(30, 1 / 30)),
    "replicas": cm.replica_exchange(cm.sgld(0.01), cm.sgld(0.01, temperature=4.0)),
}


def energy(x):
    return 4 * (x[0] ** 2 - 1) ** 2 + x[1] ** 2


def made_again(run, init, **names):
    names = {"energy": energy, "init": init} | names
    exec(lines_of(run), names)
    return names["run"]


def same(run, again):
    assert again.settings == run.settings
    np.testing.assert_array_equal(again.draws, run.draws)
    np.testing.assert_array_equal(again.log_weights, run.log_weights)


@pytest.mark.parametrize("name", KERNELS)
def test_a_run_with_a_kernel(name):
    init = jnp.array([1.0, 0.0])
    run = cm.sample(energy, init=init, steps=2000, chains=2, seed=7, kernel=KERNELS[name], thin=3)
    same(run, made_again(run, init))


@pytest.mark.parametrize("given", [{}, {"partition": PARTITION}, {"step_size": 0.2}], ids=["nothing", "bins", "step"])
def test_a_run_that_tunes_itself(given):
    init = jnp.array([1.0, 0.0])
    run = cm.sample(energy, init=init, steps=5000, chains=2, seed=7, burn_in=2000, **given)
    same(run, made_again(run, init))


def test_a_start_of_each_chain():
    init = jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    run = cm.sample(energy, init=init, per_chain_init=True, steps=2000, chains=2, seed=7, kernel=cm.sgld(0.01))
    same(run, made_again(run, init))


RATES = {"number": 0.1, "cycles": cm.CyclicCosine(0.1, 500)}
BINS = {"auto": "auto", "given": cm.Following(bound=0.3, begin=700)}


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("rate", RATES)
def test_a_network_by_a_learning_rate(rate, bins):
    """Whose kernel, weights and term of the energy follow from it."""
    x = np.linspace(-1.0, 1.0, 30)
    likelihood = cm.CategoricalLikelihood(lambda slope, x: jnp.stack([slope * x, -slope * x], -1), classes=2)
    target = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x, (x > 0).astype(int)), batch_size=10)
    average = cm.ClassificationAverage(likelihood.predict, x, (x > 0).astype(int), classes=2)
    given = dict(learning_rate=RATES[rate], partition=BINS[bins], temperature=0.5)
    run = cm.sample(target, init=0.1, steps=2000, seed=7, average=average, **given)
    again = made_again(run, 0.1, target=target, average=average)
    same(run, again)
    assert again.average.nll == run.average.nll


def test_bins_that_follow_the_energies():
    x = np.linspace(-1.0, 1.0, 30)
    likelihood = cm.GaussianLikelihood(lambda slope, x: slope * x, noise=0.1)
    target = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x, 2 * x), batch_size=10)
    kernel = cm.csghmc(1e-4, cm.Following(begin=100), temperature=0.1, shared=True)
    run = cm.sample(target, init=0.1, steps=2000, chains=2, seed=7, kernel=kernel)
    same(run, made_again(run, 0.1, target=target))


def test_what_the_settings_do_not_tell_is_left_open():
    """A schedule that is a function of the user's own has a name, and one without a name leaves a gap to fill."""

    def falling(step):
        return 0.001 / (1 + step)

    init = jnp.array([1.0, 0.0])
    run = cm.sample(energy, init=init, steps=1000, kernel=cm.sgld(lambda step: 0.001), store=False)
    lines = lines_of(run)
    assert "cm.sgld(step_size=..., temperature=1.0)" in lines
    assert "store=False" in lines
    assert "step_size=..." in lines_of(cm.sample(energy, init=init, steps=1000, kernel=cm.sgld(falling)))
