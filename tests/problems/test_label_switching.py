"""The posterior of three means: symmetric under permutations."""

from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from contourmc.problems import LabelSwitching

PROBLEM = LabelSwitching()
ENERGIES = jax.jit(jax.vmap(PROBLEM.energy))
ORDERS = np.array(list(permutations(range(3))))


def test_energy_is_minus_the_log_posterior_up_to_a_constant():
    def log_posterior(means: np.ndarray) -> float:
        chances = norm.pdf(PROBLEM.data[:, None], means).mean(axis=1)
        return np.log(chances).sum() + norm.logpdf(means, 0, 10).sum()

    points = np.array([[-2.5, 0.0, 2.5], [1.0, 0.0, -4.0], [2.0, 2.0, 2.0]])
    energies = np.asarray(ENERGIES(jnp.asarray(points)))
    expected = -np.array([log_posterior(point) for point in points])
    np.testing.assert_allclose(energies - energies[0], expected - expected[0], atol=1e-3)


def test_energy_does_not_know_the_order():
    point = np.array([-2.1, 0.3, 3.3])
    energies = ENERGIES(jnp.asarray(point[ORDERS]))
    np.testing.assert_allclose(energies, energies[0], rtol=1e-5)


def test_every_order_has_its_own_label():
    """A point with argsort = order: the value of rank r is at place order[r]."""
    points = np.argsort(ORDERS, axis=1).astype(float)
    np.testing.assert_array_equal(np.argsort(points, axis=1), ORDERS)
    np.testing.assert_array_equal(PROBLEM.mode(points), np.arange(6))


def test_moments_and_masses_by_a_grid_over_the_energy():
    """All of space, 0.2 apart: a posterior standard deviation is about 0.25. Ties are left out of the masses."""
    line = np.linspace(-5, 5.4, 53)
    points = np.stack(np.meshgrid(line, line, line), axis=-1).reshape(-1, 3)
    energies = np.asarray(ENERGIES(jnp.asarray(points)), float)
    probability = np.exp(energies.min() - energies)
    probability /= probability.sum()
    mean = probability @ points
    np.testing.assert_allclose(mean, PROBLEM.mean, atol=1e-3)
    np.testing.assert_allclose(probability @ (points - mean) ** 2, PROBLEM.variance, rtol=1e-3)
    tied = np.any(np.diff(np.sort(points, axis=1), axis=1) < 0.1, axis=1)
    masses = np.bincount(PROBLEM.mode(points[~tied]), probability[~tied], minlength=6)
    np.testing.assert_allclose(masses / masses.sum(), PROBLEM.masses, rtol=1e-3)


def test_two_means_meet_far_above_the_modes_but_not_out_of_reach():
    """The lowest energy where two means are equal, by descent from many starts, is the barrier of a swap."""

    def meet(x: jax.Array) -> jax.Array:
        return PROBLEM.energy(jnp.stack([x[0], x[0], x[1]]))

    def lowest(energy, starts: np.ndarray) -> float:
        def descend(x: jax.Array) -> jax.Array:
            return energy(jax.lax.fori_loop(0, 300, lambda _, x: x - 0.01 * jax.grad(energy)(x), x))

        return float(jnp.min(jax.jit(jax.vmap(descend))(jnp.asarray(starts))))

    bottom = lowest(PROBLEM.energy, PROBLEM.start[None])
    pairs = np.random.default_rng(0).uniform(-4, 4, (20, 2))
    assert lowest(meet, pairs) - bottom == pytest.approx(12.2, abs=0.2)
