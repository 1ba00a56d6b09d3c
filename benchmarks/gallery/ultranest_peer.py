"""UltraNest's reactive nested sampling with its documented defaults: at least 400 live points, MLFriends.

From 10 dimensions on it gets the step sampler that its documentation gives for many dimensions: slices in 2 d steps
along a mixture of directions. It ends by its own rules, of which one is 400 effective draws, mostly long before the
budget is spent: with more live points the work between two evaluations grows with their square.
"""

import logging
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.gallery.box import box_of
from benchmarks.gallery.likelihood import LogLikelihood
from benchmarks.gallery.outcome import Budget, Outcome, Tuning
from contourmc.problems import Problem

MANY_DIMENSIONS = 10


def ultranest(problem: Problem, setting: str, tuning: Tuning | None, budget: Budget, seed: int) -> Outcome:
    """One run, with no more evaluations than the budget has."""
    from ultranest import ReactiveNestedSampler, stepsampler  # pyright: ignore[reportMissingImports]

    box, likelihood = box_of(problem), LogLikelihood(problem)
    began = time.perf_counter()
    np.random.seed(seed)  # noqa: NPY002  # it has no generator of its own
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        names = [f"x{i}" for i in range(box.dimension)]
        sampler: Any = ReactiveNestedSampler(names, likelihood.batch, box.stretch, vectorized=True)
        logging.getLogger("ultranest").setLevel(logging.ERROR)  # which the sampler has set to say much
        if box.dimension >= MANY_DIMENSIONS:
            directions = stepsampler.generate_mixture_random_direction
            sampler.stepsampler = stepsampler.SliceSampler(nsteps=2 * box.dimension, generate_direction=directions)
        found: Any = sampler.run(max_ncalls=budget.evaluations, show_status=False, viz_callback=False)
        draws = found["weighted_samples"]
        log_weights = np.log(draws["weights"])
    seconds = time.perf_counter() - began - likelihood.compile_seconds
    return Outcome(
        draws["points"].reshape(1, -1, *problem.start.shape), log_weights[None],
        likelihood.evaluations, seconds, likelihood.compile_seconds,
        log_evidence=float(found["logz"]) + box.log_volume, log_evidence_error=float(found["logzerr"]),
    )  # fmt: skip
