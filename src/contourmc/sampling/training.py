"""Runs by a learning rate, as a training script has it: the kernel and the length that follow from it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from contourmc._core.checks import require
from contourmc.engine.run import DivergenceError, Run
from contourmc.flattening.following import Following
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import csghmc
from contourmc.kernels.schedules import CyclicCosine, Schedule, check_schedule
from contourmc.targets.base import Target
from contourmc.targets.minibatch import MiniBatchTarget

TEMPERATURE = 0.01  # colder than the posterior, whose prior is rarely meant (docs/networks.md)
LEAST = 2 * Following.smoothing  # steps before the flattening begins
BURN_IN = 0.4  # of the steps, unless the learning rate goes in cycles
TRIALS, TRIAL_STEPS = 30, 1000  # of smaller learning rates, after one that diverged


@dataclass(frozen=True)
class StepSize:
    """ε_k = η_k/N: for energies that are sums over N observations, what η_k is for their mean."""

    learning_rate: Callable[[Any], Any]
    observations: int

    def __call__(self, step: Array) -> Array:
        return jnp.asarray(self.learning_rate(step)) / self.observations


def check_learning_rate(target: Target, learning_rate: Any, kernel: Any, partition: Any, step_size: Any) -> None:
    """Raise unless a run can be made by a learning rate."""
    remedy = "a learning_rate takes its place: give one of the two"
    require(kernel is None, "kernel", kernel, remedy)
    require(isinstance(step_size, str) and step_size == "auto", "step_size", step_size, remedy)
    follows = isinstance(partition, Following) or (isinstance(partition, str) and partition == "auto")
    require(follows, "partition", partition, 'with a learning_rate, give Following(...), or "auto"')
    remedy = "give a number above 0, such as 0.1, or a schedule, such as CyclicCosine(0.5, period)"
    check_schedule("learning_rate", learning_rate, remedy, positive=not callable(learning_rate))
    remedy = "a learning rate is of a mean loss over data: give a Posterior; for an energy, leave it out"
    require(target.observations is not None, "learning_rate", learning_rate, remedy)


def choose_length(learning_rate: Schedule, steps: int, burn_in: int | None, thin: int | None) -> tuple[Any, Any]:
    """Burn-in and thinning: 40% of the steps; or the first cycle, and a model at the end of each other one."""
    if isinstance(learning_rate, CyclicCosine) and learning_rate.period < steps:
        return learning_rate.period if burn_in is None else burn_in, learning_rate.period if thin is None else thin
    return int(BURN_IN * steps) if burn_in is None else burn_in, thin


def training_kernel(
    learning_rate: Schedule,
    temperature: Schedule | None,
    partition: Any,
    observations: int,
    steps: int,
    burn_in: int,
    shared: bool,
) -> Kernel:
    """Contour SGHMC whose bins follow the energies, and which flattens once models are averaged."""
    size = StepSize(learning_rate, observations) if callable(learning_rate) else learning_rate / observations
    following = (
        partition if isinstance(partition, Following) else Following(begin=max(burn_in, 2 * Following.smoothing))
    )
    remedy = (
        f"the bins need {following.begin} steps to find the energies, and {burn_in} come before models are averaged"
    )
    short = following.begin > burn_in and not isinstance(partition, Following)
    require(not short, "steps", steps, f"{remedy}: give more steps, or a larger burn_in")
    remedy = f"the flattening begins after {following.begin} steps: give a smaller begin, or more steps"
    require(following.begin < steps, "partition", following, remedy)
    return csghmc(size, following, temperature=TEMPERATURE if temperature is None else temperature, shared=shared)


def training_target(target: Target) -> Target:
    """Flattened by the data, unless the user said otherwise."""
    return target.by_data() if isinstance(target, MiniBatchTarget) else target


def diverged(error: DivergenceError, begin: Callable[..., Run], learning_rate: Schedule, step: int) -> DivergenceError:
    """The error of a run that diverged at a step, with the largest learning rate that did not, and lowered the loss.

    begin: starts the same run with another learning rate, for so many steps.
    """
    steps = min(TRIAL_STEPS, max(100, 4 * step))
    for halvings in range(1, TRIALS + 1):
        factor = 0.5**halvings
        smaller = _Times(learning_rate, factor) if callable(learning_rate) else float(learning_rate) * factor
        try:
            with begin(learning_rate=smaller, steps=steps) as run:
                run.advance(1)
                first = run.figures()["loss"]
                run.advance(steps - 1)
                if not run.figures()["loss"] <= first:
                    continue
        except DivergenceError:
            continue
        except Exception:  # a loader that can be read only once, say: the first error says enough
            break
        shown = f"{factor:g} times the schedule" if callable(learning_rate) else f"{smaller:g}"
        advice = f"The largest that did not, found by halving, is {shown}: in {steps} steps it lowered the loss"
        return DivergenceError(f"learning_rate={_shown(learning_rate)} diverged. {advice}. {error}", error.samples)
    return error


@dataclass(frozen=True)
class _Times:
    """A schedule times a number."""

    schedule: Callable[[Any], Any]
    factor: float

    def __call__(self, step: Array) -> Array:
        return jnp.asarray(self.schedule(step)) * self.factor


def _shown(learning_rate: Any) -> str:
    return repr(learning_rate) if callable(learning_rate) else f"{learning_rate:g}"
