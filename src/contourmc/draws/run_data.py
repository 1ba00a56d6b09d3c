"""What a run leaves: its draws with their energies and weights, and how it was made."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from contourmc._core.checks import require
from contourmc._core.pytrees import Position, position_size
from contourmc.draws.basins import Basins
from contourmc.draws.trajectory import Trajectory
from contourmc.flattening.partition import Partition
from contourmc.flattening.summary import Flattening
from contourmc.targets.base import Target
from contourmc.targets.view import Labels, View

_FEW = 2**14  # numbers of a position


@dataclass(frozen=True)
class RunData:
    """The draws of a run, and all else that is known of it; `WeightedDraws` adds estimates, `Samples` files and more.

    draws: kept positions, a pytree like the position with leading axes (chain, draw); None if not stored. Those of a
        run with a checkpoint are on disk, and `positions` reads them. Of a target with coordinates for its user, such
        as `transformed`, they are in these.
    energies, log_weights, multipliers: of each kept draw, (chain, draw).
    virials: (x − c)·∇U(x) / (dτ) at each kept draw, whose mean is 1 in equilibrium; None for a kernel that is exact at
        any step size, or cannot tell.
    steps: the step of each kept draw.
    trajectory: estimates and θ along the run, from every step.
    settings: how the run was made, as plain data.
    seconds: how long it took, without compilation.
    compile_seconds: how long compilation took; next to nothing when an equal run came before.
    interrupted: whether the run has not reached its last step.
    stage: what the run was doing last: `sampling`; or, in a run that tunes itself, `learning` θ or its `pilot`.
    target_states: the target's state at each kept draw, such as batch-norm statistics, or None.
    average: the result of the run's model average; None without one, or without a draw; a list, with one for each
        chain, if each chain had its own target and average.
    flattening: the energy bins, and how they were used; None for a kernel that does not flatten.
    basins: the minima that a pilot found, or None for a run without a pilot; of a run that came from a file, those of
        its draws.
    exact: whether the energies are without noise.
    target: what was sampled, to evaluate more energies; None if that has noise, or if each chain had its own. It is not
        part of files, pickles and comparisons.
    unconstrained: the draws as they were sampled, of a target whose user sees them in other coordinates; else None.
    labels: names of the axes of draws, and labels along them.
    view: how the user sees draws; None if as they were sampled. Like `target`, it is not part of files.

    >>> print(run.draws.shape, run.energies.shape, run.steps.shape, run.stage)
    (4, 14000) (4, 14000) (14000,) sampling
    """

    draws: Any  # a Position, whose arrays may be on disk (`StoredArray`)
    energies: Float[np.ndarray, "chains draws"]
    log_weights: Float[np.ndarray, "chains draws"]
    multipliers: Float[np.ndarray, "chains draws"]
    steps: Int[np.ndarray, " draws"]
    trajectory: Trajectory
    settings: dict[str, Any]
    seconds: float
    compile_seconds: float = 0.0
    interrupted: bool = False
    stage: str = "sampling"
    target_states: Any = None
    average: Any = None
    flattening: Flattening | None = None
    virials: Float[np.ndarray, "chains draws"] | None = None
    basins: Basins | None = None
    exact: bool = True
    target: Target | None = field(default=None, repr=False, compare=False)
    unconstrained: Any = None
    labels: Labels = field(default_factory=Labels)
    view: View | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        arrays = {name: jax.tree.map(np.asarray, getattr(self, name)) for name in ("draws", "unconstrained")}
        return (
            {name: getattr(self, name) for name in self.__dataclass_fields__} | arrays | {"target": None, "view": None}
        )

    @property
    def chains(self) -> int:
        return self.energies.shape[0]

    @property
    def theta(self) -> Float[np.ndarray, "chains bins"] | None:
        """The last θ of each chain, or None for a kernel that has none."""
        return None if self.trajectory.theta is None else self.trajectory.theta[:, -1]

    @property
    def partition(self) -> Partition | None:
        """The energy bins of the kernel, or None for a kernel that has none."""
        return None if self.flattening is None else self.flattening.partition

    @property
    def automatic(self) -> bool:
        """Whether the run chose its partition by itself."""
        return self.flattening is not None and self.flattening.automatic

    @cached_property
    def positions(self) -> Position:
        """The stored draws in memory; raises if there are none."""
        require(self.draws is not None, "store", False, "this needs the positions of the draws: run with store=True")
        return jax.tree.map(np.asarray, self.draws)

    @cached_property
    def sampled(self) -> Position:
        """The stored draws in memory, as they were sampled: those that energies, basins and volumes belong to."""
        return self.positions if self.unconstrained is None else jax.tree.map(np.asarray, self.unconstrained)

    @property
    def few_coordinates(self) -> bool:
        """Whether there are so few that statistics of each of them can be had at any time."""
        if self.trajectory.means is not None:
            return True
        return self.draws is not None and position_size(self.draws) <= _FEW * self.energies.size
