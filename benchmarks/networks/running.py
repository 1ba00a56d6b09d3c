"""A plan carried out on problems: one run with a chain for each where their data are small, else one after another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import contourmc as cm
from benchmarks.networks.methods import Energies, Plan
from benchmarks.networks.problem import Problem, joined
from contourmc.predictions.prediction import Prediction


@dataclass(frozen=True)
class Outcome:
    """prediction: of all models.
    effective_models: how many equally weighted models it is worth.
    energies: of the models, by observation.
    multipliers: the least and the largest multiplier of the gradient at a model; None for a method without.
    evaluations: of gradients.
    seconds: of the run, compilation apart; of several in one run, the share of each.
    """

    prediction: Prediction
    effective_models: float
    energies: Energies
    multipliers: tuple[float, float] | None
    evaluations: int
    seconds: float


def carry_out(plan: Plan, problems: list[Problem]) -> Iterator[Outcome | str]:
    """The outcome for each problem, or the message of a run that diverged; the place of a problem is its seed.

    If one of several in a run diverges, all of them are run again, one after another.
    """
    if problems[0].data.together:
        try:
            yield from _together(plan, problems)
            return
        except cm.DivergenceError:
            pass
    for seed, problem in enumerate(problems):
        try:
            yield _alone(plan, problem, seed)
        except cm.DivergenceError as failure:
            yield str(failure)


def _together(plan: Plan, problems: list[Problem]) -> list[Outcome]:
    posteriors = [one for problem in problems for one in [problem.posterior] * plan.members]
    averages = [one for problem in problems for one in [problem.average(plan.effective)] * plan.members]
    run = _sample(plan, posteriors, problems[0].init, averages)
    chains = [slice(i * plan.members, (i + 1) * plan.members) for i in range(len(problems))]
    return [
        _outcome(plan, run, which, joined(run.average[which]), problem.observations, run.seconds / len(problems))
        for which, problem in zip(chains, problems, strict=True)
    ]


def _alone(plan: Plan, problem: Problem, seed: int) -> Outcome:
    run = _sample(
        plan, problem.posterior, problem.init, problem.average(plan.effective), chains=plan.members, seed=seed
    )
    return _outcome(plan, run, slice(None), run.average, problem.observations, run.seconds)


def _sample(plan: Plan, target: Any, init: Any, average: Any, **more: Any) -> cm.Samples:
    length: dict[str, Any] = dict(steps=plan.steps, burn_in=plan.burn_in, thin=plan.thin)
    how: dict[str, Any] = dict(kernel=plan.kernel, learning_rate=plan.learning_rate)  # one of them is None
    return cm.sample(target, init=init, average=average, store=False, progress=False, **length, **how, **more)


def _outcome(
    plan: Plan, run: cm.Samples, chains: slice, prediction: Prediction, observations: int, seconds: float
) -> Outcome:
    low, high = np.quantile(run.energies[chains], [0.1, 0.9]) / observations
    flat = run.multipliers[chains]
    return Outcome(
        prediction=prediction,
        effective_models=prediction.effective_share * prediction.models * len(prediction.shares),
        energies=Energies(float(low), float(high)),
        multipliers=None if run.flattening is None else (float(flat.min()), float(flat.max())),
        evaluations=plan.evaluations,
        seconds=seconds,
    )
