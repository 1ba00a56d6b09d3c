"""The theorems' claims beside our measurements, and the notes of the report."""

from typing import Any

import numpy as np

from contourmc.kernels.contour import Weights
from contourmc.studies.base import Claim, Verdict
from contourmc.studies.theory.experiment import slope
from contourmc.studies.theory.setting import NAMES, SYMBOLS, truth


def make_claims(learning: dict[str, Any], estimates: dict[str, Any]) -> list[Claim]:
    """Every claim of the two theorems, with what we measured."""

    def each(text: Any) -> str:
        return "; ".join(f"{name}: {text(measured)}" for name, measured in learning.items())

    rates = [measured["rate"] for measured in learning.values()]
    falls = all(rate > 2 * error for rate, error in rates) or None  # None: too noisy to tell
    return [
        Claim(
            "Theorem 1: E‖θ_k − θ⋆‖² = O(ω_k), above a floor",
            "E‖θ_k − Eθ_k‖² falls like ω_k to the power: " + each(lambda one: "{:.2f} ± {:.2f}".format(*one["rate"])),
            Verdict(
                falls if all(rate + 2 * error >= 1 for rate, error in rates) else False,
                "a power of at least 1, less two standard errors, and above 0 by two",
            ),
        ),
        Claim(
            "Theorem 1: the floor is O(ε + 1/m + Var), of unnamed size",
            "‖E θ_k − θ⋆‖² at the end, ε = 0.1 and Δu = 1: "
            + each(lambda one: "{:.1e} ± {:.0e}".format(*one["floor"])),
            None,
        ),
        _effect(estimates, "width", "step", "a finer partition decreases the bias (weights θ^ζ(J)); O(1/√m)"),
        _effect(estimates, "width", "continuous", "the same, with weights Ψ^ζ(U) instead (not in the paper)"),
        _effect(estimates, "step_size", "step", "a smaller ε decreases the bias; O(√ε)"),
        _effect(estimates, "step_size", "continuous", "the same, with weights Ψ^ζ(U)"),
        _effect(estimates, "energy_variance", "step", "less energy noise decreases the bias; O(√Var)"),
        _effect(estimates, "energy_variance", "continuous", "the same, with weights Ψ^ζ(U)"),
        Claim(
            "Theorem 2 with θ learnt: the same orders, and the mean of ω",
            "CSGLD at ε = 0.1, Δu = 1, bias of E[U] and P(x < 0): "
            + each(lambda one: " and ".join(_pm(cell) for cell in one["estimates"].values())),
            None,
        ),
    ]


def _effect(estimates: dict[str, Any], sweep: str, weights: Weights, paper: str) -> Claim:
    """The bias of E[U] at the two ends of a sweep, the power of its growth, and whether it grows at all."""
    values = np.array(estimates[sweep]["values"])
    use, texts, growths = values > 0, [], []
    errors = estimates[sweep]["errors"]
    for scheme, name in ((s, name) for (s, w), name in NAMES.items() if w == weights and name in errors):
        cells = [averages["E[U]"] for averages in errors[name]]
        bias, error = (np.array([cell[key] for cell in cells]) for key in ("bias", "standard_error"))
        size = np.abs(bias)
        growths.append((size[-1] - size[0]) / np.hypot(error[0], error[-1]))
        texts.append(f"{scheme} {_pm(cells[0])} → {_pm(cells[-1])}")
        if size[0] > 2 * error[0] and (bias[-1] - bias[0]) * bias[0] < 0:
            texts[-1] += " (opposite signs)"
        elif use.sum() > 2 and growths[-1] > 2:
            power = slope(np.log(values[use]), np.log(size[use]), size[use] / error[use])
            texts[-1] += ", power {:.2f} ± {:.2f}".format(*power)
    agrees = False if min(growths) < -2 else True if min(growths) > 2 else None  # None: within the noise
    ends = f"{SYMBOLS[sweep]} {values[0]:g} → {values[-1]:g}"
    tolerance = "the bias grows, by two standard errors; differs if it falls by two"
    return Claim(paper, f"bias of E[U], {weights} weights, {ends}: {'; '.join(texts)}", Verdict(agrees, tolerance))


def _pm(cell: dict[str, float]) -> str:
    return f"{cell['bias']:+.4f} ± {cell['standard_error']:.4f}"


def make_notes(results: dict[str, Any]) -> list[str]:
    """How it was measured, why step weights keep a bias, and all numbers."""
    about = f"""{results["chains"]} chains of {results["steps"]:,} steps from x = 0; ± is one standard error, and
a verdict asks for two. True values: E[U] = {truth()["E[U]"]:.4f}, P(x < 0) = {truth()["P(x < 0)"]:.4f}. θ is learnt
in the first figure and the last claim; the sweeps use the known θ⋆ (KSGLD), so that they show the effect of the
partition, ε and the noise alone, and both kinds of weights come from the same draws. A sweep changes one of Δu = 1,
ε = 0.02, no energy noise; the gradient noise has variance 0.01. Powers are fitted to the size of the bias.
E[U] is what we compare because it hardly depends on the rare crossings, which blur P(x < 0) and the mean of x."""
    why = """**Step weights keep a bias.** The chain samples π/Ψ^ζ with a continuous Ψ, but the paper's weight is the
step θ^ζ(J). The result is a bias that depends on Δu and that no number of steps removes; the dotted lines give it by
quadrature, for ε → 0. With Ψ^ζ(U(x)) as the weight this term is zero at every Δu.
The theorem bounds a sum of terms: where a claim says "opposite signs", ε or the noise pushes against the bias of
the step weights, and reducing it uncovers that bias. Such a claim can differ while the bound holds."""
    return [about, why, *(_table(results["estimates"], observable) for observable in truth())]


def _table(estimates: dict[str, Any], observable: str) -> str:
    """Every bias ± its standard error, with the mean absolute error of a chain in brackets."""
    names = list(next(iter(estimates.values()))["errors"])
    lines = [f"{observable}: bias ± standard error (mean absolute error of one chain)", ""]
    lines += ["| setting | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for sweep, part in estimates.items():
        for i, value in enumerate(part["values"]):
            cells = [part["errors"][name][i][observable] for name in names]
            texts = [f"{_pm(cell)} ({cell['mean_absolute_error']:.4f})" for cell in cells]
            lines.append(f"| {SYMBOLS[sweep]} = {value:g} | " + " | ".join(texts) + " |")
    return "\n".join(lines)
