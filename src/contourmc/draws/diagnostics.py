"""What a careful person checks before trusting a run: each finding in words, with its figure and what to do."""

from collections.abc import Iterator

import jax
import numpy as np

from contourmc._core.pytrees import named_leaves
from contourmc.draws import estimates
from contourmc.draws.exhibits.numbers import counted
from contourmc.draws.findings import Diagnosis, Finding, Severity, graded
from contourmc.draws.flattening_checks import check_flattening
from contourmc.draws.following_checks import check_following
from contourmc.draws.modes import find_modes, has_modes, origin_of_modes
from contourmc.draws.step_weights import check_step_weights
from contourmc.draws.weighted import WeightedDraws
from contourmc.targets.base import NAN_GRADIENT_CURE

ENOUGH = 200  # independent draws; below, error bars are rough, and a rare mode may have been seen once
TIP = 1e-5  # of the steps: that often or less, chains may meet a single point without a gradient, as the tip of √|x|
HOT = 1.15  # times τ; SGLD at a tenth of the largest stable step is 1.05 times too hot


def diagnose(samples: WeightedDraws) -> Diagnosis:
    """Every check that applies to the run's kernel."""
    if samples.energies.shape[1] == 0:
        ended = "was interrupted in its pilot" if samples.stage == "pilot" else "ended during burn-in"
        message = f"no draw was kept: the run {ended}."
        return Diagnosis((Finding("problem", "draws", 0.0, message, "Run longer."),), "it has no draws.")
    worth = samples.independent
    findings = [*_ended_early(samples), *_still_chains(samples), *_finite(samples), *_numbers(samples)]
    findings += _equilibrium(samples)
    findings += [*_weights(samples), *_agreement(samples), *_enough(samples, worth)]
    findings += _gradients(samples)
    if "swaps" in samples.settings:
        findings += _replicas(samples.settings["swaps"])
    elif samples.flattening is None:
        message = "this kernel does not flatten the landscape, and rarely leaves the modes where its chains started."
        findings.append(Finding("note", "flattening", 0.0, message, "Compare with a contour kernel."))
    else:
        findings += check_following(samples) if samples.flattening.following else check_flattening(samples)
        findings += check_step_weights(samples)
    findings += _basins(samples)
    findings.sort(key=lambda finding: ("problem", "warning", "note").index(finding.severity))
    draws = samples.chains * samples.energies.shape[1]
    size = f"{counted(samples.chains, 'chain')}, {counted(draws, 'draw')}"
    summary = f"{size}, worth at least {worth:,.0f} independent ones."
    return Diagnosis(tuple(findings), summary)


def _ended_early(samples: WeightedDraws) -> Iterator[Finding]:
    if samples.interrupted:
        done, asked = int(samples.trajectory.steps[-1]), samples.settings["steps"]
        message = f"the run was interrupted after {done:,} of {asked:,} steps."
        yield Finding("note", "interrupted", done / asked, message, "")
    if samples.stage == "learning":
        message = "θ was still being learnt: these draws belong to a flattening that was still changing."
        yield Finding("problem", "stage", 0.0, message, "Let the run go on until it samples.")


def _replicas(swaps: list[float]) -> Iterator[Finding]:
    """How often replicas changed places: a hot one is of use through that alone."""
    often = ", ".join(f"{number:,.1f}" for number in swaps)
    message = f"replicas changed places {often} times in a chain, from the coldest pair on."
    rarely = min(swaps) < 1
    advice = "Take temperatures that are closer to one another, or a smaller energy_variance." if rarely else ""
    yield Finding("warning" if rarely else "note", "swaps", min(swaps), message, advice)


def _still_chains(samples: WeightedDraws) -> Iterator[Finding]:
    """Chains that hardly ever moved, which are left out of all estimates."""
    for chain in np.flatnonzero(samples.still):
        steps = int(samples.steps[-1] - samples.steps[0])
        left_out = "" if samples.pooled[chain] else ", and is left out of all estimates"
        message = f"chain {chain} did not move in {steps:,} steps{left_out}."
        advice = "If its proposals are refused, take a smaller step_size, or start it elsewhere."
        if samples.automatic:
            advice = "Its proposals were refused: reparametrise, so that scales differ less from place to place."
        yield Finding("problem", "still", float(chain), message, advice)


def _finite(samples: WeightedDraws) -> Iterator[Finding]:
    """Draws that are not finite, as a function of `map` may make them."""
    if samples.draws is None:
        return
    bad = {
        name: int(np.sum(np.any(~np.isfinite(leaf.reshape(*samples.energies.shape, -1)), axis=-1)))
        for name, leaf in named_leaves(samples.positions).items()
    }
    bad = {name: count for name, count in bad.items() if count}
    if bad:
        draws = samples.energies.size
        message = "; ".join(f"{name!r} is not finite at {count:,} of {draws:,} draws" for name, count in bad.items())
        advice = "Change the function where it gives NaN or infinity: no mean of such numbers says anything."
        yield Finding("problem", "finite", max(bad.values()) / draws, f"{message}.", advice)


def _numbers(samples: WeightedDraws) -> Iterator[Finding]:
    """Energies so large that their differences are lost in rounding."""
    size = float(np.max(np.abs(samples.energies)))
    grain = float(np.spacing(np.asarray(size, samples.energies.dtype)))
    severity = graded(grain, 0.1, 0.5)
    if severity:
        message = (
            f"energies around {size:.3g} are {grain:.2g} apart in {samples.energies.dtype}, too coarse to sample by."
        )
        advice = "Subtract a constant from the energy inside the function, or turn on jax_enable_x64."
        yield Finding(severity, "grain", grain, message, advice)


def _gradients(samples: WeightedDraws) -> Iterator[Finding]:
    """Proposals that were refused for a gradient that is NaN, where the energy alone would have let them pass."""
    share = samples.settings.get("nan_gradients", 0.0)
    if share > 0:
        message = f"in {share:.2g} of the steps the gradient was NaN where the energy is finite; as at a wall, no draw"
        message += " lies there."
        severity: Severity = "problem" if share > TIP else "note"
        yield Finding(severity, "gradients", share, message, f"The energy seems wrong: {NAN_GRADIENT_CURE}.")


def _equilibrium(samples: WeightedDraws) -> Iterator[Finding]:
    """Whether the energies stay where they are, and the chains are as hot as they should be."""
    shift = _drift(samples)
    severity = graded(abs(shift), 10.0, 40.0)
    if severity:
        way = "rise" if shift > 0 else "fall"
        message = f"on average over the chains, the energies {way} from the first half of the run to the second."
        yield Finding(severity, "stationarity", shift, message, "It has not settled: run longer, or burn in more.")
    if samples.virials is not None:
        heat, error = estimates.mean_and_error(samples.virials, samples.weights)
        severity = graded(max(heat, 1 / max(heat, 1e-3)), HOT, 1.5)
        if severity and abs(heat - 1) > 5 * error:
            message = f"⟨(x − c)·∇U⟩/d is {heat:.2g} times τ, and should be 1: the chains are not in equilibrium."
            hot = "They are too hot: take a smaller step_size; with noisy gradients a larger batch helps too."
            advice = hot if heat > 1 else "Run longer, or take a smaller step_size."
            yield Finding(severity, "temperature", heat, message, advice)


def _drift(samples: WeightedDraws) -> float:
    """By how much the mean energy differs between the halves of the run, in standard errors over the chains.

    0 with fewer than four chains. Beyond 10 by chance once in 500 runs of four chains (Student's t).
    """
    half = samples.energies.shape[1] // 2
    if samples.pooled.sum() < 4 or half < 10:
        return 0.0
    weights, energies = estimates.normalise(samples.log_weights[samples.pooled]), samples.energies[samples.pooled]
    parts = [(weights[:, part], energies[:, part]) for part in (slice(half), slice(half, None))]
    if min(np.min(w.sum(axis=1)) for w, _ in parts) == 0:
        return 0.0
    before, after = (np.sum(w * u, axis=1) / w.sum(axis=1) for w, u in parts)
    differences = after - before
    error = differences.std(ddof=1) / len(differences) ** 0.5
    return float(np.clip(differences.mean() / max(error, 1e-12), -1e6, 1e6))


def _weights(samples: WeightedDraws) -> Iterator[Finding]:
    if samples.flattening is not None and samples.flattening.following:
        return  # ζ is large, and an average tempers the weights
    worth = float(estimates.kish(estimates.normalise(samples.log_weights[samples.pooled])).min())
    share = worth / samples.energies.shape[1]
    if share < 0.05 and worth < ENOUGH:
        message = f"a few draws carry the weight: those of one chain are worth {share:.1%} of their number."
        advice = "Run longer, or flatten less (a smaller zeta, or a narrower range of energies)."
        advice = "Run longer." if samples.automatic else advice
        yield Finding("problem" if share < 0.005 else "warning", "weights", share, message, advice)


def _agreement(samples: WeightedDraws) -> Iterator[Finding]:
    """Whether the chains have the same means, of every coordinate and of what they differ in most."""
    if samples.pooled.sum() < 2 or not samples.few_coordinates:
        return
    known = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(samples.rhat())])
    rhat = float(np.max(known[np.isfinite(known)], initial=1.0))
    weights = estimates.normalise(samples.log_weights[samples.pooled])
    across, significance = np.nan, 0.0
    if samples.draws is not None:
        leaves = [leaf[samples.pooled] for leaf in jax.tree.leaves(samples.positions) if np.all(np.isfinite(leaf))]
        across, significance = estimates.rhat_across(leaves, weights)
    worst = across if significance > 1 and across > rhat else rhat
    severity = graded(worst, 1.05, 1.2)
    if severity:
        shown = "more than 10" if worst > 10 else f"{worst:.2f}"
        where = "of the worst coordinate" if worst == rhat else "along the direction in which their means differ most"
        message = f"the chains disagree: R̂ {where} is {shown} (1 is agreement)."
        higher = "" if samples.automatic or samples.flattening is None else (
            ", or let the partition reach higher, above the barriers between modes"
        )  # fmt: skip
        yield Finding(severity, "agreement", worst, message, f"Run longer{higher}.")


def _enough(samples: WeightedDraws, worth: float) -> Iterator[Finding]:
    severity = graded(-worth, -ENOUGH, -ENOUGH / 4)
    if severity:
        message = (
            f"the draws are worth only {worth:,.0f} independent ones; {ENOUGH} are the least for error bars to hold."
        )
        factor = min(100, int(np.ceil(ENOUGH / max(worth, 1))) + 1)
        yield Finding(
            severity, "effective size", worth, message, f"Run about {factor} times as long, or use more chains."
        )


def _basins(samples: WeightedDraws) -> Iterator[Finding]:
    """The modes of the draws, and minima that only the pilot found: how well the run knows their masses."""
    if not has_modes(samples):
        return
    modes, basins = find_modes(samples), samples.basins_of_draws
    if basins is not None and basins.labels is None:
        yield Finding("note", "modes", float(len(modes)), origin_of_modes(samples), "")
    never = [mode for mode in modes if mode.mass == 0]
    if never:
        message = f"{len(never)} of {len(modes)} minima that the pilot found hold no draw, such as the one of energy"
        message += f" {never[0].energy:.4g}."
        yield Finding(
            "problem", "minima", float(len(never)), message, "The run reaches them rarely or never: run longer."
        )
    error = max((mode.error for mode in modes if 0 < mode.mass < 1), default=0.0)
    severity = graded(error, 0.03, 0.1)
    if severity:
        message = f"the masses of modes are uncertain by {error:.2f}: chains crossed between them too rarely."
        yield Finding(severity, "crossings", error, message, "Run longer, or use more chains.")
    if len(modes) == 1 and samples.settings.get("automatic", {}).get("one_start"):
        message = "all chains started from one place, and one minimum was found."
        advice = "If there may be others, start from several places, such as init=Box(low, high)."
        yield Finding("note", "starts", 1.0, message, advice)
