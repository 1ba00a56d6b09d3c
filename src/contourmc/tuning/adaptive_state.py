"""The state of a run that tunes itself, and what follows from it."""

from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from contourmc._core.describe import describe
from contourmc.engine.state import RunState
from contourmc.kernels.contour import Contour
from contourmc.tuning.conclusions import Bins, Conclusions
from contourmc.tuning.pilot import PilotState
from contourmc.tuning.varied_step import VariedStep

ROUNDS = 5  # looks at the partition while θ is learnt
LOOKS = 10  # and while the chains sample

Stage = Literal["pilot", "learning", "sampling"]
STAGES: tuple[Stage, ...] = ("pilot", "learning", "sampling")
PILOT, LEARNING, SAMPLING = range(3)


class Extension(NamedTuple):
    """An extension of the partition: after which step it was made, and the partition's ends before and after."""

    step: int
    before: tuple[float, float]
    after: tuple[float, float]

    def __str__(self) -> str:
        (low, high), (new_low, new_high) = self.before, self.after
        span = f"{low:.4g} … {high:.4g} to {new_low:.4g} … {new_high:.4g}"
        return f"after {self.step:,} steps the partition was extended from {span}"


class AdaptiveState(NamedTuple):
    """stage: PILOT, LEARNING or SAMPLING.
    pilot: the state of the pilot; None for a run without one.
    found: the pilot's conclusions; None before its end, or without one.
    bins: the current partition; None before the pilot's end, unless it was given.
    spent: steps of each chain before those of `run`.
    looks: how many looks there have been in this stage.
    goal: the step of `run` at which to look again.
    relearnt: how many times θ was learnt again.
    extensions: the extensions of the partition so far.
    run: the chains, learning or sampling; None in the pilot.
    """

    stage: int
    pilot: PilotState | None = None
    found: Conclusions | None = None
    bins: Bins | None = None
    spent: int = 0
    looks: int = 0
    goal: int = 0
    relearnt: int = 0
    extensions: tuple[Extension, ...] = ()
    run: RunState | None = None

    def with_goal(self, step: int, steps: int) -> "AdaptiveState":
        """With the next goal of a run that has made `step` of its `steps` steps."""
        if self.stage == SAMPLING:
            return self._replace(goal=steps * (self.looks + 1) // LOOKS)
        return self._replace(goal=step + (steps - step) // (ROUNDS - self.looks))

    def describe(self, kernel: Contour | None) -> dict[str, Any]:
        """What was chosen, as plain data."""
        chosen: dict[str, Any] = {"changes": [str(extension) for extension in self.extensions]}
        if self.found is not None:
            found = self.found
            chosen |= {
                "pilot_steps": found.steps,
                "acceptance": found.acceptance,
                "scale": None if found.scale is None else jax.tree.map(_plain, found.scale),
                "temperature": found.temperature,
                "escaped": found.escaped,
                "minima": jax.tree.map(_plain, found.minima),
                "minimum_energies": _plain(found.minimum_energies),
            }
        if kernel is None:
            return {"kernel": {}, "automatic": chosen}
        size = kernel.dynamics.step_size
        size = size.step_size if isinstance(size, VariedStep) else size
        return {"kernel": describe(kernel), "step_size": size, "automatic": chosen}


def _plain(leaf: Any) -> Any:
    return np.asarray(leaf, float).tolist()
