"""The study: every method on the mixture, compared with quadrature and with the paper's words."""

from typing import Any

from contourmc.studies.base import Options, Outcome
from contourmc.studies.gaussian_mixture.claims import error_claims, landscape_claims, make_notes
from contourmc.studies.gaussian_mixture.experiment import SCHEMES, ZETAS, Method, barriers, kernels, measure, summarise
from contourmc.studies.gaussian_mixture.figure import draw_figure


def run(options: Options, results: dict[str, Any]) -> Outcome:
    """Sample with every method, and compare with quadrature and with the paper's words."""
    seeds = {name: seed for seed, name in enumerate(kernels(quick=False))}
    methods: dict[str, Method] = {}
    for name, kernel in kernels(options.quick).items():
        methods[name] = measure(kernel, options.size, seeds[name])
        results[name] = summarise(name, methods[name])
    found = dict(results)
    heights = results["barriers"] = {
        scheme: {f"{zeta:g}": barriers(partition, zeta, scheme) for zeta in (0.0, *ZETAS)}
        for scheme, partition in SCHEMES
    }
    claims = [*landscape_claims(heights, found), *error_claims(methods, found)]
    return Outcome(claims, results, {"figure1": draw_figure(methods)}, make_notes(heights, found, options.size))
