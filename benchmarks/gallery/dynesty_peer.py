"""dynesty's dynamic nested sampling with its documented defaults: 500 live points, several ellipsoids as bounds.

Below 10 dimensions it samples uniformly within the bounds, to 20 by random walks, above by slices. A run first goes
through all likelihoods once and then adds batches where they help; it ends when the evaluations are spent, also if the
first pass has not reached the peaks. Its own rule, 10,000 effective draws, is off.
"""

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.gallery.box import box_of
from benchmarks.gallery.likelihood import LogLikelihood
from benchmarks.gallery.outcome import Budget, Outcome, Tuning
from contourmc.problems import Problem


def dynesty(problem: Problem, setting: str, tuning: Tuning | None, budget: Budget, seed: int) -> Outcome:
    """One run with all evaluations of the budget."""
    from dynesty import DynamicNestedSampler  # pyright: ignore[reportMissingImports]  # an optional extra

    box, likelihood = box_of(problem), LogLikelihood(problem)
    began = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        sampler = DynamicNestedSampler(likelihood.point, box.stretch, box.dimension, rstate=np.random.default_rng(seed))
        sampler.run_nested(maxcall=budget.evaluations, use_stop=False, save_bounds=False, print_progress=False)
    found: Any = sampler.results
    seconds = time.perf_counter() - began - likelihood.compile_seconds
    draws = np.asarray(found.samples).reshape(1, -1, *problem.start.shape)
    log_weights = np.asarray(found.logwt)[None] - found.logz[-1]
    return Outcome(
        draws, log_weights, likelihood.evaluations, seconds, likelihood.compile_seconds,
        log_evidence=float(found.logz[-1]) + box.log_volume, log_evidence_error=float(found.logzerr[-1]),
    )  # fmt: skip
