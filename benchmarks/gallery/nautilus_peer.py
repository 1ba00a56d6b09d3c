"""nautilus with its documented defaults: 2,000 live points, bounds by networks, importance nested sampling.

It explores, and then samples its shells until the evaluations are spent; its own rule, 10,000 effective draws, is off.
It needs two dimensions: on the line, a second coordinate is ignored. It gives no standard error of the evidence.
"""

import time
import warnings
from typing import Any

from benchmarks.gallery.box import box_of
from benchmarks.gallery.likelihood import LogLikelihood
from benchmarks.gallery.outcome import Budget, Outcome, Tuning
from contourmc.problems import Problem


def nautilus(problem: Problem, setting: str, tuning: Tuning | None, budget: Budget, seed: int) -> Outcome:
    """One run with all evaluations of the budget."""
    from nautilus import Sampler  # pyright: ignore[reportMissingImports]  # an optional extra

    box, likelihood = box_of(problem, at_least=2), LogLikelihood(problem)
    began = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        sampler: Any = Sampler(box.stretch, likelihood.batch, n_dim=box.dimension, vectorized=True, seed=seed)
        sampler.run(n_eff=float("inf"), n_like_max=budget.evaluations)
        points, log_weights, _ = sampler.posterior()
    seconds = time.perf_counter() - began - likelihood.compile_seconds
    return Outcome(
        points[None, :, : problem.dimension].reshape(1, -1, *problem.start.shape), log_weights[None],
        likelihood.evaluations, seconds, likelihood.compile_seconds,
        log_evidence=float(sampler.log_z) + box.log_volume,
    )  # fmt: skip
