"""Algorithm 1 as printed: by hand in NumPy, compared with the library's kernel, and the deliberate differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc import Partition
from contourmc.flattening.theta import interpolate, log_theta
from contourmc.problems import GaussianMixture
from contourmc.studies import algorithm
from contourmc.studies.algorithm import ContinuousWeights, FlatLastBin, LibraryOrder, Normalised, deviation
from contourmc.studies.algorithm_one import AlgorithmOne, Noise, State, noisy, run

ENERGIES = np.random.default_rng(0).uniform(0.0, 9.0, 2_000)  # eight bins from 2 to 5, and far beyond both ends
MIXTURE = GaussianMixture()


def small(**settings):
    return AlgorithmOne(2.0, 0.5, 8, omega=lambda k: 10 / (k**0.6 + 100), **settings)


# --- By hand -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["original", "biased", "scalable"])
@pytest.mark.parametrize("scheme", ["left", "right", "step"])
def test_every_bin_by_hand(scheme, rule):
    """Bins 1 … m with loops, as the paper writes them."""
    one = AlgorithmOne(2.0, 0.5, 8, temperature=0.7, zeta=1.3, scheme=scheme, rule=rule, rho=0.4)
    theta, omega, m = np.random.default_rng(1).dirichlet(np.ones(8)), 0.05, 8
    with jax.enable_x64(True):
        for energy in (1.0, 2.0, 2.25, 2.5, 2.75, 3.1, 3.6, 4.1, 4.6, 5.0, 5.1, 80.0):
            J = 1
            while m > J and energy > 2.0 + 0.5 * (J - 1):
                J += 1
            upper, lower = {"left": (J, max(J - 1, 1)), "right": (min(J + 1, m), J), "step": (J, J)}[scheme]
            slope = (np.log(theta[upper - 1]) - np.log(theta[lower - 1])) / 0.5
            gain = theta[J - 1] ** (1.0 if rule == "scalable" else 1.3)
            expected = [
                theta[i - 1] + omega * (gain + omega * 0.4 * (i >= J) * (rule == "biased")) * ((i == J) - theta[i - 1])
                for i in range(1, m + 1)
            ]
            u = jnp.float64(energy)
            assert one.bin(u) == J
            assert float(one.multiplier(jnp.asarray(theta), u)) == pytest.approx(1 + 1.3 * 0.7 * slope, abs=1e-12)
            assert float(one.weight(jnp.asarray(theta), u)) == pytest.approx(theta[J - 1] ** 1.3, rel=1e-12)
            np.testing.assert_allclose(one.learn(jnp.asarray(theta), u, jnp.float64(omega)), expected, rtol=1e-12)


def test_a_step_moves_with_the_old_theta_and_learns_from_the_new_point():
    one, target = small(step_size=0.2, temperature=0.5), noisy(lambda x: 2 + x**2 / 2, 0.04, 0.09)
    with jax.enable_x64(True):
        theta = jnp.asarray(np.random.default_rng(2).dirichlet(np.ones(8)))
        state = State(jnp.float64(1.5), jnp.float64(3.3), jnp.float64(1.4), theta, jnp.asarray(6))
        after = one.step(state, Noise(*map(jnp.float64, (0.3, -1.0, 2.0))), target)
        x = 1.5 - 0.2 * float(one.multiplier(theta, state.energy)) * 1.4 + np.sqrt(2 * 0.5 * 0.2) * 0.3
        energy = 2 + x**2 / 2 + 0.3 * 2.0
        assert float(after.x) == pytest.approx(x)
        assert float(after.energy) == pytest.approx(energy)
        assert float(after.gradient) == pytest.approx(x - 0.2)
        np.testing.assert_allclose(after.theta, one.learn(theta, jnp.float64(energy), one.omega(jnp.float64(7))))


# --- Beside the library ------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("rule", ["original", "biased", "scalable"])
@pytest.mark.parametrize("scheme", ["left", "right", "step"])
def test_the_library_has_the_printed_multipliers_weights_and_theta(scheme, rule, precision):
    """Over 2,000 steps, each of which rounds log θ by up to an ulp: 2,000 · 2⁻²⁴ · 8 in float32 is 1e-3."""
    found = deviation(small(scheme=scheme, rule=rule), ENERGIES, precision)
    assert max(found.values()) < {"float32": 1e-3, "float64": 1e-11}[precision]


def test_another_scheme_and_another_rule_would_be_noticed(monkeypatch):
    left = AlgorithmOne.multiplier
    monkeypatch.setattr(AlgorithmOne, "multiplier", lambda self, theta, u: left(small(scheme="right"), theta, u))
    assert deviation(small(), ENERGIES, "float64")["multiplier"] > 0.01
    monkeypatch.setattr(AlgorithmOne, "weight", lambda self, theta, u: theta[self.bin(u) - 1])
    assert deviation(small(), ENERGIES, "float64")["log θ"] > 0.01


# --- The differences ---------------------------------------------------------------------------------


def test_the_last_bin_has_a_slope_as_printed_and_is_flat_in_the_library():
    with jax.enable_x64(True):
        theta = jnp.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.015, 0.005])
        printed, flat = (
            float(kind(2.0, 0.5, 8).multiplier(theta, jnp.float64(50.0))) for kind in (AlgorithmOne, FlatLastBin)
        )
    assert printed == pytest.approx(1 + 0.75 * np.log(0.005 / 0.015) / 0.5)
    assert printed < 0
    assert flat == 1


def test_the_order_of_the_library_learns_from_the_point_that_is_left():
    target = noisy(lambda x: x**2 / 2)
    with jax.enable_x64(True):
        theta = jnp.full(8, 1 / 8)
        state = State(jnp.float64(3.0), jnp.float64(4.5), jnp.float64(3.0), theta, jnp.asarray(0))
        nothing = Noise(jnp.float64(0), jnp.float64(0), jnp.float64(0))
        one = LibraryOrder(2.0, 0.5, 8)
        expected = one.learn(theta, state.energy, one.omega(jnp.float64(1)))
        np.testing.assert_allclose(one.step(state, nothing, target).theta, expected)


def test_continuous_weights_are_those_of_the_library():
    theta, partition = np.random.default_rng(3).dirichlet(np.ones(8)), Partition(2.0, 0.5, 8)
    with jax.enable_x64(True):
        log = log_theta(jnp.asarray(theta))
        for energy in (0.0, 2.2, 3.3, 4.9, 9.0):
            expected = np.exp(0.75 * float(interpolate(log, partition, jnp.float64(energy), "left")[0]))
            found = ContinuousWeights(2.0, 0.5, 8).weight(jnp.asarray(theta), jnp.float64(energy))
            assert float(found) == pytest.approx(expected)


def test_the_biased_rule_loses_the_sum_unless_it_is_normalised():
    given = jnp.full(8, 1 / 8), jnp.float32(3.6), jnp.float32(0.1)
    printed = AlgorithmOne(2.0, 0.5, 8, rule="biased", zeta=5.0).learn(*given)
    kept = Normalised(2.0, 0.5, 8, rule="biased", zeta=5.0).learn(*given)
    assert float(printed.sum()) > 1.003
    assert float(kept.sum()) == pytest.approx(1, abs=1e-6)


# --- Running it --------------------------------------------------------------------------------------


def test_a_path_has_what_its_steps_gave():
    """Marks of one step and of ten are the same chain up to their noise; weights and visits add up."""
    path = run(small(), noisy(MIXTURE.energy, 0.01), 0.0, steps=100, every=10, chains=3, seed=0, before=20)
    assert path.steps.tolist() == list(range(30, 121, 10))
    assert path.x.shape == path.energy.shape == path.total.shape == (3, 10)
    assert path.theta.shape == (3, 1, 8)
    assert path.visits.sum(axis=1).tolist() == [50] * 3
    every = run(small(), noisy(MIXTURE.energy, 0.01), 0.0, steps=100, every=1, chains=3, seed=0, every_theta=True)
    np.testing.assert_allclose(every.total, every.weight)
    np.testing.assert_allclose(every.mean, every.x)
    expected = np.cumsum(every.weight * every.x, axis=1) / np.cumsum(every.weight, axis=1)
    np.testing.assert_allclose(every.running_mean(), expected)
    assert every.theta.shape == (3, 100, 8)
    assert every.finite.all()


def test_chains_that_diverge_are_no_longer_finite():
    """In the last bin nothing bounds the energy, and its slope drives the chain away; the flat bin holds it."""
    settings = dict(step_size=0.5, omega=lambda k: 0.5 + 0 * k)
    ends = [
        run(kind(0.1, 0.1, 6, **settings), noisy(MIXTURE.energy), 30.0, steps=2_000, every=100, chains=4, seed=0).finite
        for kind in (AlgorithmOne, FlatLastBin)
    ]
    assert not ends[0][:, -1].any()
    assert ends[1].all()


def test_replayed_energies_reach_every_bin():
    energies = algorithm.replayed_energies()
    assert len(np.unique(np.digitize(energies, 2.0 + np.arange(49)))) == 50
