"""The pilot: step size, scales and energies worth flattening, on targets where one knows what they should be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc.problems import DoubleWell, GaussianMixture
from contourmc.targets.energies import ExactEnergy, NoisyEnergy
from contourmc.tuning import pilot as machine
from contourmc.tuning.conclusions import conclude
from contourmc.tuning.pilot import TEMPERATURES

KEY = jax.random.key(0)
STEPS, CHAINS = 3000, 10  # what a run of 30,000 steps gives its pilot


def starts(position, chains=CHAINS):
    position = jnp.asarray(position, jnp.float32)
    return jnp.broadcast_to(position, (chains, *position.shape))


def explore(target, positions, key, steps, step_size=None):
    """A pilot from its first chunk to its conclusions."""
    plan = machine.plan_pilot(target, jax.tree.leaves(positions)[0].shape[0], steps, step_size)
    state = machine.start(plan, positions, step_size)
    for _ in plan.chunks:
        state, _ = machine.advance(plan, target, key, state)
    return conclude(plan, state)


# --- An anisotropic Gaussian --------------------------------------------------------------------------

SCALES = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
GAUSSIAN = ExactEnergy(lambda x: 0.5 * jnp.sum((x / jnp.asarray(SCALES, x.dtype)) ** 2))


@pytest.fixture(scope="module")
def gaussian():
    return explore(GAUSSIAN, starts(np.zeros(5)), KEY, STEPS)


def test_scales_of_very_different_coordinates(gaussian):
    """Standard deviations from 0.01 to 100, each within 30%."""
    np.testing.assert_allclose(gaussian.scale, SCALES, rtol=0.3)


def test_the_step_size_is_one_that_the_metropolis_test_accepts(gaussian):
    """In units of the scale: at its upper limit 0.5, or accepted about as often as asked, 85%."""
    assert 0.1 < gaussian.step_size <= 0.5
    assert 0.7 < gaussian.acceptance <= 1.0


def test_low_lies_among_the_energies_at_temperature_1(gaussian):
    """Those are ½χ² with 5 degrees of freedom: from 0, 90% of them below 4.6 and 99.4% below 8."""
    assert 0.3 < gaussian.bins.partition.low < 4.6  # 1% of the energies lie below 0.3
    assert gaussian.bins.partition.high > 8
    assert gaussian.bins.partition.width < 4


def test_one_minimum_is_found_where_there_is_one(gaussian):
    assert gaussian.minima.shape == (1, 5)
    assert np.all(np.abs(gaussian.minima[0]) < SCALES)
    assert gaussian.escaped == 0
    assert 0 <= gaussian.minimum_energies[0] < 0.5


def test_the_same_key_gives_the_same_pilot(gaussian):
    again = explore(GAUSSIAN, starts(np.zeros(5)), KEY, STEPS)
    assert again.bins.partition == gaussian.bins.partition
    assert again.step_size == gaussian.step_size
    for name in ("scale", "starts", "minima", "minimum_energies"):
        np.testing.assert_array_equal(getattr(again, name), getattr(gaussian, name))
    other = explore(GAUSSIAN, starts(np.zeros(5)), jax.random.key(1), STEPS)
    assert other.bins.partition != gaussian.bins.partition


def test_a_given_step_size_is_kept():
    """In the user's own units: scales are then relative to the widest coordinate, in which steps are as given."""
    target = ExactEnergy(lambda x: 0.5 * jnp.sum((x / jnp.array([0.3, 3.0])) ** 2))
    given = explore(target, starts(np.zeros(2)), KEY, STEPS, 0.1)
    assert given.step_size == 0.1
    np.testing.assert_allclose(given.scale, [0.1, 1.0], rtol=0.3)


def test_a_step_that_is_always_refused_is_not_called_a_constant_energy():
    """ε = 2000 where the narrowest coordinate has a standard deviation of 0.01: no proposal is ever accepted."""
    with pytest.raises(ValueError, match="step_size"):
        explore(GAUSSIAN, starts(np.zeros(5)), KEY, STEPS, 2000.0)


UNIT = ExactEnergy(lambda x: 0.5 * x**2)


@pytest.mark.parametrize(("steps", "chains"), [(100, 1), (100, 4), (1000, 1), (STEPS, CHAINS)])
def test_it_spends_at_most_what_it_is_given(steps, chains):
    """Evaluations for each chain; the shortest run that tunes itself, of 1,000 steps, gives 100."""
    found = explore(UNIT, starts(0.0, chains), KEY, steps)
    assert found.steps <= steps
    assert found.starts.shape == (chains,)


# --- Two minima ---------------------------------------------------------------------------------------


def test_both_minima_of_the_double_well():
    """At x₀ = ±1 (−1.003 and 0.997 with the tilt), 0.85 apart in energy; the barrier of 20 lies in the partition."""
    problem = DoubleWell()
    found = explore(ExactEnergy(problem.energy), starts(problem.start), KEY, STEPS)
    assert len(found.minima) == 2
    np.testing.assert_allclose(found.minima[:, 0], [-1.0, 1.0], atol=0.1)
    np.testing.assert_allclose(found.minimum_energies, [-0.424, 0.424], atol=0.3)  # the lowest first
    assert found.escaped > 0.2
    assert found.temperature in TEMPERATURES
    assert found.bins.partition.high > 20
    # the starts of the chains lie in both wells, so that no basin is taken for all there is
    assert 0 < np.mean(found.starts[:, 0] > 0) < 1


def test_the_partition_covers_the_barrier_of_the_papers_mixture():
    """0.4·N(−6, 1) + 0.6·N(4, 1) from x = −6: energies at temperature 1 lie between 1.4 and 4.5, the barrier at 14."""
    problem = GaussianMixture()
    target = ExactEnergy(problem.energy)
    found = explore(target, starts(-6.0), KEY, STEPS)
    line = jnp.linspace(-6, 4, 1001)
    barrier = float(jnp.max(jax.vmap(problem.energy)(line)))
    assert 10 < barrier < 20
    assert found.bins.partition.high > barrier
    draws = np.random.default_rng(0).normal(size=5000) + np.repeat([-6.0, 4.0], [2000, 3000])
    energies = np.asarray(jax.vmap(problem.energy)(jnp.asarray(draws, jnp.float32)))
    assert energies.min() < found.bins.partition.low < np.quantile(energies, 0.9)
    assert len(found.minima) == 2
    np.testing.assert_allclose(np.sort(found.minima), [-6, 4], atol=0.3)


def test_noisy_energies_have_no_scale_and_keep_their_step_size():
    problem = GaussianMixture()
    target = NoisyEnergy(problem.energy, gradient_variance=0.01, energy_variance=0.01)
    found = explore(target, starts(-6.0, 4), KEY, STEPS, 0.1)
    assert found.scale is None
    assert found.step_size == 0.1
    assert found.bins.partition.high > 10
    assert found.steps <= STEPS
