"""The absolute evidence, log Z = log ∫e^{−U/τ}dx, of a run with exact energies.

By bridge sampling between the draws and a normalised reference (see `bridge.py` and `integral.py`): mixtures of
Gaussians fitted to halves of the run, one component for each mode at least, or a reference that the user gives.
"""

import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from contourmc._core.checks import require, require_seed
from contourmc._core.pytrees import shape_of_one
from contourmc.draws.bridging.integral import DensityDraws, integrate, integrate_by_halves
from contourmc.draws.quench import BATCH, energies_of
from contourmc.draws.reference import GivenReference
from contourmc.draws.temperatures import log_shares, own_temperature
from contourmc.draws.vectors import vectors_like
from contourmc.draws.weighted import WeightedDraws
from contourmc.targets.base import Target
from contourmc.targets.energies import Energy, as_target
from contourmc.targets.traced import trace_target

POOR = 0.1  # an overlap below which the error bar does not hold
LARGEST = 2000  # numbers of a position
FEWEST = 100  # draws of all chains


class LogEvidence(NamedTuple):
    """value: log ∫e^{−U/τ}dx.
    error: its standard error.
    overlap: of the draws with the reference, from 0 to 1; below 0.1 the error is not to be relied on.
    effective: how many independent draws of the run it rests on.
    """

    value: float
    error: float
    overlap: float
    effective: float

    def __str__(self) -> str:
        rests = f"{self.effective:,.0f} effective draws, overlap {self.overlap:.0%}"
        return f"{self.value:.4f} ± {self.error:.4f} ({rests})"


def log_evidence(samples: WeightedDraws, energy: Target | Energy | None, reference: Any, seed: int) -> LogEvidence:
    """The evidence of the draws, at their temperature."""
    random = np.random.default_rng(require_seed(seed))
    draws = _density_draws(samples, energy)
    if reference is None:
        found = integrate_by_halves(draws, random)
    else:
        given = GivenReference(reference, vectors_like(samples.sampled, 2))
        given.require_normalised(random)
        found = integrate([draws], [given], random)
    if found.overlap < POOR:
        message = f"the draws and the reference overlap by {found.overlap:.1%} only: the log evidence may be off by"
        message += " more than its error. Give a reference that is more like the posterior, or more draws."
        warnings.warn(message, stacklevel=3)
    return LogEvidence(*found)


def _density_draws(samples: WeightedDraws, energy: Target | Energy | None) -> DensityDraws:
    """The draws as vectors, with the density e^{−U/τ}."""
    temperature, positions = own_temperature(samples), samples.sampled
    vectors = vectors_like(positions, 2)
    size, count = vectors.size, samples.energies.size
    remedy = f"a reference can be fitted to positions of up to {LARGEST:,} numbers"
    require(size <= LARGEST, "draws", f"positions of {size:,} numbers", remedy)
    require(count >= FEWEST, "draws", count, f"{FEWEST} or more are needed: run longer")
    target = _target(samples, energy)

    def evaluate(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rounded = vectors.positions(x)
        energies = energies_of(target, rounded)
        remedy = "the energy must be above −∞ everywhere"
        require(not np.any(energies == -np.inf), "energy", "−∞ at a draw of the reference", remedy)
        logs = np.where(np.isfinite(energies), -energies / temperature, -np.inf)  # −∞ behind a wall
        return np.asarray(vectors.of(rounded, 1), float), logs

    x, log_density = vectors.of(positions, 2), -np.asarray(samples.energies, float) / temperature
    return DensityDraws(x, log_density, log_shares(samples), _labels(samples), samples.pooled, evaluate)


def _target(samples: WeightedDraws, energy: Target | Energy | None) -> Target:
    """What to evaluate: the run's target, or an energy that agrees with the energies of the draws."""
    stacked = jax.tree.map(lambda leaf: np.reshape(leaf, (samples.energies.size, *leaf.shape[2:])), samples.sampled)
    if energy is None:
        remedy = "the run does not know it, since it came from a file, was mapped, or has a target for each chain:"
        require(samples.target is not None, "energy", None, f"{remedy} give it as log_evidence(energy=…)")
        assert samples.target is not None
        return samples.target
    target = as_target(energy)
    require(target.exact, "energy", energy, "it has noise: give an exact one")
    target = trace_target(target, shape_of_one(stacked))
    rows = np.linspace(0, samples.energies.size - 1, BATCH).astype(int)
    there = energies_of(target, jax.tree.map(lambda leaf: leaf[rows], stacked))
    expected = np.asarray(samples.energies, float).ravel()[rows]
    worst = int(np.argmax(np.abs(there - expected) - 1e-4 * np.abs(expected)))
    same = bool(np.abs(there[worst] - expected[worst]) <= 0.01 + 1e-4 * np.abs(expected[worst]))
    values = f"{there[worst]:.6g} at a draw whose energy was {expected[worst]:.6g}"
    require(same, "energy", values, "give the energy that was sampled, constants included")
    return target


def _labels(samples: WeightedDraws) -> Int[np.ndarray, "chains draws"]:
    """The mode of each draw; 0 for all if none are known."""
    basins = samples.basins_of_draws
    return np.zeros(samples.energies.shape, int) if basins is None else basins.labels_of(samples.sampled)
