"""The state of a run that tunes itself, and what follows from it."""

from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from contourmc._core.describe import describe
from contourmc.engine.state import RunState, gather
from contourmc.kernels.contour import Contour
from contourmc.kernels.dynamics import Dynamics
from contourmc.kernels.jumps import EVERY, Jumps
from contourmc.tuning.conclusions import Bins, Conclusions
from contourmc.tuning.pilot import PilotState
from contourmc.tuning.varied_step import VariedStep

ROUNDS = 5  # looks at the partition while θ is learnt
MEETINGS = 50  # of the chains while θ is learnt
LOOKS = 10  # at the partition while the chains sample

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
    looks: how many looks at the partition there have been in this stage.
    look: the step of `run` at which to look again.
    goal: the step of `run` at which the chains meet, or look.
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
    look: int = 0
    goal: int = 0
    relearnt: int = 0
    extensions: tuple[Extension, ...] = ()
    run: RunState | None = None

    def with_goal(self, step: int, steps: int, block: int) -> "AdaptiveState":
        """With the next goal of a run that has made `step` of its `steps` steps, and makes them in such blocks."""
        look = self.look
        if step >= look:
            look = step + (steps - step) // max(1, (LOOKS if self.stage == SAMPLING else ROUNDS) - self.looks)
        if self.stage == SAMPLING:
            return self._replace(look=look, goal=look)
        apart = max(1, steps // MEETINGS)
        goal = step + apart if 2 * apart < block else (step + apart + block - 1) // block * block
        return self._replace(look=look, goal=min(goal, look))

    def describe(self, kernel: Contour | None) -> dict[str, Any]:
        """What was chosen, as plain data."""
        chosen: dict[str, Any] = {"changes": [str(extension) for extension in self.extensions]}
        if self.found is not None:
            found = self.found
            chosen |= {
                "pilot_steps": found.steps,
                "acceptance": found.acceptance,
                "scale": None if found.scale is None else jax.tree.map(_plain, found.scale),
                "correlated": found.factor is not None,
                "temperature": found.temperature,
                "escaped": found.escaped,
                "minima": jax.tree.map(_plain, found.minima),
                "minimum_energies": _plain(found.minimum_energies),
            }
        if kernel is None:
            return {"kernel": {}, "automatic": chosen}
        inner = kernel.dynamics
        if isinstance(inner, Jumps):
            inner, basins = inner.dynamics, int(inner.shapes.count)
            chosen["jumps"] = {"basins": basins, "every": EVERY, "accepted": self._accepted_jumps()}
        assert isinstance(inner, Dynamics)
        size = inner.step_size.step_size if isinstance(inner.step_size, VariedStep) else inner.step_size
        return {"kernel": describe(kernel), "step_size": size, "automatic": chosen}

    def _accepted_jumps(self) -> float:
        """The share of jumps that were accepted."""
        assert self.run is not None
        states = gather(self.run.groups, lambda chain: chain.state.dynamics)
        return float(np.sum(states.landed) / max(1, np.sum(states.inner.steps // EVERY)))


def _plain(leaf: Any) -> Any:
    return np.asarray(leaf, float).tolist()
