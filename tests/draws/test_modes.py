"""Modes of draws that are right: all of them, each with its own draws, whatever the pilot found."""

import pickle
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from tests.draws.synthetic import samples_of

import contourmc as cm
from contourmc.draws.basins import LEAST, Basins
from contourmc.draws.quench import Minima, grouped
from contourmc.problems.mixtures import MultivariateMixture

CHAINS, DRAWS, MODES = 4, 3000, 20


def run_of(draws, energy, basins=None):
    return samples_of(draws, basins=basins, target=cm.ExactEnergy(energy))


@pytest.fixture(scope="module")
def mixture():
    """Twenty Gaussians in five dimensions, 12 apart or more, with widths and masses of their own."""
    random = np.random.default_rng(0)
    centres = 6 * np.array([[int(bit) * 2 - 1 for bit in f"{i:05b}"] for i in range(MODES)])
    weights, scales = random.dirichlet(np.full(MODES, 2.0)), np.exp(random.uniform(-0.5, 0.5, MODES))
    means = tuple(map(tuple, centres.astype(float).tolist()))
    return MultivariateMixture(tuple(weights.tolist()), means, tuple(scales.tolist()))


@pytest.fixture(scope="module")
def run(mixture):
    """Independent draws; the pilot knew every second minimum."""
    draws = np.random.default_rng(1).permutation(mixture.draw(CHAINS * DRAWS)).reshape(CHAINS, DRAWS, 5)
    known = np.array(mixture.means, np.float32)[::2]
    return run_of(draws, mixture.energy, Basins(known, np.zeros(len(known)), np.ones(5)))


def test_every_mode_is_listed_with_all_its_draws(run, mixture):
    """The shares of the draws, exactly; the truth within four errors, as for any expectation."""
    modes = run.modes()
    labels = [int(mixture.mode(mode.minimum)) for mode in modes]
    assert sorted(labels) == list(range(MODES))
    shares = np.bincount(mixture.mode(run.draws).ravel(), minlength=MODES) / run.energies.size
    np.testing.assert_allclose([mode.mass for mode in modes], shares[labels], atol=1e-3)
    for label, mode in zip(labels, modes, strict=True):
        assert abs(mode.mass - mixture.masses[label]) < 4 * mode.error + 1e-3
        np.testing.assert_allclose(mode.minimum, mixture.means[label], atol=0.01)
        assert mode.energy == pytest.approx(float(mixture.energy(jnp.array(mixture.means[label]))), abs=1e-3)
    assert [mode.mass for mode in modes] == sorted((mode.mass for mode in modes), reverse=True)


def test_the_error_is_that_of_the_expectation(run, mixture):
    mode = run.modes()[0]
    label = int(mixture.mode(mode.minimum))
    of_component = replace(run, draws=mixture.mode(run.draws) == label, target=None, basins=None)
    mean, error = of_component.expectation(lambda hit: hit, error=True)
    assert mode.mass == pytest.approx(mean, abs=1e-3)
    assert mode.error == pytest.approx(error, rel=0.05)


def test_files_pickles_and_the_report_have_the_same_modes(run, tmp_path):
    expected = [(mode.mass, mode.error, mode.energy) for mode in run.modes()]
    loaded, again = cm.Samples.load(run.save(tmp_path / "run.nc")), pickle.loads(pickle.dumps(run))
    assert [(mode.mass, mode.error, mode.energy) for mode in loaded.modes()] == expected
    assert [(mode.mass, mode.error, mode.energy) for mode in again.modes()] == expected
    assert "modes" not in [finding.check for finding in loaded.diagnose().findings]


def test_a_minimum_that_only_the_pilot_found_takes_no_draws(run, mixture):
    """The narrowest mode, whose energy is low, without its draws: none of its neighbours' go to it."""
    narrow = int(np.argmin(np.asarray(mixture.scales)))
    labels = mixture.mode(run.draws)
    elsewhere = run.draws[labels != narrow][: CHAINS * 1000].reshape(CHAINS, 1000, 5)
    minima = np.array(mixture.means, np.float32)
    partial = run_of(elsewhere, mixture.energy, Basins(minima, np.zeros(MODES), np.ones(5)))
    modes = {int(mixture.mode(mode.minimum)): mode for mode in partial.modes()}
    assert modes[narrow].mass == 0
    shares = np.bincount(mixture.mode(elsewhere).ravel(), minlength=MODES) / elsewhere[..., 0].size
    np.testing.assert_allclose([modes[label].mass for label in range(MODES)], shares, atol=1e-3)
    assert "minima" in [finding.check for finding in partial.diagnose().findings]


def test_without_the_energy_the_pilots_minima_are_named_as_such(run):
    """As of a run whose folder is opened: the nearest minimum, and a note that says so."""
    unknown = replace(run, target=None)
    assert len(unknown.modes()) == MODES // 2
    notes = {finding.check: finding.message for finding in unknown.diagnose().findings}
    assert "minima that the pilot found" in notes["modes"]


def test_a_ring_of_minima_is_one_mode():
    """U = ½ ((ρ − 4)/0.3)²: every draw comes to rest at a place of its own."""
    random = np.random.default_rng(2)
    angle, radius = random.uniform(0, 2 * np.pi, (4, 500)), random.normal(4, 0.3, (4, 500))
    draws = radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    ring = run_of(draws, lambda x: ((jnp.sqrt(jnp.sum(x**2) + 1e-4) - 4) / 0.3) ** 2 / 2)
    (mode,) = ring.modes()
    assert mode.mass == pytest.approx(1)
    assert np.linalg.norm(mode.minimum) == pytest.approx(4, abs=0.01)


def test_minima_without_number_are_joined_to_few():
    """On a sphere in 30 dimensions all minima are far from one another, with a barrier on every straight line."""
    points = np.random.default_rng(3).normal(size=(100, 30))
    points *= 10 / np.linalg.norm(points, axis=1, keepdims=True)
    energies = lambda x: (np.linalg.norm(x, axis=1) - 10) ** 2  # noqa: E731
    groups = grouped(Minima(points, np.zeros(100), np.ones(100, bool)), energies, 1.0, 100)
    assert np.bincount(groups).max() > 90


def test_a_descent_that_did_not_end_joins_nothing():
    """Two wells and a point above the barrier, from which the energy falls to both."""
    points = np.array([[-1.0], [1.0], [0.0], [-0.9]])
    energies = lambda x: 5 * (x[:, 0] ** 2 - 1) ** 2  # noqa: E731
    minima = Minima(points, energies(points), np.array([True, True, False, False]))
    groups = grouped(minima, energies, 1.0, 4)
    assert groups[0] != groups[1]
    assert groups[3] == groups[0]
    assert groups[2] in groups[:2]


def test_a_mode_of_little_mass_is_found(mixture):
    """Ten draws of 12,000 are in one of the modes: a sample of 192 by weight seldom has one of them."""
    labels = mixture.mode(draws := mixture.draw(60_000, 5))
    rare = np.concatenate([draws[labels == 3][:10], draws[labels != 3][: CHAINS * DRAWS - 10]])
    draws = np.random.default_rng(4).permutation(rare).reshape(CHAINS, DRAWS, 5)
    masses = {int(mixture.mode(mode.minimum)): mode.mass for mode in run_of(draws, mixture.energy).modes()}
    assert masses[3] == pytest.approx(10 / (CHAINS * DRAWS))
    assert min(masses.values()) >= LEAST
