"""log θ, Ψ and its slope, against the formulas of the paper."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc import Partition
from contourmc.flattening.theta import LogTheta, at_bin, interpolate, log_theta, normalised

FLAT_BELOW = ["smooth", "left", "centred"]  # log Ψ is constant in bin 0
SCHEMES = [*FLAT_BELOW, "right"]
PARTITION = Partition(low=2.0, width=0.5, bins=12)  # edges 2, 2.5, … 7


def random_theta(bins, seed=0):
    return jnp.asarray(np.random.default_rng(seed).dirichlet(np.ones(bins)), jnp.result_type(float))


def theta_of(log):
    return np.exp(np.asarray(log.levels, float) + float(log.offset))


# --- Ψ and its slope ---------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnums=(1, 3))
def interpolate_many(log, partition, energies, scheme):
    return jax.vmap(lambda energy: interpolate(log, partition, energy, scheme))(energies)


def psi(log, scheme, energies, partition=PARTITION):
    """log Ψ and slope at many energies; always 1,000 of them, so that this compiles once for a scheme."""
    padded = jnp.asarray(np.resize(energies, 1000), jnp.float32)
    found = interpolate_many(log, partition, padded, scheme)
    values, slopes = (np.asarray(array, float)[: len(energies)] for array in found)
    return values, slopes


@pytest.mark.parametrize("scheme", SCHEMES)
def test_psi_is_continuous(scheme):
    """Across an edge log Ψ moves by no more than slope × distance, and float32 rounding of it (1e-5)."""
    log = log_theta(random_theta(12))
    tiny = 1e-4
    below, slope_below = psi(log, scheme, PARTITION.edges - tiny)
    above, slope_above = psi(log, scheme, PARTITION.edges + tiny)
    steepest = max(np.abs(slope_below).max(), np.abs(slope_above).max())
    assert np.abs(above - below).max() < 2 * tiny * steepest + 1e-5
    assert np.abs(np.diff(log.levels)).max() > 1  # a step Ψ would jump by that much


@pytest.mark.parametrize(("scheme", "place"), [("left", 1.0), ("centred", 0.5), ("right", 0.0)])
def test_psi_meets_theta_once_in_every_inner_bin(scheme, place):
    """At the upper edge, the centre or the lower edge."""
    theta = random_theta(12)
    energies = 2.0 + 0.5 * (np.arange(10) + place)
    np.testing.assert_allclose(psi(log_theta(theta), scheme, energies)[0], np.log(theta[1:-1]), rtol=1e-5)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_slope_is_the_derivative_of_psi(scheme):
    """By central differences, exact for lines and parabolas, to both sides of the kink that `centred` has."""
    log = log_theta(random_theta(12))
    h = 0.05
    centres = 2.25 + 0.5 * np.arange(10)
    for energies in (centres - 0.125, centres + 0.125, [1.0, 1.9, 7.1, 30.0]):
        energies = np.asarray(energies)
        numerical = (psi(log, scheme, energies + h)[0] - psi(log, scheme, energies - h)[0]) / (2 * h)
        # log Ψ is about 10, rounded to 1e-6: over 2h that is 1e-5.
        np.testing.assert_allclose(psi(log, scheme, energies)[1], numerical, atol=1e-4)


def test_slopes_of_the_paper():
    """Eq. 6 (`left`) and the supplement's alternative (`right`), in every inner bin and at its upper edge."""
    theta = np.asarray(random_theta(12), float)
    log = log_theta(jnp.asarray(theta, jnp.float32))
    differences = np.diff(np.log(theta)) / 0.5
    for inside in (0.1, 0.5, 0.9, 1.0):
        energies = 2.0 + 0.5 * (np.arange(10) + inside)  # bins 1 … 10
        np.testing.assert_allclose(psi(log, "left", energies)[1], differences[:-1], rtol=1e-4)
        np.testing.assert_allclose(psi(log, "right", energies)[1], differences[1:], rtol=1e-4)
        centred = differences[:-1] if inside <= 0.5 else differences[1:]
        np.testing.assert_allclose(psi(log, "centred", energies)[1], centred, rtol=1e-4)


def test_smooth_slope_goes_linearly_from_edge_to_edge():
    """At an edge it is that between the two bins, at the first and the last edge 0: no jump anywhere."""
    theta = np.asarray(random_theta(12), float)
    at_edges = np.diff(np.log(theta)) / 0.5
    at_edges[[0, -1]] = 0
    energies = np.linspace(1, 8, 1000)
    slopes = psi(log_theta(jnp.asarray(theta, jnp.float32)), "smooth", energies)[1]
    np.testing.assert_allclose(slopes, np.interp(energies, PARTITION.edges, at_edges), atol=1e-4)


def test_the_line_of_the_supplement_goes_on_below_the_first_edge():
    """In bin 0 the slope is (log θ(1) − log θ(0))/Δu, so that log Ψ is log θ(0) a width below the first edge."""
    log = log_theta(random_theta(12))
    values, slopes = psi(log, "right", [2.0, 1.5, 1.0, -3.0])
    slope = float(log.levels[1] - log.levels[0]) / 0.5
    np.testing.assert_allclose(slopes, slope, rtol=1e-5)
    np.testing.assert_allclose(values, float(log.levels[1]) + slope * np.array([0.0, -0.5, -1.0, -5.0]), rtol=1e-5)


def test_two_bins_of_the_supplement():
    """The only line is the one below the edge."""
    values, slopes = psi(log_theta(jnp.asarray([0.9, 0.1])), "right", [-0.25, 0.0, 5.0], Partition(0.0, 0.25, 2))
    np.testing.assert_allclose(values, np.log([0.9, 0.1, 0.1]), rtol=1e-5)
    np.testing.assert_allclose(slopes, [np.log(0.1 / 0.9) / 0.25] * 2 + [0.0], rtol=1e-5)


@pytest.mark.parametrize("scheme", FLAT_BELOW)
def test_two_bins_leave_nothing_to_flatten(scheme):
    """Both are unbounded, so the slope is 0, and Ψ must be one constant: a jump would weigh what did not happen."""
    values, slopes = psi(log_theta(jnp.asarray([0.9, 0.1])), scheme, np.linspace(-5, 5, 11), Partition(0.0, 0.25, 2))
    assert np.all(slopes == 0)
    assert np.all(values == values[0])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_unbounded_bins_are_flat(scheme):
    """A chain of the paper's own mixture runs to infinity if the last bin has a slope; `right` is not flat in bin 0."""
    log = log_theta(random_theta(12))
    below, above = [2.0, 1.9999, 0.0, -1e30, -np.inf], [7.0001, 8.0, 1e30, np.inf]
    for beyond in (below, above) if scheme in FLAT_BELOW else (above,):
        values, slopes = psi(log, scheme, beyond)
        assert np.all(slopes == 0)
        assert np.all(values == values[0])
        assert np.isfinite(values[0])


def test_step_scheme_is_the_naive_one():
    theta = random_theta(12)
    energies = np.linspace(0, 9, 500)
    values, slopes = psi(log_theta(theta), "step", energies)
    assert np.all(slopes == 0)
    bins = PARTITION.index(jnp.asarray(energies, jnp.float32))
    np.testing.assert_allclose(values, np.log(theta)[bins], rtol=1e-5)


@pytest.mark.parametrize("scheme", [*SCHEMES, "step"])
def test_the_offset_counts(scheme):
    log = log_theta(random_theta(12))
    moved = LogTheta(log.levels + 7, jnp.float32(-7))
    energies = np.linspace(0, 9, 50)
    for found, expected in zip(psi(moved, scheme, energies), psi(log, scheme, energies), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    assert at_bin(moved, jnp.int32(3)) == pytest.approx(float(at_bin(log, jnp.int32(3))), abs=1e-5)
    np.testing.assert_allclose(theta_of(normalised(moved)), theta_of(log), rtol=1e-5)
    assert normalised(moved).offset == 0


@pytest.mark.parametrize("scheme", [*SCHEMES, "step"])
@pytest.mark.parametrize("bins", [2, 10_000])
def test_few_and_many_bins(bins, scheme):
    partition = Partition(low=0.0, width=0.25, bins=bins)
    theta = random_theta(bins)
    energies = np.linspace(-1, 0.25 * bins, 1000)
    values, slopes = psi(log_theta(theta), scheme, energies, partition)
    # log Ψ lies between log θ of neighbouring bins, and is as steep as they are apart at most.
    if scheme == "right":  # which goes on below the lowest edge, as far as one likes
        energies, values, slopes = (array[energies > 0] for array in (energies, values, slopes))
    padded = np.log(np.pad(np.asarray(theta, float), 1, mode="edge"))
    index = np.asarray(partition.index(jnp.asarray(energies, jnp.float32)))
    neighbours = np.stack([padded[index], padded[index + 1], padded[index + 2]])
    assert np.all(values > neighbours.min(axis=0) - 1e-4)
    assert np.all(values < neighbours.max(axis=0) + 1e-4)
    steepest = np.abs(np.diff(neighbours, axis=0)).max(axis=0) / 0.25
    assert np.all(np.abs(slopes) <= steepest + 1e-3)
    assert np.any(slopes) == (bins > 2 and scheme != "step")  # of two bins both are unbounded


def test_psi_is_finite_between_extreme_bins():
    log = LogTheta(jnp.asarray([0.0, -300.0, -3e8, 0.0]), jnp.float32(0))
    for scheme in SCHEMES:
        values, slopes = psi(log, scheme, np.linspace(-1, 5, 100), Partition(0.0, 1.0, 4))
        assert np.all(np.isfinite(values))
        assert np.all(np.isfinite(slopes))
