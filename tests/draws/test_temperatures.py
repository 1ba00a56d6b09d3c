"""Every temperature from one run, against quadrature: reweighted draws, the table, the density of states, refusals."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.draws.samples import Samples
from contourmc.draws.thermodynamics import _columns
from contourmc.problems import DoubleWell

WELL = DoubleWell()
GRID = np.stack(np.meshgrid(np.linspace(-3, 3, 1201), np.linspace(-9, 9, 1201), indexing="ij"), axis=-1)
ENERGIES = 20.0 * (GRID[..., 0] ** 2 - 1) ** 2 + 0.42365 * GRID[..., 0] + 2 * (GRID[..., 1] - 0.5 * GRID[..., 0]) ** 2
CELL = 0.005 * 0.015


class Truth:
    """log Z(T), mean energy, heat capacity and entropy of the double well, by quadrature."""

    def __init__(self, temperature: float):
        weights = np.exp((ENERGIES.min() - ENERGIES) / temperature)
        self.log_z = np.log(weights.sum() * CELL) - ENERGIES.min() / temperature
        weights /= weights.sum()
        self.mean = np.sum(weights[..., None] * GRID, axis=(0, 1))
        self.energy = np.sum(weights * ENERGIES)
        self.heat_capacity = np.sum(weights * (ENERGIES - self.energy) ** 2) / temperature**2
        self.entropy = self.energy / temperature + self.log_z


@pytest.fixture(scope="module")
def run() -> Samples:
    return cm.sample(WELL.energy, init=WELL.start, steps=100_000, chains=6, thin=10, seed=1)


def test_all_columns_agree_with_quadrature(run):
    """Each within four standard errors of 5 degrees of freedom: beyond by chance once in 100; all 24 fixed by the seed.

    From the lowest temperature of the run to its highest.
    """
    low, high = run.temperature_range()
    temperatures = [1.01 * low, 0.5, 1.5, 2.5, 4.0, 0.99 * high]
    assert low < 0.3
    assert high > 4
    table, own = run.thermodynamics(temperatures), Truth(1.0)
    for i, temperature in enumerate(temperatures):
        truth = Truth(temperature)
        for column, expected in (
            (table.log_normaliser, truth.log_z - own.log_z),
            (table.energy, truth.energy),
            (table.heat_capacity, truth.heat_capacity),
            (table.entropy, truth.entropy - own.entropy),
        ):
            assert abs(column.value[i] - expected) < 4 * column.error[i], (temperature, column)
    # and the errors are small enough to say something, away from the ends
    assert np.all(table.log_normaliser.error[1:4] < 0.05)
    assert table.log_normaliser.error[-1] < 0.03  # not even at the end is much beyond all draws
    assert np.all(table.energy.error[1:4] < 0.05 * np.array([Truth(t).energy for t in temperatures[1:4]]) + 0.05)


def test_without_the_flattening_in_the_weights_it_is_wrong(run):
    """The broken twin: weights without Ψ."""
    broken = replace(run, log_weights=np.zeros_like(run.log_weights))
    expected = Truth(1.5).log_z - Truth(1.0).log_z
    value, error, _ = run.log_normaliser(1.5)
    assert abs(value - expected) < 4 * error
    assert abs(_columns(broken, 1.5).value[0] - expected) > 5  # where the right one is off by 0.01


def test_one_temperature_is_a_row_of_the_table(run):
    value, error, effective = run.log_normaliser(2.0)
    table = run.thermodynamics([2.0])
    assert (value, error, effective) == (table.log_normaliser.value, table.log_normaliser.error, table.effective)
    assert f"{value:.4f} ± {error:.4f}" in str(run.log_normaliser(2.0))
    header, row = str(table).splitlines()
    assert header.split()[:3] == ["T", "log", "Z"]
    assert row.split()[:2] == ["2", f"{value:.4f}"]
    assert run.log_normaliser(1.0)[:2] == pytest.approx((0, 0), abs=1e-9)
    assert len(run.thermodynamics().temperatures) == 40


def test_estimates_at_another_temperature(run):
    """The mean to four standard errors; everything else follows the weights."""
    hot = run.at_temperature(2.0)
    error = np.asarray(hot.standard_error())
    assert np.all(np.abs(hot.mean() - Truth(2.0).mean) < 4 * error)
    assert np.all(error < 0.1)
    weights = np.exp(np.asarray(run.log_weights, float) + 0.5 * np.asarray(run.energies, float))
    np.testing.assert_allclose(hot.weights, weights / weights.sum(), rtol=1e-6)
    assert hot.variance().shape == hot.quantile(0.5).shape == (2,)
    assert np.all(np.asarray(hot.ess()) > 100)
    assert sum(mode.mass for mode in hot.modes()) == pytest.approx(1)
    assert hot.resample(7).shape == (7, 2)
    assert hot.summary()["x[0]"].mean == pytest.approx(hot.mean()[0])
    assert hot.diagnose().summary


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_the_absolute_normaliser(run, temperature):
    """By bridge sampling, to four standard errors; the wells are not Gaussian, and at T = 3 they touch."""
    found = run.at_temperature(temperature).log_evidence()
    assert found.value == pytest.approx(Truth(temperature).log_z, abs=4 * found.error)
    assert found.error < 0.01


def test_temperatures_can_be_changed_again(run):
    """Back at τ all is as before; and a second change counts from the first."""
    assert run.at_temperature(1.0) is run
    there = run.at_temperature(2.0)
    back = there.at_temperature(1.0)
    np.testing.assert_allclose(back.weights, run.weights, rtol=1e-6)
    expected = run.log_normaliser(3.0).value - run.log_normaliser(2.0).value
    assert there.log_normaliser(3.0).value == pytest.approx(expected, abs=1e-6)


def test_the_density_of_states_is_that_of_the_grid(run):
    """log g in every bin, by counting cells of the grid: within five standard errors, and 0.02 for the cells."""
    found = run.density_of_states()
    width = found.energies[1] - found.energies[0]
    edges = np.append(found.energies - width / 2, found.energies[-1] + width / 2)
    cells, _ = np.histogram(ENERGIES, edges)
    used = (cells > 100) & (found.error < 0.2)  # the highest bins were visited once or never
    assert used.sum() > 10
    expected = np.log(cells[used] * CELL / width) - Truth(1.0).log_z
    assert np.all(np.abs(found.log_density[used] - expected) < 5 * found.error[used] + 0.02)


def test_refusals(run):
    low, high = run.temperature_range()
    for temperature, words in (
        (0.0, "finite number above 0"),
        (-1.0, "finite number above 0"),
        (float("nan"), "finite number above 0"),
        (float("inf"), "finite number above 0"),
        (0.9 * low, r"only \d+ draws have weight there.*from .* to"),
        (1.1 * high, r"reach too far above .* from .* to"),
        (1e9, "reach too far"),
    ):
        for ask in (run.at_temperature, run.log_normaliser, lambda t: run.thermodynamics([1.0, t])):
            with pytest.raises(ValueError, match=rf"temperature=.*{words}"):
                ask(temperature)
    with pytest.raises(ValueError, match="temperatures"):
        run.thermodynamics([])


def test_far_beyond_the_range_estimates_would_be_wrong(run):
    """What the refusal protects from: at twice the highest temperature the heat capacity is off by a fifth."""
    temperature = 2 * run.temperature_range()[1]
    value, _ = _columns(run, temperature)
    assert value[2] < 0.8 * Truth(temperature).heat_capacity


def without_draws(run: Samples) -> Samples:
    names = ("draws", "energies", "log_weights", "multipliers")
    return replace(run, steps=run.steps[:0], **{name: getattr(run, name)[:, :0] for name in names})


def test_refused_runs(run):
    for broken, words in (
        (replace(run, flattening=None), r"kernel=.*no weights"),
        (replace(run, exact=False), r"target=.*noise of variance σ².*off by σ²/2"),
        (replace(run, flattening=replace(run.flattening, temperature=None)), r"temperature=None.*constant"),
        (replace(run, flattening=replace(run.flattening, temperature=0.0)), r"temperature=0.0.*constant"),
        (without_draws(run), r"draws=0.*run longer"),
    ):
        for ask in (
            lambda run: run.log_normaliser(1.5),
            lambda run: run.at_temperature(1.5),
            lambda run: run.thermodynamics(),
            lambda run: run.density_of_states(),
            lambda run: run.log_evidence(),
        ):
            with pytest.raises(ValueError, match=words):
                ask(broken)


# --- Chains that each learnt their own θ, at a temperature of their own ------------------------------

COLD = 0.5


@pytest.fixture(scope="module")
def apart() -> Samples:
    kernel = cm.contour(cm.adjusted(0.02, COLD), cm.Partition(low=0.2, width=1.0, bins=24))
    return cm.sample(lambda x: jnp.sum(x**2) / 2, init=jnp.zeros(2), steps=40_000, kernel=kernel, chains=4, thin=8)


def test_the_kernels_temperature_counts(apart):
    """A Gaussian in the plane has Z(T) = 2πT, ⟨U⟩ = T and S = 1 + log 2πT; within four standard errors."""
    assert apart.flattening.temperature == COLD
    for temperature in (0.4, 1.0, 1.5):
        value, error, _ = apart.log_normaliser(temperature)
        assert abs(value - np.log(temperature / COLD)) < 4 * error
        assert error < 0.1
        table = apart.thermodynamics([temperature])
        assert abs(table.energy.value[0] - temperature) < 4 * table.energy.error[0]
        assert abs(table.entropy.value[0] - np.log(temperature / COLD)) < 4 * table.entropy.error[0]
    np.testing.assert_allclose(apart.at_temperature(1.0).weights.sum(axis=1), 1 / 4)


def test_a_scheduled_temperature_is_none():
    kernel = cm.csgld(0.1, cm.Partition(0.2, 1.0, 10), temperature=cm.ExponentialDecay(1.0, 0.99, every=10))
    assert kernel.flattening.temperature is None
