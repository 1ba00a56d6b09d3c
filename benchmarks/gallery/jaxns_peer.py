"""JAXNS with its documented defaults: 30 d live points, each new one by 5 d slices.

After a sweep through all likelihoods it sweeps again with more live points, until the evaluations are spent. Within a
sweep it cannot be stopped at an evaluation, only at a number of samples: that which spends the budget follows from a
trial, which is not counted. JAXNS runs in double precision.
"""

import contextlib
import logging
import tempfile
import time
import warnings
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.gallery.box import box_of
from benchmarks.gallery.outcome import Budget, Outcome, Tuning, log_density
from contourmc.problems import Problem

LIVE_POINTS, SLICES = 30, 5  # for each dimension: JAXNS's defaults
MOST_A_SLICE = 4.5  # evaluations, once the likelihoods are high; a slice of the whole box takes one
ENOUGH = 0.85  # of the budget
TRIAL_SEED = 1_000_000


def jaxns(problem: Problem, setting: str, tuning: Tuning | None, budget: Budget, seed: int) -> Outcome:
    """One run with all evaluations of the budget, or nearly all."""
    samples, compile_seconds = _most_samples(problem, budget)
    began = time.perf_counter()
    with _CompileClock() as clock, jax.enable_x64(True), warnings.catch_warnings(action="ignore"):
        found = _run(problem, budget, samples, seed).to_result().trim()
        log_weights = np.asarray(found.log_dp)
    seconds = time.perf_counter() - began - clock.seconds
    draws = np.asarray(found.X_samples["x"]).reshape(1, -1, *problem.start.shape)
    return Outcome(
        draws, log_weights[None], int(found.total_num_likelihood_evaluations), seconds,
        compile_seconds + clock.seconds,
        log_evidence=float(found.log_Z_mean) + box_of(problem).log_volume,
        log_evidence_error=float(found.log_Z_uncert),
    )  # fmt: skip


@lru_cache(maxsize=4)
def _most_samples(problem: Problem, budget: Budget) -> tuple[int, float]:
    """How many samples spend the budget, and the seconds that the program for them took to compile.

    More are added while much of the budget is left, at twice the price of the last ones: samples become dearer.
    """
    slices = SLICES * problem.dimension
    samples = round(LIVE_POINTS * problem.dimension + budget.evaluations / (slices * MOST_A_SLICE))
    with jax.enable_x64(True), warnings.catch_warnings(action="ignore"):
        with _CompileClock() as clock:
            state = _run(problem, budget, samples, TRIAL_SEED)
        spent = int(state.total_num_likelihood_evaluations)
        price = spent / (samples - LIVE_POINTS * problem.dimension)
        while int(state.termination_reason) and spent < ENOUGH * budget.evaluations:
            more = int((budget.evaluations - spent) / min(2 * price, slices * MOST_A_SLICE)) + 1
            samples += more
            with _CompileClock() as clock:
                state = _run(problem, budget, samples, TRIAL_SEED, state)
            now = int(state.total_num_likelihood_evaluations)
            spent, price = now, (now - spent) / more
    return samples, clock.seconds


def _run(problem: Problem, budget: Budget, samples: int, seed: int, state: Any = None) -> Any:
    """A run from the start, or on from where another limit had stopped it; all storage at once saves compilation."""

    def spent(state: Any) -> bool:
        swept = int(state.goal_loop_iter) > 0
        return swept and int(state.total_num_likelihood_evaluations) >= budget.evaluations

    sampler = _packages().NestedSampler(model=_model(problem), max_samples=samples, initial_capacity=samples)
    if state is None:
        return sampler.run_until_goal(spent, key=jax.random.PRNGKey(seed))
    state = replace(state, termination_reason=jnp.zeros_like(state.termination_reason)).resize(samples)
    return sampler.resume_until_goal(state, spent)


@lru_cache(maxsize=4)
def _model(problem: Problem) -> Any:
    """The same for all seeds, so that the programs are too."""
    box, density, packages = box_of(problem), log_density(problem), _packages()

    def prior_and_likelihood() -> Any:
        uniform = packages.distributions.Uniform(low=jnp.asarray(box.low), high=jnp.asarray(box.high))
        return density(packages.Prior(uniform, name="x").realise())

    return packages.Model(prior_model=prior_and_likelihood)


class _Packages:
    """What is used of JAXNS, imported without what it does to the process.

    Its import turns on double precision for all, adds handlers to the root logger, and opens a log file in the current
    folder.
    """

    def __init__(self) -> None:
        precision, root = jax.config.read("jax_enable_x64"), logging.getLogger()
        handlers, level = list(root.handlers), root.level
        folder = tempfile.TemporaryDirectory()
        with folder, contextlib.chdir(folder.name), warnings.catch_warnings(action="ignore"):
            from jaxns.core import NestedSampler  # pyright: ignore[reportMissingImports]  # an optional extra
            from jaxns.model import Model  # pyright: ignore[reportMissingImports]
            from jaxns.priors import Prior  # pyright: ignore[reportMissingImports]
            from tensorflow_probability.substrates.jax import distributions  # pyright: ignore[reportMissingImports]
        jax.config.update("jax_enable_x64", precision)
        root.handlers, root.level = handlers, level
        logging.getLogger("jaxns").handlers.clear()
        self.NestedSampler, self.Model, self.Prior, self.distributions = NestedSampler, Model, Prior, distributions


_packages = lru_cache(maxsize=1)(_Packages)


class _CompileClock:
    """Adds up the seconds that JAX spends on compiling while it is on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def _listen(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.startswith("/jax/core/compile/"):
            self.seconds += duration_secs

    def __enter__(self) -> "_CompileClock":
        jax.monitoring.register_event_duration_secs_listener(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        jax.monitoring.unregister_event_duration_listener(self._listen)
