"""pocoMC, preconditioned Monte Carlo with normalising flows, with its documented defaults: 256 active particles.

It goes from the prior to the target and then adds particles, training a flow each time, until it has 4,096 effective
draws; 4,096 more evaluations go into the evidence. With so few particles at a time it cannot spend a large budget, and
ends before. A run whose budget is spent first gives its particles reweighted, and the evidence from their weights.
It needs two dimensions, for its number of steps is half of them: on the line, a second coordinate is ignored.
"""

import time
import warnings
from typing import Any

from benchmarks.gallery.box import box_of
from benchmarks.gallery.likelihood import BudgetSpentError, LogLikelihood
from benchmarks.gallery.outcome import Budget, Outcome, Tuning
from contourmc.problems import Problem


def pocomc(problem: Problem, setting: str, tuning: Tuning | None, budget: Budget, seed: int) -> Outcome:
    """One run, with no more evaluations than the budget has."""
    import pocomc  # pyright: ignore[reportMissingImports]  # an optional extra
    from scipy.stats import uniform

    box, likelihood = box_of(problem, at_least=2), LogLikelihood(problem, limit=budget.evaluations)
    prior = pocomc.Prior([uniform(low, high - low) for low, high in zip(box.low, box.high, strict=True)])
    began = time.perf_counter()
    with warnings.catch_warnings(action="ignore"):
        sampler: Any = pocomc.Sampler(prior, likelihood.batch, n_dim=box.dimension, vectorize=True, random_state=seed)
        try:
            sampler.run(progress=False)
            log_evidence, error = sampler.evidence()
        except BudgetSpentError:
            log_evidence, error = sampler.particles.compute_logw_and_logz(1.0)[1], None
        points, log_weights, _, _ = sampler.posterior(return_logw=True)
    seconds = time.perf_counter() - began - likelihood.compile_seconds
    return Outcome(
        points[None, :, : problem.dimension].reshape(1, -1, *problem.start.shape), log_weights[None],
        likelihood.evaluations, seconds, likelihood.compile_seconds,
        log_evidence=float(log_evidence) + box.log_volume, log_evidence_error=error,
    )  # fmt: skip
