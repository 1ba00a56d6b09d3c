"""Labels, depths and barriers of the problems in the plane."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc.problems import DoubleWell, NineModes, Problem, Rastrigin, Ring


def barrier(problem: Problem, path: np.ndarray) -> float:
    """The highest energy along a path of points, above its start."""
    energies = np.asarray(jax.jit(jax.vmap(problem.energy))(jnp.asarray(path)))
    return float(energies.max() - energies[0])


def test_nine_modes_are_labelled_row_by_row():
    points = np.array([[-1.6, -1.6], [0.0, -1.6], [1.6, 1.6]])
    np.testing.assert_array_equal(NineModes().mode(points), [0, 1, 8])
    masses = NineModes().masses.reshape(3, 3)
    np.testing.assert_allclose(masses, masses.T)
    assert masses[1, 1] > masses[0, 1] > masses[0, 0]


def test_the_double_well_has_its_barrier_and_masses():
    well, line = DoubleWell(), np.linspace(1, -1, 401)
    path = np.stack([line, well.slope * line], axis=-1)
    assert barrier(well, path) == pytest.approx(20, abs=0.5)
    np.testing.assert_allclose(well.masses, [0.7, 0.3], atol=0.01)
    np.testing.assert_array_equal(well.mode(np.array([[-1.0, 3.0], [1.0, -3.0]])), [0, 1])
    np.testing.assert_allclose(DoubleWell(tilt=0.0).masses, [0.5, 0.5])


def test_rastrigin_cells_and_what_is_outside():
    problem = Rastrigin()
    points = np.array([[-2.0, -2.0], [0.1, -0.1], [2.4, 2.4], [2.6, 0.0], [0.0, -9.0]])
    np.testing.assert_array_equal(problem.mode(points), [0, 12, 24, 25, 25])
    assert 1 - problem.masses[25] > 0.999
    assert problem.masses[:25].argmax() == 12
    np.testing.assert_allclose(problem.masses[:25], problem.masses[24::-1])
    path = np.stack([np.linspace(0, 1, 201), np.zeros(201)], axis=-1)
    assert barrier(problem, path) == pytest.approx(8.2, abs=0.1)


def test_the_wells_of_the_ring_are_of_unequal_depth():
    ring = Ring()
    angles = np.arange(6) * np.pi / 3
    wells = 4 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    np.testing.assert_array_equal(ring.mode(wells), np.arange(6))
    np.testing.assert_array_equal(ring.mode(0.5 * wells), np.arange(6))
    assert ring.masses.argmin() == 0
    assert np.diff(np.sort(ring.masses)).min() > 0.01
    arc = np.linspace(0, np.pi / 3, 201)
    assert barrier(ring, 4 * np.stack([np.cos(arc), np.sin(arc)], axis=-1)) == pytest.approx(6, abs=0.5)


def test_a_ring_without_a_tilt_has_equal_wells():
    np.testing.assert_allclose(Ring(tilt=0.0).masses, 1 / 6)
