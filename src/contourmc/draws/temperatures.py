"""Every temperature from one run: the same draws, weighted anew.

Weighted draws of a flattened run are those of e^{−U/τ}. The flattening let them visit all energies up to the top of
the partition, so that with the weights

    w_T = w · e^{U(1/τ − 1/T)}

they are those of e^{−U/T}, for every temperature T whose energies lie in that range. On its upper side the range ends
where the energies of T reach above the flattened ones: there the draws thin out as e^{−U/τ} does, and the few that are
left cannot stand for those that are missing. On its lower side energies end at the minimum, and T is out of reach when
too few draws are near it.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from contourmc._core.checks import require, require_number
from contourmc.draws import estimates
from contourmc.draws.energy_tail import EnergyTail, energy_tail
from contourmc.draws.weighted import WeightedDraws

MOST_MISSING = 0.01  # the largest probability that may lie beyond the energies of all draws
LEAST_WEIGHT = 500.0  # equally weighted draws that the weights at a temperature must be worth
FARTHEST = 100.0  # times τ, and this part of it: how far the range is searched

Draws = TypeVar("Draws", bound=WeightedDraws)


def at_temperature(samples: Draws, temperature: float) -> Draws:
    """The same draws, weighted for another temperature; raises unless its energies were visited.

    Estimates from every step belong to τ, so that those of the result come from the kept draws.
    """
    require_visited(samples, temperature)
    return samples if temperature == own_temperature(samples) else reweighted(samples, float(temperature))


def reweighted(samples: Draws, temperature: float) -> Draws:
    """`at_temperature` without the check."""
    own, flattening = own_temperature(samples), samples.flattening
    assert flattening is not None
    tilt = 1 / own - 1 / temperature
    log_weights = samples.log_weights + np.asarray(samples.energies, float) * tilt
    trajectory = samples.trajectory
    # The stretch of each draw; the weight of a stretch is that of its draws.
    stretches = np.searchsorted(trajectory.steps, samples.steps)
    by_stretch = [
        np.logaddexp.reduce(log_weights[:, stretches == i], axis=1, initial=-np.inf)
        for i in range(len(trajectory.steps))
    ]
    return replace(
        samples,
        log_weights=log_weights,
        virials=None if samples.virials is None else samples.virials * (own / temperature),
        trajectory=replace(trajectory.without_moments(), log_weights=np.stack(by_stretch, axis=1)),
        average=None,
        flattening=replace(flattening, temperature=float(temperature), tilt=flattening.tilt + tilt),
    )  # fmt: skip


def own_temperature(samples: WeightedDraws) -> float:
    """τ, the temperature of the draws; raises for a run without draws, exact energies, or a flattening at one τ."""
    require(samples.energies.shape[1] > 0, "draws", 0, "no draw was kept: run longer")
    remedy = "its draws have no weights, and keep to the energies of one temperature: sample without a kernel, or with"
    kind = samples.settings.get("kernel", {}).get("kind")
    require(samples.flattening is not None, "kernel", kind, f"{remedy} csgld(...)")
    assert samples.flattening is not None
    remedy = "with noise of variance σ² in the energies Ũ, log⟨e^{−Ũ}⟩ is off by σ²/2: this needs exact energies"
    require(samples.exact, "target", "energies with noise", remedy)
    temperature = samples.flattening.temperature
    constant = temperature is not None and temperature > 0
    require(constant, "temperature", temperature, "the kernel needs a constant temperature above 0")
    assert temperature is not None
    return temperature


def temperature_range(samples: WeightedDraws) -> tuple[float, float]:
    """The lowest and the highest temperature whose energies were visited; τ is always one of them."""
    return _last_visited(samples, 1 / FARTHEST), _last_visited(samples, FARTHEST)


def require_visited(samples: WeightedDraws, temperature: float) -> None:
    """Raise unless this is a temperature whose energies were visited."""
    require_number("temperature", temperature, "give a finite number above 0", positive=True)
    fault = _fault(samples, temperature)
    if fault:
        low, high = temperature_range(samples)
        require(False, "temperature", temperature, f"{fault}; this run holds those from {low:.3g} to {high:.3g}")


def effective_draws(samples: WeightedDraws) -> float:
    """How many independent draws the weights are worth, and the mean energy; the smaller number."""
    weights = samples.weights
    return float(np.fmin(estimates.kish(weights.ravel()), estimates.effective_size(samples.energies, weights)))


def _fault(samples: WeightedDraws, temperature: float) -> str:
    """Why the draws say nothing about a temperature, in words; empty if they do."""
    if temperature == own_temperature(samples):
        return ""
    there = reweighted(samples, temperature)
    tail = tail_of(there)
    if tail.mass > MOST_MISSING:
        return f"its energies reach too far above {tail.top:.4g}, the highest that was visited freely"
    worth = float(estimates.kish(there.weights.ravel()))
    if worth < LEAST_WEIGHT:
        return f"only {worth:.0f} draws have weight there, and {LEAST_WEIGHT:.0f} are the least"
    return ""


def tail_of(samples: WeightedDraws) -> EnergyTail:
    """What lies beyond the energies of all draws, at their temperature."""
    assert samples.partition is not None
    energies, pooled = np.asarray(samples.energies, float), samples.pooled
    return energy_tail(energies[pooled], samples.weights[pooled], samples.partition)


def _last_visited(samples: WeightedDraws, factor: float) -> float:
    """The last temperature from τ towards `factor`·τ that was visited, to 1%."""
    own, inside, outside = own_temperature(samples), 0.0, float(np.log(factor))
    if not _fault(samples, own * factor):
        return own * factor
    while abs(outside - inside) > 0.01:
        middle = (inside + outside) / 2
        if _fault(samples, own * float(np.exp(middle))):
            outside = middle
        else:
            inside = middle
    return own * float(np.exp(inside))


def log_shares(samples: WeightedDraws) -> Float[np.ndarray, "chains draws"]:
    """log of `samples.weights`, safe for weights that vanish in float64; −∞ in chains that do not count."""
    pooled = samples.pooled[:, None]
    logs = np.where(pooled, np.asarray(samples.log_weights, float), -np.inf)
    if samples.comparable_weights:
        return logs - np.logaddexp.reduce(logs.ravel())
    totals = np.logaddexp.reduce(logs, axis=1, keepdims=True)
    return np.where(pooled, logs - np.where(pooled, totals, 0.0), -np.inf) - np.log(pooled.sum())
