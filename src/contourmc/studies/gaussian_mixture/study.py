"""The study: every method on the mixture, compared with quadrature and with the paper's words."""

from contourmc.studies.base import Options, Outcome
from contourmc.studies.gaussian_mixture.claims import error_claims, landscape_claims, make_notes
from contourmc.studies.gaussian_mixture.experiment import SCHEMES, ZETAS, barriers, kernels, measure, summarise
from contourmc.studies.gaussian_mixture.figure import draw_figure


def run(options: Options) -> Outcome:
    """Sample with every method, and compare with quadrature and with the paper's words."""
    steps, runs = options.choose(steps=10_000_000, seeds=10, quick_steps=100_000, quick_seeds=4)
    seeds = {name: seed for seed, name in enumerate(kernels(quick=False))}
    methods = {name: measure(kernel, steps, runs, seeds[name]) for name, kernel in kernels(options.quick).items()}
    heights = {
        scheme: {f"{zeta:g}": barriers(partition, zeta, scheme) for zeta in (0.0, *ZETAS)}
        for scheme, partition in SCHEMES
    }
    found = summarise(methods)
    results = {"steps": steps, "runs": runs, "barriers": heights, **found}
    claims = [*landscape_claims(heights, found), *error_claims(methods, found)]
    return Outcome(claims, results, {"figure1": draw_figure(methods)}, make_notes(heights, found, steps, runs))
