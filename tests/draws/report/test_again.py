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
    "replicas": cm.replica_exchange(cm.sgld(0.01), cm.sgld(0.01, temperature=4.0)),
}


def energy(x):
    return 4 * (x[0] ** 2 - 1) ** 2 + x[1] ** 2


def made_again(run, init):
    names = {"energy": energy, "init": init}
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
