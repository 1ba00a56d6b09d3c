"""The paper's claims beside our measurements, and the notes of the report."""

from typing import Any

import numpy as np

from contourmc.studies.base import Claim, Size, Verdict, within
from contourmc.studies.gaussian_mixture.experiment import SCHEMES, ZETAS, Method, slowdown


def landscape_claims(heights: dict[str, Any], found: dict[str, Any]) -> list[Claim]:
    """Barriers, θ, and the histogram of energies."""
    before, after = heights["left"]["0"], heights["left"]["0.75"]
    barrier = [f"{b:.1f} → {a:.2f} leaving {x}" for b, a, x in zip(before, after, ("−6", "4"), strict=True)]
    rounds = any(round(b) == 12 and round(a) == 2 for b, a in zip(before, after, strict=True))
    tv, stepped = found["csgld"]["theta_tv"], found["csgld_step"]
    lowest = f"θ of the lowest bin {stepped['theta'][0]:.3f}, truth {stepped['theta_truth'][0]:.3f}"
    logs = np.log(found["csgld"]["theta_truth"][2:13])
    slope, correlation = np.polyfit(np.arange(11), logs, 1)[0], np.corrcoef(np.arange(11), logs)[0, 1]
    flat = {name: found[name]["flatness"] for name in ("sgld", "csgld", "csgld_flat")}
    ratios = f"{flat['csgld_flat']:.2f} at ζ = 1, {flat['csgld']:.3f} at ζ = 0.75, {flat['sgld']:.0e} for SGLD"
    matches = "the estimate of θ matches the ground truth very well"
    return [
        Claim(
            "ζ = 0.75 reduces the energy barrier from 12 to as small as 2",
            f"`left`: {', '.join(barrier)}",
            Verdict(rounds, "from 12 to 2, both to within 0.5"),
        ),
        Claim(
            matches,
            f"continuous weights: total variation distance {_pm(tv)}",
            within(tv["mean"], high=0.05, unit="in total variation"),
        ),
        Claim(
            f"{matches}, with the paper's step weights and `left` scheme",
            f"total variation distance {_pm(stepped['theta_tv'])}; {lowest}",
            within(stepped["theta_tv"]["mean"], high=0.05, unit="in total variation"),
        ),
        Claim(
            "θ decays exponentially fast with the index of the bin",
            f"bins 2 to 12: log θ falls by {-slope:.2f} per bin, correlation {correlation:.4f}",
            within(correlation, high=-0.99, unit="for the correlation of log θ with the index"),
        ),
        Claim(
            "ζ = 1 leads to a flat histogram of energy",
            f"visits to the least / most visited bin below the barrier: {ratios}",
            within(flat["csgld_flat"], low=0.5, unit="for least / most at ζ = 1"),
        ),
    ]


def error_claims(methods: dict[str, Method], found: dict[str, Any]) -> list[Claim]:
    """The error of the mean."""
    runs = len(methods["sgld"].errors)
    error = {name: found[name]["final_abs_error"] for name in found}
    ended = {
        name: f"final error {_pm(error[name])}; {found[name]['runs_within_0.2']} of {runs} runs within 0.2"
        for name in found
    }
    early, late = slowdown(methods["csgld"], methods["ksgld"])
    bias = found["csgld_step"]["final_bias"]
    compared = ""
    if "ksgld_step" in found:  # a quick run does without
        _, late_step = slowdown(methods["csgld_step"], methods["ksgld_step"])
        known = _pm(found["ksgld_step"]["final_bias"])
        compared = f"; KSGLD with the same weights is off by {known}, and the error is {late_step:.2f} times its error"
    return [
        Claim(
            "SGLD's error decays slowly and rarely converges",
            ended["sgld"],
            within(found["sgld"]["runs_within_0.2"], high=runs / 2, unit="runs within 0.2"),
        ),
        Claim(
            "KSGLD (true θ) converges much faster than SGLD",
            ended["ksgld"],
            within(error["ksgld"]["mean"] / error["sgld"]["mean"], high=0.33, unit="of SGLD's error"),
        ),
        Claim(
            "early on CSGLD is slightly slower than KSGLD",
            f"first 1% of the steps: error {early:.1f} times KSGLD's",
            within(early, 1.0, 1.5, "times KSGLD's error"),
        ),
        Claim(
            "soon CSGLD is as efficient as KSGLD",
            f"after the first 1%: error {late:.2f} times KSGLD's; {ended['csgld']}",
            within(late, high=1.25, unit="times KSGLD's error"),
        ),
        Claim(
            "the weighted average converges to the mean, with the paper's step weights and `left` scheme",
            f"averaged over the runs, off by {_pm(bias)}; {ended['csgld_step']}{compared}",
            within(abs(bias["mean"]) / (bias["se"] or np.inf), high=3, unit="standard errors off"),
        ),
    ]


def _pm(value: dict[str, float]) -> str:
    return f"{value['mean']:.3f} ± {value['se']:.3f}"


def make_notes(heights: dict[str, Any], found: dict[str, Any], size: Size) -> list[str]:
    """How it was measured, and the table of barriers."""
    table = [f"| scheme | {' | '.join(f'ζ = {zeta:g}' for zeta in ZETAS)} |", "|---|---|---|---|"]
    for scheme, partition in SCHEMES:
        pairs = ("{:.2f}, {:.2f}".format(*heights[scheme][f"{zeta:g}"]) for zeta in ZETAS)
        table.append(f"| `{scheme}`, u₁ = {partition.low:g} | {' | '.join(pairs)} |")
    before, shares = heights["left"]["0"], found["csgld_flat"]["visit_shares"]
    return [
        f"{size.seeds} runs of {size.length:,} steps; ± is one standard error over the runs. All start at 0, which is"
        " also the true mean, and there is no burn-in: the paper mentions none.",
        "KSGLD and CSGLD use u₁ = 1.5, the `right` scheme and continuous weights; the paper's variant uses u₁ = 2"
        " (our choice: the paper does not give u₁), the `left` scheme and step weights.",
        "**Barriers** from −6 to 4 and from 4 to −6, with the true θ: the greatest climb on the way, from"
        f" any point to a later one. Without flattening: {before[0]:.2f}, {before[1]:.2f}. At ζ = 1 what one climbs are"
        " the saw teeth of log Ψ, and the modes, which have become hills.",
        "\n".join(table),
        "**Histograms** are of the second half of the runs. The flatness does not include bin 0, which is 0.07 wide;"
        f" its share at ζ = 1 is {shares[0]:.4f}, that of bin 1 {shares[1]:.4f}.",
    ]
