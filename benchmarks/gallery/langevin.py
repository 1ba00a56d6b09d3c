"""The methods that run on our own engine: contourmc as it comes, SGLD, and reSGLD."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

import contourmc as cm
from benchmarks.gallery.outcome import WITH_GRADIENT, Budget, Outcome, Tuning
from contourmc.draws.bridging.integral import REFERENCE_DRAWS
from contourmc.problems import Problem

# SGLD has no Metropolis test and no preconditioner, and so may need a far smaller step than contourmc chose.
STEP_FACTORS = (1.0, 1 / 4, 1 / 16, 1 / 64)
LADDERS = ((1.0, 5.0), (1.0, 20.0), (1.0, 2.0, 4.0, 8.0))


def automatic(problem: Problem, budget: Budget, seed: int) -> cm.Samples:
    """contourmc with nothing chosen by hand; its pilot is part of the steps."""
    start = jnp.asarray(problem.start)
    return cm.sample(problem.energy, init=start, steps=budget.steps, chains=budget.chains, seed=seed, progress=False)


def automatic_outcome(samples: cm.Samples) -> Outcome:
    """With its diagnosis and its log evidence, whose evaluations count too."""
    log_evidence, error = evidence(samples)
    outcome = _outcome(samples, samples.settings["steps"])
    return replace(
        outcome, evaluations=outcome.evaluations + 2 * REFERENCE_DRAWS,
        trusted=samples.diagnose().ok, log_evidence=log_evidence, log_evidence_error=error,
    )  # fmt: skip


def evidence(samples: cm.Samples) -> tuple[float | None, float | None]:
    """The log evidence of a run and its standard error; none if it refuses."""
    try:
        found = samples.log_evidence()
    except ValueError:
        return None, None
    return found.value, found.error


def tuning_of(samples: cm.Samples) -> Tuning:
    """What the automatic run chose."""
    partition, basins = samples.partition, samples.basins
    if partition is None or basins is None:
        raise ValueError("the automatic run has no partition")
    # In units of the smallest scale: the peers have no preconditioner.
    scale = min(float(np.min(leaf)) for leaf in jax.tree.leaves(basins.scale))
    return Tuning(float(samples.settings["step_size"]) * scale**2, partition)


def sgld_settings(tuning: Tuning) -> list[float]:
    """Step sizes: contourmc's, and smaller ones."""
    return [factor * tuning.step_size for factor in STEP_FACTORS]


def sgld(problem: Problem, step_size: float, tuning: Tuning, budget: Budget, seed: int) -> Outcome:
    """Plain SGLD, equal weights."""
    return _run(problem, cm.sgld(step_size), budget, seed)


def resgld_settings(tuning: Tuning) -> list[tuple[float, tuple[float, ...]]]:
    """Step sizes as for SGLD, each with three ladders of temperatures."""
    return [(step_size, ladder) for step_size in sgld_settings(tuning) for ladder in LADDERS]


def resgld(
    problem: Problem, setting: tuple[float, tuple[float, ...]], tuning: Tuning, budget: Budget, seed: int
) -> Outcome:
    """SGLD at two or more temperatures that exchange positions; every replica's evaluations count."""
    step_size, ladder = setting
    kernel = cm.replica_exchange(*(cm.sgld(step_size, temperature) for temperature in ladder))
    return _run(problem, kernel, budget, seed)


def _run(problem: Problem, kernel: cm.Kernel, budget: Budget, seed: int) -> Outcome:
    steps, start = budget.steps // kernel.evaluations, jnp.asarray(problem.start)
    samples = cm.sample(
        problem.energy, init=start, steps=steps, kernel=kernel, chains=budget.chains, seed=seed, progress=False
    )
    return _outcome(samples, steps * kernel.evaluations)


def _outcome(samples: cm.Samples, steps: int) -> Outcome:
    positions = np.asarray(samples.draws)
    return Outcome(
        positions, samples.log_weights, WITH_GRADIENT * steps * len(positions), samples.seconds,
        samples.compile_seconds, samples.comparable_weights,
    )  # fmt: skip
