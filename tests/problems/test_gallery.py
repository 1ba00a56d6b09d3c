"""What is true of every problem."""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc.engine.cpu_single_kernel import can_fuse
from contourmc.problems import Problem, gallery

PROBLEMS = list(gallery().values())
DRAWN = [problem for problem in PROBLEMS if problem.name != "label-switching"]
PLANE = [problem for problem in PROBLEMS if problem.dimension == 2]
COUNT = 20_000


def by_name(problems: list[Problem]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("problem", problems, ids=lambda problem: problem.name)


@cache
def evaluation(problem: Problem) -> Callable:
    """Energy and gradient, compiled once for all tests."""
    return jax.jit(jax.value_and_grad(problem.energy))


def test_the_gallery_is_whole_and_its_problems_stay_the_same():
    expected = {
        "mixture": (1, 2),
        "nine-modes": (2, 9),
        "twenty-five-gaussians": (2, 25),
        "mixture-2d": (2, 4),
        "mixture-10d": (10, 3),
        "mixture-50d": (50, 2),
        "mixture-100d": (100, 2),
        "anisotropic-10d": (10, 2),
        "double-well": (2, 2),
        "rastrigin": (2, 26),
        "ring": (2, 6),
        "label-switching": (3, 6),
        "mixture-50d-unequal": (50, 2),
    }
    assert {name: (problem.dimension, problem.modes) for name, problem in gallery().items()} == expected
    assert all(gallery()[name].energy == problem.energy for name, problem in gallery().items())
    assert len({hash(problem) for problem in PROBLEMS}) == len(PROBLEMS)


@by_name(PROBLEMS)
def test_energy_and_gradient_are_finite_and_a_step_fuses(problem):
    evaluate = evaluation(problem)
    for position in (problem.start, problem.start + 100.0, 0 * problem.start):
        energy, gradient = evaluate(jnp.asarray(position, jnp.float32))
        assert energy.shape == ()
        assert energy.dtype == gradient.dtype == jnp.float32
        assert gradient.shape == problem.start.shape
        assert np.isfinite(energy)
        assert np.all(np.isfinite(gradient))
    assert jax.default_backend() != "cpu" or can_fuse(evaluate, jnp.asarray(problem.start))


@by_name(PROBLEMS)
def test_energies_are_the_same_in_double_precision(problem):
    single, _ = evaluation(problem)(jnp.asarray(problem.start + 0.1, jnp.float32))
    with jax.enable_x64(True):
        double, _ = evaluation(problem)(jnp.asarray(problem.start + 0.1))
        assert double.dtype == jnp.float64
    assert float(single) == pytest.approx(float(double), rel=1e-5, abs=1e-4)


@by_name(PROBLEMS)
def test_the_start_is_near_the_bottom_of_a_mode_that_is_not_the_most_probable(problem):
    """Downhill from the start (gradient descent) the label stays and the energy falls by less than 2 units."""
    label = int(problem.mode(problem.start))
    assert problem.masses[label] < max(problem.masses) or np.ptp(problem.masses) < 1e-9
    evaluate = evaluation(problem)
    position = np.asarray(problem.start, np.float32)
    first, gradient = last, _ = evaluate(position)
    for _ in range(200):
        position = np.asarray(position - 0.002 * gradient)
        last, gradient = evaluate(position)
    assert problem.mode(position) == label
    assert -1e-4 < first - last < 2


@by_name(PROBLEMS)
def test_masses_are_a_distribution(problem):
    assert problem.masses.shape == (problem.modes,)
    assert problem.masses.min() >= 0
    assert problem.masses.sum() == pytest.approx(1, abs=1e-9)


@by_name(DRAWN)
def test_exact_draws_have_the_masses_and_moments(problem):
    """Five standard errors each."""
    draws = problem.draw(COUNT, seed=1)
    assert draws.shape == (COUNT, *problem.start.shape)
    shares = np.bincount(problem.mode(draws), minlength=problem.modes) / COUNT
    errors = np.sqrt(problem.masses * (1 - problem.masses) / COUNT)
    assert np.all(np.abs(shares - problem.masses) <= 5 * errors + 1e-9)
    squares = (draws - problem.mean) ** 2
    mean_error, square_error = np.sqrt(problem.variance / COUNT), squares.std(axis=0) / COUNT**0.5
    assert np.all(np.abs(draws.mean(axis=0) - problem.mean) <= 5 * mean_error)
    assert np.all(np.abs(squares.mean(axis=0) - problem.variance) <= 5 * square_error)


@by_name(DRAWN)
def test_exact_draws_are_near_the_truth_and_a_single_mode_is_not(problem, wrap):
    """The expected total variation of n draws is below ½ Σ √(m/n): five of it; one mode of mass m is 1 − m off."""
    draws = problem.draw(COUNT, seed=2)
    samples = wrap(draws.reshape(4, COUNT // 4, *problem.start.shape))
    bound = 0.5 * np.sum(np.sqrt(problem.masses / COUNT))
    assert problem.distance(samples) < 5 * bound
    assert np.all(problem.chain_distances(samples) < 5 * 2 * bound)
    assert problem.moment_error(samples) < 5 / COUNT**0.5
    for label in np.unique(problem.mode(draws))[:3]:
        single = draws[problem.mode(draws) == label][None]
        assert problem.distance(wrap(single)) == pytest.approx(1 - problem.masses[label], abs=1e-6)


@by_name(PLANE)
def test_a_grid_over_the_energy_itself_finds_the_same_truth(problem):
    """Quadrature in Cartesian coordinates of `energy` and `mode` alone; cells on the border of two modes err."""
    reach, count = (12.0, 601) if problem.name == "mixture-2d" else (6.5, 651)
    line = jnp.linspace(-reach, reach, count)
    points = jnp.stack(jnp.meshgrid(line, line), axis=-1).reshape(-1, 2)
    energy = np.asarray(jax.jit(jax.vmap(problem.energy))(points), float)
    probability = np.exp(energy.min() - energy)
    probability /= probability.sum()
    points = np.asarray(points, float)
    masses = np.bincount(problem.mode(points), probability, minlength=problem.modes)
    mean = probability @ points
    np.testing.assert_allclose(masses, problem.masses, atol=5e-4)
    np.testing.assert_allclose(mean, problem.mean, atol=5e-4)
    np.testing.assert_allclose(probability @ (points - mean) ** 2, problem.variance, rtol=1e-3)
