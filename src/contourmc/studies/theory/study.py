"""The study: both theorems."""

from typing import Any

from contourmc.flattening.theta import Scheme
from contourmc.studies.base import Options, Outcome
from contourmc.studies.theory.claims import make_claims, make_notes
from contourmc.studies.theory.experiment import measure_estimates, measure_learning
from contourmc.studies.theory.figures import draw_estimates, draw_learning
from contourmc.studies.theory.setting import COLORS, NAMES, truth

SWEEPS = {
    "width": (0.25, 0.5, 1.0, 2.0, 4.0),
    "step_size": (0.02, 0.05, 0.1, 0.2, 0.4),
    "energy_variance": (0.0, 0.1, 0.5, 1.0, 2.0),
}
SCHEMES: tuple[Scheme, ...] = ("left", "centred")
QUICK_SCHEMES: tuple[Scheme, ...] = ("left",)
QUICK_SWEEPS = {"width": (0.5, 1.0), "step_size": (0.02, 0.2), "energy_variance": (0.0, 1.0)}


def run(options: Options, results: dict[str, Any]) -> Outcome:
    """Measure how θ is learnt over time, and how the estimates depend on Δu, ε and noise."""
    # A rate needs several marks, a spread two chains.
    steps, chains = max(options.size.length, 20_000), max(options.size.seeds, 2)
    schemes = QUICK_SCHEMES if options.quick else SCHEMES
    variants = [variant for variant in COLORS if variant[0] in schemes]
    lengths = (steps,) if options.quick else (steps // 20, steps)
    for variant in variants:
        results.setdefault("learning", {})[NAMES[variant]] = measure_learning(variant, lengths, chains)
    for sweep, errors in measure_estimates(QUICK_SWEEPS if options.quick else SWEEPS, schemes, steps, chains):
        results.setdefault("estimates", {})[sweep] = errors
    results |= {"steps": steps, "chains": chains, "truth": truth()}
    learning, estimates = results["learning"], results["estimates"]
    figures = {
        "theta_convergence": draw_learning(learning),
        "weighted_estimates": draw_estimates(estimates),
    }
    return Outcome(make_claims(learning, estimates), results, figures, make_notes(results))
