"""The log evidence against closed forms, with its error bars, references of the user's, walls, and refusals."""

import pickle
import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.draws import evidence
from contourmc.draws.bridging import integral
from contourmc.draws.samples import Samples
from contourmc.problems import MultivariateMixture

MIXTURE = MultivariateMixture((0.3, 0.7), ((-4.0, 0.0), (4.0, 1.0)), (1.0, 0.7))
SHIFT = 3.0  # log ∫e^{−U}


def energy(x):
    return MIXTURE.energy(x) - SHIFT


@pytest.fixture(scope="module")
def run() -> Samples:
    return cm.sample(energy, init=MIXTURE.start, steps=60_000, chains=6, thin=10)


def test_the_evidence_of_a_mixture(run):
    """Its error is about 0.001, of 8,192 draws for each half: four of them."""
    found = run.log_evidence()
    assert found.value == pytest.approx(SHIFT, abs=4 * found.error)
    assert 0 < found.error < 0.01
    assert found.overlap > 0.9
    assert f"{found.value:.4f} ± {found.error:.4f}" in str(found)


def test_error_bars_cover_the_truth(run):
    """Over 10 seeds of the reference alone, they scatter by less than they say, since the run is one of many."""
    found = [run.log_evidence(seed=seed) for seed in range(10)]
    errors = np.array([one.value - SHIFT for one in found]) / np.array([one.error for one in found])
    assert np.sum(np.abs(errors) < 2) >= 8
    assert run.log_evidence(seed=3) == run.log_evidence(seed=3)


def test_the_evidence_at_another_temperature(run):
    """log Z(2): far from both modes they overlap, and quadrature knows it."""
    found = run.at_temperature(2.0).log_evidence()
    x = np.stack(np.meshgrid(np.linspace(-15, 15, 601), np.linspace(-12, 12, 601), indexing="ij"), axis=-1)
    energies = np.asarray(jax.vmap(jax.vmap(energy))(jnp.asarray(x, jnp.float32)), float)
    truth = np.log(np.sum(np.exp(-energies / 2)) * 0.05 * 0.04)
    assert found.value == pytest.approx(truth, abs=4 * found.error)
    assert found.error < 0.01
    assert found.value - run.log_evidence().value == pytest.approx(run.log_normaliser(2.0).value, abs=0.05)


def test_a_parameter_without_free_coordinates():
    """The weights of a mixture of one component are a simplex of one number, 1: nothing of them is sampled."""

    def energy(position):
        return jnp.sum(position["x"] ** 2) / 2 - jnp.sum(jnp.log(position["weights"]))

    target = cm.transformed(energy, {"weights": cm.simplex})
    found = cm.sample(target, init={"x": jnp.zeros(2), "weights": jnp.ones(1)}, steps=20_000, chains=4).log_evidence()
    assert found.value == pytest.approx(np.log(2 * np.pi), abs=4 * found.error)
    assert found.error < 0.01


def test_broken_twins(run, monkeypatch):
    """Without the weights, and without the density of the reference, it is off by more than 0.5."""
    monkeypatch.setattr(integral, "MOST_FITTED", 1000)
    unweighted = replace(run, log_weights=np.zeros_like(run.log_weights))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert abs(unweighted.log_evidence().value - SHIFT) > 0.5
        flat = lambda self, x: np.zeros(len(x))  # noqa: E731
        monkeypatch.setattr(integral.Gaussians, "log_density", flat)
        assert abs(run.log_evidence().value - SHIFT) > 0.5


def test_an_error_in_the_masses_hardly_matters(run):
    """Weights of one mode times 1.5 shift its mass by 0.09 in both halves: log Z moves by 0.09²/0.21 at most."""
    left = np.asarray(run.draws)[..., 0] < 0
    shifted = replace(run, log_weights=run.log_weights + np.where(left, np.log(1.5), 0.0))
    assert abs(shifted.log_evidence().value - SHIFT) < 0.05


def test_a_tree_of_arrays_with_a_wall():
    """Two exponentials and a normal: log ∫ = log √(2π), from one chain, by stretches of it."""

    def bounded(position):
        inside = jnp.all(position["a"] > 0)
        return jnp.where(inside, jnp.sum(position["a"]) + position["b"][0, 0] ** 2 / 2, jnp.inf)

    start = {"a": jnp.ones(2), "b": jnp.zeros((1, 1))}
    kernel = cm.contour(cm.adjusted(0.1), cm.Partition(low=1.0, width=2.0, bins=6), theta=np.full(6, 1 / 6))
    found = cm.sample(bounded, init=start, steps=60_000, kernel=kernel, chains=1, thin=10).log_evidence()
    assert found.value == pytest.approx(0.5 * np.log(2 * np.pi), abs=4 * found.error)
    assert found.error < 0.05


# --- A kernel with its own temperature, θ in each chain, and no pilot: a mixture must be found by division --------


@pytest.fixture(scope="module")
def apart() -> Samples:
    partition, omega = cm.Partition(low=-1.2, width=1.0, bins=14), cm.Polynomial(10.0, 0.6, 100.0)
    kernel = cm.contour(cm.adjusted(0.3, 0.5), partition, omega=omega)
    return cm.sample(energy, init=MIXTURE.start, steps=100_000, kernel=kernel, chains=4, thin=20)


def test_chains_with_a_theta_each(apart):
    """log ∫e^{−2U}: components do not overlap at T = 1/2, so that it is log Σ_k w_k²/(4πσ_k²) + 2·SHIFT.

    θ is still being learnt, and the mass of the left mode is 0.14 for 0.08 in both halves. What that does to log Z,
    −0.003 in each of eight seeds, is not part of its error: so 0.008, four times the error with independent draws.
    """
    found = apart.log_evidence()
    truth = np.log(0.09 / (4 * np.pi) + 0.49 / (4 * np.pi * 0.49)) + 2 * SHIFT
    assert found.value == pytest.approx(truth, abs=0.008)
    assert found.overlap > 0.8


# --- Files, and what a run knows of its target --------------------------------------------------------


def test_a_run_from_a_file_needs_its_energy(run, tmp_path):
    for back in (cm.Samples.load(run.save(tmp_path / "run.nc")), pickle.loads(pickle.dumps(run))):
        assert back.target is None
        with pytest.raises(ValueError, match=r"energy=None.*does not know it.*log_evidence\(energy=…\)"):
            back.log_evidence()
        assert back.log_evidence(energy=energy).value == pytest.approx(run.log_evidence().value, abs=1e-3)
        with pytest.raises(ValueError, match=r"energy='.*at a draw whose energy was.*constants included"):
            back.log_evidence(energy=MIXTURE.energy)
    with pytest.raises(ValueError, match="it has noise"):
        run.log_evidence(energy=cm.NoisyEnergy(energy, 0.0, 1.0))
    with pytest.raises(ValueError, match=r"energy=None"):
        run.map(lambda x: x[0]).log_evidence()


@pytest.mark.parametrize("listed", [False, True])
def test_energies_with_noise_and_lists_of_targets_are_refused(listed):
    kernel = cm.csgld(0.1, cm.Partition(0.5, 1.0, 8))
    target = [cm.ExactEnergy(lambda x: x**2 / 2)] * 2 if listed else cm.NoisyEnergy(lambda x: x**2 / 2, 0.0, 4.0)
    made = cm.sample(target, init=0.0, steps=400, kernel=kernel, chains=2)
    assert made.target is None
    assert made.exact == listed
    words = r"energy=None.*a target for each chain" if listed else r"target='energies with noise'.*σ²/2"
    with pytest.raises(ValueError, match=words):
        made.log_evidence()


def test_runs_without_what_it_takes_are_refused(run):
    few = replace(
        run, draws=run.draws[:, :10], steps=run.steps[:10],
        **{name: getattr(run, name)[:, :10] for name in ("energies", "log_weights", "multipliers")},
    )  # fmt: skip
    for made, words in (
        (replace(run, flattening=None), r"kernel=.*no weights"),
        (replace(run, draws=None), r"store=False.*store=True"),
        (few, r"draws=60.*100 or more"),
    ):
        with pytest.raises(ValueError, match=words):
            made.log_evidence()
    with pytest.raises(ValueError, match="seed"):
        run.log_evidence(seed=-1)


def test_an_energy_without_a_bottom_and_positions_that_are_too_large(run, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(evidence, "energies_of", lambda *_: np.full(10_000, -np.inf))
        with pytest.raises(ValueError, match=r"energy='−∞ at a draw"):
            run.log_evidence()
    monkeypatch.setattr(evidence, "LARGEST", 1)
    with pytest.raises(ValueError, match=r"draws='positions of 2 numbers'"):
        run.log_evidence()


# --- References of the user's --------------------------------------------------------------------------


class Normal:
    """A normal distribution, as NumPyro has them; `constant` spoils its density."""

    def __init__(self, mean, scale, constant: float = 0.0):
        self.mean, self.scale, self.constant = jnp.asarray(mean), scale, constant

    def sample(self, key, sample_shape=()):
        return self.mean + self.scale * jax.random.normal(key, (*sample_shape, *self.mean.shape))

    def log_prob(self, x):
        white = (x - self.mean) / self.scale
        return jnp.sum(-0.5 * white**2 - jnp.log(self.scale) - 0.5 * jnp.log(2 * jnp.pi)) + self.constant


class Seeded(Normal):
    """The same, as TFP has them."""

    def sample(self, sample_shape=(), seed=None):
        return super().sample(seed, sample_shape)


@pytest.mark.parametrize("kind", [Normal, Seeded])
def test_a_reference_of_ones_own(run, kind):
    found = run.log_evidence(reference=kind(jnp.zeros(2), 4.0))
    assert found.value == pytest.approx(SHIFT, abs=4 * found.error)
    assert found.error < 0.05


def test_poor_overlap_is_said(run):
    with pytest.warns(UserWarning, match=r"overlap by \d.\d% only.*more than its error"):
        found = run.log_evidence(reference=Normal(jnp.array([-4.0, 0.0]), 0.1))
    assert found.overlap < 0.1


class Coordinates(Normal):
    """A density for each coordinate."""

    def log_prob(self, x):
        return -0.5 * (x / self.scale) ** 2


def test_references_that_are_not_possible(run):
    for reference, words in (
        (Normal(jnp.zeros(2), 4.0, constant=1.0), r"integral is e\^\((1.00|0.99).*not normalised"),
        (Normal(jnp.zeros(2), 4.0, constant=-0.2), r"integral is e\^\(-0.(20|19).*not normalised"),
        (Normal(jnp.zeros(3), 4.0), r"draws of shapes \(10000, 3\).*\(10000, 2\)"),
        (Coordinates(jnp.zeros(2), 4.0), r"log_prob of shape \(2,\).*one number"),
        (3.0, r"reference=3.0.*sample\(key, sample_shape\)"),
    ):
        with pytest.raises(ValueError, match=words):
            run.log_evidence(reference=reference)
