"""Runs that are wrong on purpose are not called good, and say what is wrong; right ones are.

The larger table, with the truth beside each case, is made by `python -m benchmarks.trust`.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.tuning.varied_step import VariedStep


def gaussian(x):
    return jnp.sum(x**2) / 2


def mixture(x):
    return -jnp.logaddexp(jnp.log(0.4) - (x + 6) ** 2 / 2, jnp.log(0.6) - (x - 4) ** 2 / 2)


def narrow_hole(x):
    """A Gaussian beside a hole in which no ordinary step is accepted."""
    return jnp.minimum(jnp.sum(x**2) / 2, 1e8 * jnp.sum((x - 8.0) ** 2) - 3)


def findings(target, kernel, init=0.0, steps=20_000, **more):
    run = cm.sample(target, init=init, steps=steps, kernel=kernel, chains=4, **more)
    diagnosis = run.diagnose()
    return diagnosis.ok, {finding.check: finding for finding in diagnosis.findings if finding.severity != "note"}


@pytest.mark.parametrize("kernel", [cm.sgld(0.05), cm.langevin(0.2), cm.sghmc(0.005), cm.adjusted(0.5)])
def test_right_runs_are_trusted(kernel):
    assert findings(gaussian, kernel, steps=100_000)[0]


@pytest.mark.parametrize(
    ("kernel", "hotter"),
    [(cm.sgld(1.5), 4.0), (cm.sghmc(2.0), 2.11)],
)
def test_a_step_far_too_large_heats(kernel, hotter):
    ok, found = findings(gaussian, kernel)
    assert not ok
    # The stationary variance, which is known: 1/(1 − ε/2) for SGLD. Five standard errors of 4 × 18,000 draws.
    assert found["temperature"].figure == pytest.approx(hotter, rel=0.06)


def test_noise_of_gradients_larger_than_that_injected_heats():
    ok, found = findings(cm.NoisyEnergy(gaussian, gradient_variance=9.0), cm.sgld(0.5))
    assert not ok
    assert found["temperature"].severity == "problem"


def test_mini_batches_too_small_for_the_step_heat():
    data = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    posterior = cm.Posterior(lambda x, batch: -((batch - x) ** 2) / 2, lambda x: 0.0 * x, data, batch_size=10)
    ok, found = findings(posterior, cm.sgld(5e-4))
    assert not ok
    assert found["temperature"].severity == "problem"


def test_a_run_that_is_still_on_its_way():
    ok, found = findings(gaussian, cm.sgld(0.01), init=20.0, steps=500)
    assert not ok
    assert found["effective size"].severity == "problem"


def test_energies_coarser_than_their_differences():
    ok, found = findings(lambda x: 1e8 + x**2 / 2, cm.adjusted(0.5))
    assert not ok
    assert found["grain"].figure == 8.0


def test_energies_that_drift():
    ok, found = findings(gaussian, cm.sgld(1e-4), init=jnp.full(50, 3.0), steps=20_000, burn_in=0)
    assert not ok
    assert "stationarity" in found


@pytest.mark.parametrize("low", [-40.0, 40.0])
def test_a_partition_without_draws_is_replaced_by_one_that_can_be_used(low):
    ok, found = findings(mixture, cm.csgld(0.1, cm.Partition(low, 1.0, 30)), init=-6.0)
    assert not ok
    assert "no flattening took place" in str(found["multiplier"])
    advice = found["multiplier"].advice
    assert advice.startswith("Try Partition(")
    better = eval(advice.removeprefix("Try ").removesuffix("."), {"Partition": cm.Partition})
    assert not {"above", "below", "lowest bin"} & set(findings(mixture, cm.csgld(0.1, better), init=-6.0)[1])


def test_figures_are_finite_when_weights_collapse():
    partition = cm.Partition(1.5, 1.0, 30)
    run = cm.sample(
        mixture, init=-6.0, steps=5000, kernel=cm.csgld(0.1, partition, zeta=1e6, rule="scalable"), chains=1
    )
    diagnosis = run.diagnose()
    assert not diagnosis.ok
    assert 0 <= float(run.ess()) <= 4500
    assert max(map(len, str(diagnosis).splitlines())) < 300


def test_a_single_chain_has_an_error():
    """So few steps that there is no second mark of the trajectory."""
    run = cm.sample(gaussian, init=20.0, steps=20, kernel=cm.sgld(0.1), chains=1)
    assert float(run.standard_error()) > 0


def test_the_best_verdict_claims_no_more_than_can_be_known():
    run = cm.sample(mixture, init=-6.0, steps=100_000, kernel=cm.sgld(0.1), chains=4)
    assert run.diagnose().ok  # all chains are in one mode, and agree
    assert "a mode that was never visited cannot be seen" in str(run.diagnose()).lower()


# --- Chains that stand still -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frozen():
    starts = np.zeros((4, 2), np.float32)
    starts[2] = 8.0
    return cm.sample(
        narrow_hole, init=starts, per_chain_init=True, steps=20_000, kernel=cm.adjusted(0.5), chains=4, burn_in=2000
    )


def test_a_chain_that_stands_still_is_named_and_left_out(frozen):
    assert frozen.still.tolist() == [False, False, True, False]
    assert "chain 2 did not move in 17,999 steps" in str(frozen.diagnose())
    assert not frozen.diagnose().ok
    np.testing.assert_array_equal(frozen.weights.sum(axis=1), [1 / 3, 1 / 3, 0, 1 / 3])
    # A quarter of 8 would be 2; the error of the mean of 3 × 18,000 draws is 0.01.
    np.testing.assert_allclose(frozen.mean(), 0.0, atol=0.1)
    np.testing.assert_allclose(frozen.variance(), 1.0, atol=0.1)
    assert np.all(np.asarray(frozen.standard_error()) < 0.1)
    assert np.all(np.asarray(frozen.rhat()) < 1.1)


def test_a_flat_landscape_is_no_standstill():
    run = cm.sample(lambda x: 0.0 * x, init=0.0, steps=500, kernel=cm.sgld(0.1), chains=2)
    assert not run.still.any()


def test_steps_that_vary_move_in_narrow_places():
    """In a well a hundred times narrower than the step size was chosen for; of 10⁵ steps, 4 in 48 are small enough.

    On eight schools and the galaxies, through automatic runs: `python -m benchmarks.still_chains`.
    """

    def well(x):
        return x**2 * 5000

    run = dict(init=0.0, steps=100_000, chains=4)
    assert cm.sample(well, kernel=cm.adjusted(0.5), **run).still.all()
    moved = cm.sample(well, kernel=cm.adjusted(VariedStep(0.5)), **run)
    assert not moved.still.any()
    # The stationary law is exact: variance 10⁻⁴, with an error of 3% from about 2,000 independent draws.
    assert float(moved.variance()) == pytest.approx(1e-4, rel=0.15)
