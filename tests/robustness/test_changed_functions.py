"""A function that reads variables outside of it is sampled as it is now, and what it read is not kept."""

import functools
import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core.compiling import _compile
from contourmc.kernels.sgld import SGLD
from contourmc.kernels.traced import trace_schedules

RUN = dict(init=jnp.zeros(2), steps=2000, kernel=cm.sgld(0.1), seed=3)
CENTRE = jnp.zeros(2)
SPREAD = 1.0
SIZE = 0.1


def energy(x):
    return jnp.sum((x - CENTRE) ** 2) / (2 * SPREAD**2)


class Well:
    def __init__(self, centre):
        self.centre = centre

    def energy(self, x):
        return jnp.sum((x - self.centre) ** 2) / 2


def compilations():
    return _compile.cache_info().misses


@pytest.mark.parametrize("function", [energy, jax.jit(energy), lambda x: energy(x)], ids=["plain", "jit", "calls"])
def test_a_changed_array_changes_the_answer_and_compiles_nothing(function, monkeypatch):
    before = cm.sample(function, **RUN).mean()
    compiled = compilations()
    monkeypatch.setitem(globals(), "CENTRE", CENTRE + 100)
    after = cm.sample(function, **(RUN | dict(init=jnp.full(2, 100.0)))).mean()
    np.testing.assert_allclose(after, before + 100, atol=1e-3)  # the same noise, 100 further away
    assert compilations() == compiled


def test_a_jitted_helper_inside_is_traced_anew(monkeypatch):
    @jax.jit
    def inner(x):
        return energy(x)

    def outer(x):
        return inner(x)

    before = cm.sample(outer, **RUN).mean()
    monkeypatch.setitem(globals(), "CENTRE", CENTRE + 100)
    after = cm.sample(outer, **(RUN | dict(init=jnp.full(2, 100.0)))).mean()
    np.testing.assert_allclose(after, before + 100, atol=1e-3)


def test_a_changed_number_changes_the_answer(monkeypatch):
    narrow = np.ptp(cm.sample(energy, **RUN).positions)
    monkeypatch.setitem(globals(), "SPREAD", 10.0)
    assert np.ptp(cm.sample(energy, **RUN).positions) > 2 * narrow


def test_a_bound_method_sees_that_its_object_changed():
    well = Well(jnp.zeros(2))
    before = cm.sample(well.energy, **RUN).mean()
    well.centre = jnp.full(2, -50.0)
    after = cm.sample(well.energy, **(RUN | dict(init=well.centre))).mean()
    np.testing.assert_allclose(after, before - 50, atol=1e-3)


def test_a_jitted_method_is_an_energy():
    class Jitted(Well):
        @functools.partial(jax.jit, static_argnums=0)
        def energy(self, x):
            return jnp.sum((x - self.centre) ** 2) / 2

    assert np.isfinite(cm.sample(Jitted(jnp.zeros(2)).energy, **RUN).mean()).all()


def test_a_rule_for_the_gradient_that_changed_is_used():
    """Both compute the same energy; only the derivative differs."""

    def with_slope(factor):
        @jax.custom_jvp
        def square(x):
            return jnp.sum(x**2) / 2

        @square.defjvp
        def _(primals, tangents):
            return square(*primals), factor * jnp.sum(primals[0] * tangents[0])

        return square

    wide, narrow = (np.var(cm.sample(with_slope(factor), **RUN).positions) for factor in (1.0, 9.0))
    assert wide > 3 * narrow


def test_the_functions_of_a_posterior_are_traced_anew(monkeypatch):
    def log_likelihood(x, batch):
        return -jnp.sum((batch - x - CENTRE) ** 2, axis=-1) / 2

    posterior = cm.Posterior(log_likelihood, lambda x: jnp.zeros(()), jnp.zeros((20, 2)), batch_size=5)
    run = RUN | dict(kernel=cm.sgld(0.001))
    before = cm.sample(posterior, **run).mean()
    monkeypatch.setitem(globals(), "CENTRE", CENTRE + 10)
    after = cm.sample(posterior, **(run | dict(init=jnp.full(2, -10.0)))).mean()
    np.testing.assert_allclose(after, before - 10, atol=1e-3)


def test_an_average_predicts_with_what_there_is_now(monkeypatch):
    average = cm.RegressionAverage(lambda x, inputs: (inputs + CENTRE[0], jnp.ones(4)), jnp.zeros(4), jnp.zeros(4))
    run = RUN | dict(average=average)
    assert cm.sample(energy, **run).average.rmse == pytest.approx(0)
    monkeypatch.setitem(globals(), "CENTRE", CENTRE + 3)
    assert cm.sample(energy, **run).average.rmse == pytest.approx(3)


def test_a_schedule_is_traced_anew(monkeypatch):
    kernel = cm.sgld(lambda step: SIZE + 0.0 * step)
    slow = np.var(np.diff(cm.sample(energy, **(RUN | dict(kernel=kernel, thin=1))).positions, axis=1))
    monkeypatch.setitem(globals(), "SIZE", 0.4)
    fast = np.var(np.diff(cm.sample(energy, **(RUN | dict(kernel=kernel, thin=1))).positions, axis=1))
    assert fast > 2 * slow  # the increments of an equilibrium chain have variance 2ε, nearly


def test_equal_computations_of_different_functions_compile_once():
    cm.sample(lambda x: jnp.sum((x - jnp.array([1.0, 2.0])) ** 2), **RUN)
    compiled = compilations()
    cm.sample(lambda z: jnp.sum((z - jnp.array([5.0, 2.0])) ** 2), **RUN)
    assert compilations() == compiled
    cm.sample(lambda z: jnp.sum((z + jnp.array([5.0, 2.0])) ** 2), **RUN)
    assert compilations() > compiled


def test_another_step_size_partition_or_seed_compiles_nothing():
    def run(seed, step_size, low, width):
        partition = cm.Partition(low=low, width=width, bins=10)
        return cm.sample(energy, **(RUN | dict(kernel=cm.csgld(step_size, partition), seed=seed))).theta

    first = run(0, 0.1, 0.1, 0.5)
    compiled = compilations()
    assert not np.array_equal(first, run(0, 0.05, 0.1, 0.5))
    assert not np.array_equal(first, run(0, 0.1, 0.2, 0.5))
    assert not np.array_equal(first, run(0, 0.1, 0.1, 0.4))
    assert not np.array_equal(first, run(1, 0.1, 0.1, 0.5))
    assert compilations() == compiled


def test_another_seed_or_number_of_steps_of_a_run_that_tunes_itself_compiles_nothing():
    """The README's run. From 160,000 evaluations on, a tenth of the run, the pilot has the same sizes."""

    def energy(x):
        return -jnp.logaddexp(jnp.log(0.4) - (x + 6) ** 2 / 2, jnp.log(0.6) - (x - 4) ** 2 / 2)

    def sample(**settings):
        return cm.sample(energy, init=-6.0, chains=8, progress=False, **settings)

    first = sample(steps=200_000)
    compiled = compilations()
    for settings in (dict(steps=200_000, seed=1), dict(steps=250_000), dict(steps=300_000, thin=7, seed=2)):
        again = sample(**settings)
        assert again.partition.bins == first.partition.bins  # else it needs another program
    assert compilations() == compiled


def test_captured_arrays_are_not_kept_alive():
    data = jnp.ones((1000, 2))

    def sampled(data):
        cm.sample(lambda x: jnp.sum((x - data) ** 2) / 2000, **RUN)

    sampled(data)
    kept = weakref.ref(data)
    del data
    gc.collect()
    assert kept() is None


def test_programs_made_in_different_contexts_differ():
    def noisy(x):
        return jnp.sum((x - jax.random.normal(jax.random.key(0), (2,))) ** 2) / 2

    def in_other_context(x):
        with jax.threefry_partitionable(False):
            return noisy(x)

    means = [cm.sample(target, **RUN).mean() for target in (noisy, in_other_context)]
    assert np.max(np.abs(means[0] - means[1])) > 0.1


def test_functions_that_are_no_schedules_are_left_alone():
    @dataclass(frozen=True)
    class Mine(SGLD):
        metric: Callable = energy

    schedule = lambda step: 0.1 / step  # noqa: E731
    traced = trace_schedules(Mine(schedule))
    assert traced.metric is energy
    assert traced.step_size is not schedule


def test_step_numbers_and_averages_of_other_float_types():
    average = cm.RegressionAverage(lambda x, inputs: (inputs + x[0], jnp.ones(4)), jnp.zeros(4), jnp.zeros(4))
    half = cm.sample(energy, **(RUN | dict(init=jnp.zeros(2, jnp.bfloat16), average=average)))
    assert np.isfinite(half.average.rmse)
    with jax.enable_x64(True):
        kernel = cm.sgld(lambda step: 0.1 / (1 + step))
        assert np.isfinite(cm.sample(energy, **(RUN | dict(init=np.zeros(2), kernel=kernel))).mean()).all()
