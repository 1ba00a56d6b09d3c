"""What a careful person checks before trusting a run: each finding in words, with its figure and what to do."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np

from contourmc.draws import estimates
from contourmc.draws.weighted import WeightedDraws
from contourmc.flattening.partition import Partition

Severity = Literal["note", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing to know: how bad it is, what it is, its figure, and the remedy."""

    severity: Severity
    check: str
    figure: float
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.message} {self.advice}"


@dataclass(frozen=True)
class Diagnosis:
    """All findings about a run, the worst first; `ok` if there are only notes."""

    findings: tuple[Finding, ...]
    summary: str

    @property
    def ok(self) -> bool:
        return all(finding.severity == "note" for finding in self.findings)

    def __str__(self) -> str:
        head = "The run looks good: " if self.ok else "Do not trust this run yet: "
        return "\n".join([head + self.summary, *(f"- {finding}" for finding in self.findings)])

    __repr__ = __str__


def diagnose(samples: WeightedDraws) -> Diagnosis:
    """Every check that applies to the run's kernel."""
    if samples.energies.shape[1] == 0:
        ended = "was interrupted in its pilot" if samples.stage == "pilot" else "ended during burn-in"
        message = f"no draw was kept: the run {ended}."
        return Diagnosis((Finding("problem", "draws", 0.0, message, "Run longer."),), "it has no draws.")
    findings = [*_general(samples)]
    partition = samples.partition
    if partition is None:
        message = "this kernel does not flatten the landscape, and cannot know about modes it has never seen."
        findings.append(Finding("note", "flattening", 0.0, message, "Compare with a contour kernel."))
    else:
        findings += [*_bins(samples, partition), *_energy_walk(samples), *_learning(samples)]
    findings += _basins(samples)
    findings.sort(key=lambda finding: ("problem", "warning", "note").index(finding.severity))
    draws = samples.chains * samples.energies.shape[1]
    ess = min(float(np.min(leaf)) for leaf in jax.tree.leaves(_worth(samples)))
    summary = f"{samples.chains} chains, {draws:,} draws, worth at least {ess:,.0f} independent ones."
    return Diagnosis(tuple(findings), summary)


def _general(samples: WeightedDraws) -> Iterator[Finding]:
    """Interruption, weights, and chains that disagree."""
    if samples.interrupted:
        done, asked = int(samples.trajectory.steps[-1]), samples.settings["steps"]
        message = f"the run was interrupted after {done:,} of {asked:,} steps."
        yield Finding("note", "interrupted", done / asked, message, "")
    if samples.stage == "learning":
        message = "θ was still being learnt: these draws belong to a flattening that was still changing."
        yield Finding("problem", "stage", 0.0, message, "Let the run go on until it samples.")
    worth = float(np.min(estimates.kish(samples.weights)))
    share = worth / samples.energies.shape[1]
    if share < 0.05 and worth < 200:
        message = f"a few draws carry the weight: those of one chain are worth {share:.1%} of their number."
        advice = "Run longer, or flatten less (a smaller zeta, or a narrower range of energies)."
        yield Finding("problem" if share < 0.005 else "warning", "weights", share, message, advice)
    if samples.chains > 1 and samples.trajectory.means is not None:
        spread = [
            np.max(means.var(axis=0, ddof=1) / np.maximum(variance, 1e-300))
            for means, variance in zip(
                jax.tree.leaves(samples.mean(by_chain=True)), jax.tree.leaves(samples.variance()), strict=True
            )
        ]
        rhat = float(np.sqrt(1 + max(spread)))
        if rhat > 1.05:
            message = f"the chains disagree: R̂ of the worst coordinate is {rhat:.2f} (1 is agreement)."
            advice = "Run longer, or let the partition reach higher, above the barriers between modes."
            yield Finding("problem" if rhat > 1.2 else "warning", "agreement", rhat, message, advice)


def _worth(samples: WeightedDraws) -> Any:
    """The effective size of every coordinate; if positions are large or not stored, that of the energy."""
    if samples.draws is None or samples.trajectory.means is None:
        return estimates.effective_size(samples.energies, samples.weights)
    return samples.ess()


def _bins(samples: WeightedDraws, partition: Partition) -> Iterator[Finding]:
    """The two unbounded bins, and empty ones in between."""
    assert samples.trajectory.visits is not None
    visits = samples.trajectory.visits[:, -1]
    lowest = float(samples.energies.min())
    empty = int(np.sum(visits[:, 0] == 0))
    if empty:
        severity: Severity = "problem" if empty == len(visits) else "warning"
        message = f"the lowest bin (energy ≤ {partition.low:g}) is empty in {empty} of {len(visits)} chains."
        advice = (
            f"Its θ falls without limit and drives the sampler away; set low above {lowest:.4g}, the lowest"
            f" energy drawn, for example {lowest + partition.width:.4g}."
        )
        yield Finding(severity, "lowest bin", empty / len(visits), message, advice)
    above = float(np.mean(samples.energies > partition.high))
    if above > 0.1:
        message = f"{above:.0%} of the draws lie above the partition (energy > {partition.high:g})."
        advice = f"Extend it upwards: bins={2 * partition.bins}, or a larger width."
        yield Finding("problem" if above > 0.5 else "warning", "above", above, message, advice)
    below = float(np.mean(samples.energies <= partition.low))
    if below > 0.6:
        message = f"{below:.0%} of the draws lie in the lowest bin, where nothing is flattened."
        advice = f"Lower low ({partition.low:g}) towards the lowest energy, {lowest:.4g}."
        yield Finding("warning", "below", below, message, advice)
    together = visits.sum(axis=0, keepdims=True) if samples.comparable_weights else visits
    holes = [np.sum(chain[: np.max(np.flatnonzero(chain)) + 1][1:] == 0) for chain in together]
    if max(holes):
        message = f"up to {max(holes)} bins between visited ones were never visited by a chain."
        advice = "The step jumps over them: take wider bins or a smaller step_size."
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
        message += f" ({trips.mean():.0f} on average)."
        advice = "Estimates rest on too few visits to each mode: run longer, or raise zeta or step_size."
        yield Finding("problem" if fewest == 0 else "warning", "round trips", fewest, message, advice)
    uneven = unevenness(samples)
    if uneven > 0.5:
        message = f"energies are visited unevenly: {uneven:.0%} of the visits are not where θ asks for them."
        advice = "θ has not settled, or bins are too narrow for the step_size."
        yield Finding("warning", "flatness", uneven, message, advice)


def _learning(samples: WeightedDraws) -> Iterator[Finding]:
    """Whether θ has settled."""
    theta = samples.trajectory.theta
    assert theta is not None
    drift = float(np.mean(np.abs(theta[:, -1] - theta[:, (theta.shape[1] - 1) // 2]).sum(axis=1)) / 2)
    if drift > 0.1:
        message = f"θ is still moving: {drift:.2f} in total variation over the second half of the run."
        advice = "Run longer, or learn faster (a larger omega)."
        yield Finding("problem" if drift > 0.3 else "warning", "drift", drift, message, advice)


def _basins(samples: WeightedDraws) -> Iterator[Finding]:
    """The minima that the pilot found: whether the run has been there, and how well it knows their masses."""
    if samples.basins is None or samples.draws is None:
        return
    energies, masses = samples.basins.energies, samples.basins.masses(samples.draws, samples.weights)
    never = np.flatnonzero(masses.sum(axis=0) == 0)
    if never.size:
        message = f"{never.size} of {len(energies)} minima that the pilot found hold no draw, such as the one of energy"
        message += f" {energies[never[0]]:.4g}."
        advice = "The run reaches them rarely or never: run longer, or let the partition reach higher."
        yield Finding("problem", "minima", float(never.size), message, advice)
    if samples.chains > 1:
        shares = masses.sum(axis=1)
        by_chain = masses / np.where(shares > 0, shares, 1.0)[:, None]
        error = float(np.max(estimates.chain_error(shares / shares.sum(), by_chain)))
        if error > 0.03:
            message = f"the masses of modes are uncertain by {error:.2f}: chains crossed between them too rarely."
            severity: Severity = "problem" if error > 0.1 else "warning"
            yield Finding(severity, "crossings", error, message, "Run longer, or more chains.")


def round_trips(samples: WeightedDraws) -> np.ndarray:
    """How often each chain's draws went from the lowest tenth of all energies to the highest and back."""
    low, high = np.quantile(samples.energies, [0.1, 0.9])
    counts = []
    for energies in samples.energies:
        ends = np.where(energies <= low, -1, np.where(energies >= high, 1, 0))
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
