"""Correlated coordinates, and basins of very different volume: runs that nothing was chosen for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

STEPS, CHAINS = 20_000, 8


def run_on(energy, start, steps=STEPS):
    return cm.sample(energy, init=start, steps=steps, chains=CHAINS, progress=False)


def test_a_rotated_frame_mixes_as_well_as_its_own_axes():
    """Ten dimensions, condition number 10⁴. Effective sizes are known to some 20%; without the covariance the rotated
    one is a hundred times smaller.
    """
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))[0]
    precisions = np.geomspace(1, 1e-4, 10)
    rotated, own = jnp.asarray((axes * precisions) @ axes.T), jnp.asarray(precisions)
    turned = run_on(lambda x: x @ rotated @ x / 2, jnp.zeros(10))
    straight = run_on(lambda x: jnp.sum(own * x**2) / 2, jnp.zeros(10))
    assert turned.settings["automatic"]["correlated"]
    assert not straight.settings["automatic"]["correlated"]
    assert np.min(turned.ess()) > 0.5 * np.min(straight.ess())
    along = turned.expectation(lambda x: (x @ jnp.asarray(axes)) ** 2 * own)  # variances along the axes, in units of 1
    np.testing.assert_allclose(along, 1, atol=0.1)  # some 2,000 effective draws: √(2/2000) = 0.03; 3 of that
    assert len(turned.modes()) == 1


WIDTHS, WEIGHTS = jnp.array([1.0, 2.0]), jnp.array([0.4, 0.6])
CENTRES = jnp.stack([jnp.full(20, -1.5), jnp.full(20, 1.5)])


def unequal(x):
    """Two modes in 20 dimensions, the second with 2²⁰ times the volume of the first, and 14 units of energy higher."""
    parts = -jnp.sum((x - CENTRES) ** 2, axis=1) / (2 * WIDTHS**2) - 20 * jnp.log(WIDTHS)
    return -jax.nn.logsumexp(parts, b=WEIGHTS)


def test_volumes_that_differ_by_a_million():
    """Masses to 0.03: some 2,000 accepted jumps of all chains give √(0.24/2000) = 0.01."""
    run = run_on(unequal, CENTRES[0])
    assert [mode.mass for mode in run.modes()] == pytest.approx([0.6, 0.4], abs=0.03)
    assert run.settings["automatic"]["jumps"]["basins"] == 2
    assert run.diagnose().ok


def test_from_the_wide_mode_the_narrow_one_is_not_found_and_the_diagnosis_says_what_it_cannot_know():
    run = run_on(unequal, CENTRES[1])
    assert len(run.modes()) == 1
    assert "one place" in str(run.diagnose())
    assert "never visited" in str(run.diagnose())
