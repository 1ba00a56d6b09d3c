"""The normaliser, mean energy, heat capacity and entropy at every temperature that a run visited.

With Z(T) = ∫e^{−U/T}dx and w_T = w·e^{U(1/τ − 1/T)} the weights of the draws at T (see `temperatures.py`),

    log Z(T) − log Z(τ) = log Σ w_T / Σ w        energy          ⟨U⟩_T = Σ w_T U / Σ w_T
    heat capacity C = d⟨U⟩/dT = Var_T(U)/T²      entropy         S = d(T log Z)/dT = ⟨U⟩_T/T + log Z(T).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from contourmc._core.checks import require
from contourmc.draws.jackknife import Estimate, jackknife
from contourmc.draws.temperatures import (
    effective_draws,
    log_shares,
    own_temperature,
    require_visited,
    reweighted,
    tail_of,
    temperature_range,
)
from contourmc.draws.weighted import WeightedDraws

USUAL = 40  # temperatures, if none are given


class LogNormaliser(NamedTuple):
    """value: log Z(T) − log Z(τ).  error: its standard error.  effective: what the draws are worth at T."""

    value: float
    error: float
    effective: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f} ({self.effective:,.0f} effective draws)"


@dataclass(frozen=True)
class Thermodynamics:
    """Estimates with their standard errors (`energy.value`, `energy.error`) for each temperature; prints as a table.

    temperatures: T.
    log_normaliser: log Z(T) − log Z(τ).
    energy: ⟨U⟩_T.
    heat_capacity: Var_T(U)/T².
    entropy: S(T) − S(τ), with S = ⟨U⟩_T/T + log Z(T).
    effective: how many independent draws the run is worth at T.
    """

    temperatures: Float[np.ndarray, " temperatures"]
    log_normaliser: Estimate
    energy: Estimate
    heat_capacity: Estimate
    entropy: Estimate
    effective: Float[np.ndarray, " temperatures"]

    def __str__(self) -> str:
        columns = (self.log_normaliser, self.energy, self.heat_capacity, self.entropy)
        lines: list[tuple[str, ...]] = [
            ("T", "log Z", "±", "energy", "±", "heat capacity", "±", "entropy", "±", "effective")
        ]
        for i, temperature in enumerate(self.temperatures):
            numbers = (f"{part[i]:.4f}" for column in columns for part in column)
            lines.append((f"{temperature:.4g}", *numbers, f"{self.effective[i]:,.0f}"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)

    __repr__ = __str__


def thermodynamics(samples: WeightedDraws, temperatures: Sequence[float] | np.ndarray | None) -> Thermodynamics:
    """The table for some temperatures; without any, for 40 from the lowest that was visited to the highest."""
    if temperatures is None:
        chosen = np.geomspace(*temperature_range(samples), USUAL)
    else:
        chosen = np.asarray(temperatures, float)
        require(chosen.ndim == 1 and chosen.size > 0, "temperatures", temperatures, "give a list of numbers above 0")
        for temperature in chosen:
            require_visited(samples, float(temperature))
    found = [_columns(samples, float(temperature)) for temperature in chosen]
    values, errors = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    sizes = np.array([effective_draws(reweighted(samples, float(temperature))) for temperature in chosen])
    return Thermodynamics(chosen, *map(Estimate, values, errors), effective=sizes)


def log_normaliser(samples: WeightedDraws, temperature: float) -> LogNormaliser:
    """log Z(T) − log Z(τ)."""
    require_visited(samples, temperature)
    value, error = _columns(samples, float(temperature))
    return LogNormaliser(float(value[0]), float(error[0]), effective_draws(reweighted(samples, float(temperature))))


def _columns(samples: WeightedDraws, temperature: float) -> Estimate:
    """log Z(T) − log Z(τ), energy, heat capacity and entropy.

    Errors are those of a jackknife over the chains, and what is missing beyond the energies of all draws.
    """
    own, lowest = own_temperature(samples), float(samples.energies.min())
    energies = np.asarray(samples.energies, float) - lowest  # so that nothing is lost in their squares
    log_terms = log_shares(samples) + energies * (1 / own - 1 / temperature)
    top = float(log_terms.max())
    there = reweighted(samples, temperature)
    before, after = samples.weights, there.weights
    parts = (before, before * energies, np.exp(log_terms - top), after, after * energies, after * energies**2)

    def columns(sums: np.ndarray) -> np.ndarray:
        weight, energy_before, ratio, hot_weight, hot_energy, hot_square = sums
        mean, log_z = hot_energy / hot_weight, np.log(ratio / weight) + top
        capacity = (hot_square / hot_weight - mean**2) / temperature**2
        entropy = mean / temperature + log_z - energy_before / weight / own
        return np.array([log_z + lowest * (1 / own - 1 / temperature), mean + lowest, capacity, entropy])

    value, error = jackknife(columns, parts, samples.pooled)
    if temperature == own:
        return Estimate(value, error)
    _, mass, first, second = tail_of(there)
    return Estimate(value, np.hypot(error, [mass, first, second / temperature**2, mass + first / temperature]))
