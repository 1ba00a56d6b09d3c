"""Checks of a flattened run: its bins, how freely it walked in energy, and whether θ has settled."""

from collections.abc import Iterator

import numpy as np

from contourmc.draws import estimates
from contourmc.draws.findings import Finding, Severity, graded
from contourmc.draws.weighted import WeightedDraws
from contourmc.flattening.partition import Partition


def check_flattening(samples: WeightedDraws) -> Iterator[Finding]:
    """Every check that needs a partition and θ."""
    assert samples.partition is not None
    assert samples.trajectory.visits is not None
    if np.ptp(samples.energies) == 0:
        return  # a flat landscape
    if np.all(samples.multipliers == 1):
        message = "no flattening took place: the gradient was never multiplied by anything but 1."
        advice = _try_partition(samples)
        yield Finding("warning", "multiplier", 1.0, message, advice)
    yield from _end_bins(samples, samples.partition)
    yield from _inner_bins(samples, samples.trajectory.visits[:, -1])
    yield from _energy_walk(samples)
    yield from _learning(samples)


def suggested_partition(samples: WeightedDraws) -> Partition:
    """Bins from the lower part of the energies, as weighted, up to the highest drawn, and well beyond one mode's."""
    weights, energies = samples.weights.ravel(), samples.energies.ravel()
    low = float(estimates.quantile(energies, weights, np.asarray(0.1)))
    high = float(np.quantile(energies, 0.99))
    spread = float(np.sqrt(np.sum(weights * (energies - np.sum(weights * energies)) ** 2)))
    high = max(high, low + 12 * spread, low + 1.0)
    inner = int(np.clip(np.ceil((high - low) / max(spread, 1e-3)), 10, 500))
    return Partition(float(f"{low:.4g}"), float(f"{(high - low) / inner:.3g}"), inner + 2)


def _try_partition(samples: WeightedDraws) -> str:
    found = suggested_partition(samples)
    first = "Run longer, or give partition=" if samples.automatic else "Try "
    return f"{first}Partition(low={found.low:g}, width={found.width:g}, bins={found.bins})."


def _end_bins(samples: WeightedDraws, partition: Partition) -> Iterator[Finding]:
    """The two unbounded bins, in which nothing is flattened."""
    assert samples.trajectory.visits is not None
    visits = samples.trajectory.visits[:, -1]
    empty = int(np.sum(visits[:, 0] == 0))
    if empty:
        severity: Severity = "problem" if empty == len(visits) else "warning"
        message = f"the lowest bin (energy ≤ {partition.low:g}) is empty in {empty} of {len(visits)} chains"
        message += (
            "." if samples.comparable_weights else ", so that its θ falls without limit and drives the sampler away."
        )
        yield Finding(severity, "lowest bin", empty / len(visits), message, _try_partition(samples))
    above = float(np.mean(samples.energies > partition.high))
    severity_above = graded(above, 0.1, 0.5)
    if severity_above:
        message = f"{above:.0%} of the draws lie above the partition (energy > {partition.high:g})."
        yield Finding(severity_above, "above", above, message, _try_partition(samples))
    below = float(np.mean(samples.energies <= partition.low))
    if below > 0.6:
        assert samples.flattening is not None
        flat = "nothing is flattened" if samples.flattening.scheme != "right" else "Ψ of the scheme right has no bound"
        message = f"{below:.0%} of the draws lie in the lowest bin, where {flat}."
        yield Finding("warning", "below", below, message, _try_partition(samples))


def _inner_bins(samples: WeightedDraws, visits: np.ndarray) -> Iterator[Finding]:
    """Bins that are jumped over, or starve."""
    together = visits.sum(axis=0, keepdims=True) if samples.comparable_weights else visits
    # Up to the highest bin that is visited more than now and then: above it, a jump may land anywhere.
    tops = [np.max(np.flatnonzero(chain > 0.01 * chain.mean())) for chain in together]
    holes = [np.sum(chain[1 : top + 1] == 0) for chain, top in zip(together, tops, strict=True)]
    if max(holes):
        message = f"up to {max(holes)} bins between visited ones were never visited by a chain."
        advice = "Run longer." if samples.automatic else "The step jumps over them: wider bins or a smaller step_size."
        yield Finding("warning", "holes", float(max(holes)), message, advice)
    steepest = float(np.max(np.abs(samples.multipliers)))
    if steepest > 100:
        message = f"the gradient was multiplied by up to {steepest:.3g}."
        advice = "A bin next to those visited is starving: take wider bins, or raise low."
        yield Finding("warning", "multiplier", steepest, message, advice)


def _energy_walk(samples: WeightedDraws) -> Iterator[Finding]:
    """How freely the chains walk in energy."""
    trips = round_trips(samples)
    fewest = int(trips.min())
    if fewest < 10:
        message = f"a chain went from low to high energies and back only {fewest} times"
        message += f" ({trips.mean():.0f} on average): too few visits to each mode."
        advice = "Run longer." if samples.automatic else "Run longer, or raise zeta or step_size."
        yield Finding("problem" if fewest == 0 else "warning", "round trips", fewest, message, advice)
    uneven = unevenness(samples)
    if uneven > 0.5:
        message = f"energies are visited unevenly: {uneven:.0%} of the visits are not where θ asks for them."
        advice = "θ has not settled, or bins are too narrow for the step_size."
        yield Finding("warning", "flatness", uneven, message, "Run longer." if samples.automatic else advice)


def _learning(samples: WeightedDraws) -> Iterator[Finding]:
    """Whether θ has settled."""
    theta = samples.trajectory.theta
    assert theta is not None
    drift = float(np.mean(np.abs(theta[:, -1] - theta[:, (theta.shape[1] - 1) // 2]).sum(axis=1)) / 2)
    severity = graded(drift, 0.1, 0.3)
    if severity:
        message = f"θ is still moving: {drift:.2f} in total variation over the second half of the run."
        yield Finding(severity, "drift", drift, message, "Run longer, or learn faster (a larger omega).")


def round_trips(samples: WeightedDraws) -> np.ndarray:
    """How often the draws of each chain that moved went from the lowest tenth of energies to the highest and back."""
    energies = samples.energies[samples.pooled]
    low, high = np.quantile(energies, [0.1, 0.9])
    counts = []
    for chain in energies:
        ends = np.where(chain <= low, -1, np.where(chain >= high, 1, 0))
        ends = ends[ends != 0]
        counts.append(np.sum(ends[1:] != ends[:-1]) // 2)
    return np.array(counts)


def unevenness(samples: WeightedDraws) -> float:
    """Total variation between the visits of bins and what the last θ asks for, ∝ θ^{1−ζ}, averaged over chains.

    For ζ = 1, and for the `scalable` rule, that is a flat histogram over the bins that were visited.
    """
    assert samples.flattening is not None
    assert samples.trajectory.visits is not None
    assert samples.theta is not None
    power = samples.flattening.visit_power
    marks = samples.trajectory.visits
    visits = marks[:, -1] - marks[:, marks.shape[1] // 2 - 1] if marks.shape[1] > 1 else marks[:, -1]
    log_expected = np.where(visits > 0, power * np.log(np.maximum(samples.theta, 1e-300)), -np.inf)
    expected = estimates.normalise(log_expected)
    shares = visits / np.maximum(visits.sum(axis=1, keepdims=True), 1)
    return float(np.mean(np.abs(shares - expected).sum(axis=1)) / 2)
