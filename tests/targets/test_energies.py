"""A target gives an energy and its gradient together, exact or with noise of known variance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import contourmc as cm
from contourmc import ExactEnergy, NoisyEnergy, Target
from contourmc.targets.base import check_position, check_starts
from contourmc.targets.energies import as_target
from contourmc.targets.traced import trace_target

POSITION = {"a": jnp.array([1.0, 2.0, 3.0]), "b": jnp.float32(4.0)}


def energy(x):
    return jnp.sum(x["a"] ** 2) / 2 + x["b"] ** 3


def first(inputs):
    return jax.tree.map(lambda leaf: leaf[0], inputs)


@pytest.mark.parametrize("target", [ExactEnergy(energy), NoisyEnergy(energy)])
def test_energy_and_gradient(target):
    """Without variance, a noisy energy is the exact one."""
    inputs = target.prepare(jax.random.key(0), POSITION, jnp.arange(1, 6))
    assert jax.tree.leaves(inputs) == []
    value, gradient = jax.jit(target.evaluate)(first(inputs), POSITION)
    assert value == 7 + 64
    np.testing.assert_array_equal(gradient["a"], POSITION["a"])
    assert gradient["b"] == 48


def test_noise_has_the_variance_asked_for():
    """Every coordinate of the gradient, and the energy: independent Gaussians around the exact values.

    20,000 steps: a standard deviation wrong by 5% would give p < 1e-5.
    """
    steps = 20_000
    target = NoisyEnergy(energy, gradient_variance=4.0, energy_variance=9.0)
    inputs = target.prepare(jax.random.key(1), POSITION, jnp.arange(1, steps + 1))
    values, gradients = jax.jit(jax.vmap(target.evaluate, (0, None)))(inputs, POSITION)
    exact = jax.grad(energy)(POSITION)
    noise = [(values - energy(POSITION)) / 3, (gradients["b"] - exact["b"]) / 2]
    noise += list((gradients["a"] - exact["a"]).T / 2)
    for sequence in noise:
        assert sequence.shape == (steps,)
        assert stats.kstest(np.asarray(sequence), "norm").pvalue > 1e-4
    # No step's noise comes back in another place: correlations have standard deviation 1/√steps.
    correlations = np.corrcoef(noise) - np.eye(5)
    assert np.abs(correlations).max() < 5 / steps**0.5
    assert abs(np.corrcoef(noise[0][1:], noise[0][:-1])[0, 1]) < 5 / steps**0.5


def test_one_kind_of_noise_leaves_the_other_exact():
    key = jax.random.key(2)
    for settings, value_is_exact in (({"gradient_variance": 1.0}, True), ({"energy_variance": 1.0}, False)):
        target = NoisyEnergy(energy, **settings)
        value, gradient = target.evaluate(first(target.prepare(key, POSITION, jnp.arange(1, 2))), POSITION)
        assert (value == energy(POSITION)) == value_is_exact
        assert (gradient["b"] == 48) != value_is_exact


def test_randomness_depends_on_the_key_and_the_steps_alone():
    target, steps = NoisyEnergy(energy, 1.0, 1.0), jnp.arange(1, 4)
    once, again, other = (target.prepare(jax.random.key(seed), POSITION, steps) for seed in (0, 0, 1))
    jax.tree.map(np.testing.assert_array_equal, once, again)
    assert not np.any(once[1] == other[1])
    later = target.prepare(jax.random.key(0), POSITION, steps + 3)
    assert not np.any(np.isin(once[1], later[1]))


def test_targets_of_the_same_function_are_equal():
    """The compiled loop is cached by them."""
    assert ExactEnergy(energy) == ExactEnergy(energy)
    assert hash(NoisyEnergy(energy, 1.0)) == hash(NoisyEnergy(energy, 1.0))
    assert NoisyEnergy(energy, 1.0) != NoisyEnergy(energy, 2.0)


def test_as_target():
    noisy = NoisyEnergy(energy)
    assert as_target(noisy) is noisy
    assert as_target(energy) == ExactEnergy(energy)


@pytest.mark.usefixtures("untyped")
def test_what_is_not_a_function_is_not_a_target():
    with pytest.raises(ValueError, match=r"^target=3"):
        as_target(3)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("argument", ["gradient_variance", "energy_variance"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "a"])
def test_bad_variance_is_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument}="):
        NoisyEnergy(energy, **{argument: value})


def test_a_target_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Target()


def test_positions_are_floats():
    for good in (0.0, np.zeros(3), jnp.ones((2, 2)), POSITION, [1.0, (2.0,)]):
        check_position(good)


@pytest.mark.parametrize(
    ("position", "name"),
    [
        (0, "init="),
        ({}, "init="),
        ({"a": 1.0, "b": 2}, r"init\['b'\]="),
        ([1.0, jnp.arange(3)], r"init\[1\]="),
    ],
)
def test_a_bad_position_is_named_with_the_place_in_it(position, name):
    with pytest.raises(ValueError, match=f"^{name}"):
        check_position(position)


def stacked(count):
    return jax.tree.map(lambda leaf: jnp.stack([leaf] * count), POSITION)


def test_good_starts_pass():
    check_starts(ExactEnergy(energy), stacked(3))
    check_starts(NoisyEnergy(energy, 1.0, 1.0), stacked(3))


@pytest.mark.parametrize("bad", [lambda x: x["a"], lambda x: x["a"] > 0, lambda x: jnp.int32(3), lambda x: None])
def test_an_energy_must_be_one_float(bad):
    with pytest.raises(ValueError, match=r"^target=.*one float"):
        trace_target(ExactEnergy(bad), POSITION)


@pytest.mark.parametrize("value", [jnp.nan, jnp.inf])
def test_a_start_without_finite_energy_is_found(value):
    starts = stacked(4)
    starts["b"] = starts["b"].at[2].set(value)
    with pytest.raises(ValueError, match=r"^init=.*chain 2"):
        check_starts(ExactEnergy(energy), starts)


def test_a_log_density_is_the_energy_with_the_other_sign():
    def log_density(x):
        return -(x**4)

    run = dict(init=0.5, steps=50, kernel=cm.sgld(0.01), chains=2)
    given = cm.sample(cm.from_log_density(log_density), **run)
    np.testing.assert_array_equal(given.draws, cm.sample(lambda x: x**4, **run).draws)
    assert given.settings["target"]["energy"].endswith("log_density")
    with pytest.raises(ValueError, match=r"^target=.*fails with"):
        cm.sample(cm.from_log_density(lambda x: None), **run)


@pytest.mark.usefixtures("untyped")
def test_a_log_density_must_be_a_function():
    with pytest.raises(ValueError, match=r"^log_density=1.0 .*function"):
        cm.from_log_density(1.0)
