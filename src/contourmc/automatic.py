"""A run that tunes itself: pilot, learning, sampling.

The pilot chooses step size, scales and energy partition. The chains then learn θ together, and the partition follows
the energies they meet. Then everything is fixed and they sample: from here on the flattened distribution stands
still, and the weights are exact. If sampling finds energies far below the partition, a basin deeper than all that
was known, the partition is extended and θ learnt again.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc.averages import Average
from contourmc.flattening import LogTheta
from contourmc.kernels.adjusted import Adjusted
from contourmc.kernels.base import Position
from contourmc.kernels.contour import Contour, ContourState
from contourmc.kernels.langevin import Langevin
from contourmc.partition import Partition
from contourmc.pilot import MOMENTUM, Pilot, explore
from contourmc.progress import Progress
from contourmc.run import Run, start_run
from contourmc.schedules import Polynomial
from contourmc.settings import describe
from contourmc.targets import Target

OMEGA = Polynomial(scale=10.0, power=0.6, offset=100.0)
ROUNDS = 5  # looks at the partition while θ is learnt
LOOKS = 10  # and while the chains sample
DEEPER = 4.0  # how far below the partition energies may lie, in bin widths
BEYOND = 0.25  # the share of energies that may lie above the partition
RELEARN = 2  # how often θ may be learnt again


class AutomaticRun:
    """A run without kernel.

    run: what is going on at present: learning, then sampling.
    pilot: what the pilot found, or None if there was nothing to find.
    changes: what was changed after the pilot, in words.
    """

    run: Run
    kernel: Contour

    def __init__(
        self, target: Target, positions: Position, keys: Array, *,
        steps: int, burn_in: int, thin: int, average: Average | None, store: bool,
    ):  # fmt: skip
        self.target, self.positions, self.keys = target, positions, keys
        self.steps, self.burn_in, self.kept = steps, burn_in, {"thin": thin, "average": average, "store": store}
        self.pilot: Pilot | None = None
        self.compile_seconds = 0.0
        self.changes: list[str] = []

    def prepare(self, partition: Partition | str, step_size: float | str, bar: Progress) -> None:
        """Fly the pilot and set up the kernel."""
        bar.stage("pilot")
        given = None if isinstance(step_size, str) else float(step_size)
        self.free = isinstance(partition, str)
        self.spent, scale = 0, None
        if self.target.exact or self.free:
            key = jax.random.fold_in(self.keys[0], 2**30)
            pilot = explore(self.target, self.positions, key, self.steps // 10, given, self.target.exact)
            self.pilot, self.positions, self.spent, scale = pilot, pilot.starts, pilot.steps, pilot.scale
            self.compile_seconds = pilot.compile_seconds
            given = pilot.step_size
            partition = pilot.partition if isinstance(partition, str) else partition
        assert given is not None
        assert isinstance(partition, Partition)
        dynamics = (Adjusted if self.target.exact else Langevin)(given, 1.0, MOMENTUM)
        self.kernel = Contour(dynamics, partition, omega=OMEGA, shared=self.keys.shape[0] > 1)
        state = jax.vmap(self.kernel.init)(self.positions)
        if scale is not None:
            count = self.keys.shape[0]
            spread = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), scale)
            state = state._replace(dynamics=state.dynamics._replace(scale=spread))
        self._begin(state, self.burn_in - self.spent)

    def go(self, bar: Progress) -> None:
        """Learn, then sample; learn again if it must be."""
        self._learn(bar)
        for again in range(RELEARN + 1):
            if self.run.failure or not self._sample(bar, may_stop=again < RELEARN):
                return
            self._learn(bar)

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen, as plain data."""
        chosen: dict[str, Any] = {"changes": self.changes}
        if self.pilot is not None:
            pilot = self.pilot
            chosen |= {
                "pilot_steps": pilot.steps,
                "acceptance": pilot.acceptance,
                "scale": None if pilot.scale is None else jax.tree.map(_plain, pilot.scale),
                "temperature": pilot.temperature,
                "left": pilot.left,
                "minima": jax.tree.map(_plain, pilot.minima),
                "minimum_energies": _plain(pilot.minimum_energies),
            }
        size = self.kernel.dynamics.step_size
        return {"kernel": describe(self.run.kernel), "step_size": size, "automatic": chosen}

    def _begin(self, state: ContourState, steps: int) -> None:
        """Start learning."""
        self.run = self._start(
            self.kernel, state, steps, **self.kept | {"thin": max(1, steps // 2000), "average": None}
        )

    def _start(self, kernel: Contour, state: ContourState, steps: int, **kept: Any) -> Run:
        """A run of the chains as they are, with randomness of its own."""
        keys = jax.vmap(jax.random.fold_in, (0, None))(self.keys, self.spent)
        positions = jax.vmap(kernel.draw)(state)
        run = start_run(
            self.target, kernel, positions, keys, steps=steps, burn_in=0, before=self.spent, state=state, **kept
        )
        run.compile_seconds = self.compile_seconds
        return run

    def _spend(self, steps: int) -> None:
        """Account for steps of the present run, before another begins."""
        self.spent += steps
        self.compile_seconds = self.run.compile_seconds

    def _learn(self, bar: Progress) -> None:
        bar.stage("learning θ")
        for rounds in range(ROUNDS, 0, -1):
            left = self.run.steps - self.run.step
            self.run.advance(self.run.step + left // rounds, bar.update)
            if self.run.failure:
                return
            if self.free and rounds > 1:
                self._follow()
        self._spend(self.run.steps)
        self.learnt = self._average()

    def _average(self) -> ContourState:
        """The chains, with the mean of log θ over the second half of learning: less noise than the last one has."""
        state: ContourState = self.run.chains.state
        path = self.run.recorder.path()
        assert path.theta is not None
        late = np.log(np.maximum(path.theta[:, path.steps > path.steps[-1] // 2], 1e-300))
        levels = jnp.asarray(late.mean(axis=(0, 1)), state.theta.levels.dtype)
        levels = levels - jax.nn.logsumexp(levels)
        theta = LogTheta(jnp.broadcast_to(levels, state.theta.levels.shape), jnp.zeros_like(state.theta.offset))
        return state._replace(theta=theta, visits=jnp.zeros_like(state.visits))

    def _follow(self) -> None:
        """Extend the partition, while learning goes on, where energies have left it."""
        energies = self.run.energies_since(self.run.step * 4 // 5)
        below, above = _outside(energies, self.kernel.partition)
        if below or above:
            state = self._extend(energies, below, above)
            done, left = self.run.step, self.run.steps - self.run.step
            self._spend(done)
            self._begin(state, left)

    def _extend(self, energies: np.ndarray, below: int, above: int) -> ContourState:
        old, new = self.kernel.partition, self.kernel.partition.extended(below, above)
        self.kernel = replace(self.kernel, partition=new)
        self.changes.append(
            f"after {self.run.before + self.run.step:,} steps the partition was extended from"
            f" {old.low:.4g} … {old.high:.4g} to {new.low:.4g} … {new.high:.4g}"
        )
        return jax.vmap(lambda state: _rebin(state, energies, old, new))(self.run.chains.state)

    def _sample(self, bar: Progress, *, may_stop: bool) -> bool:
        """Sample with θ fixed; returns whether θ must be learnt again, for which all is then ready."""
        bar.stage("sampling")
        kernel = replace(self.kernel, omega=None, shared=False)
        left = self.steps - self.spent
        self.run = self._start(kernel, self.learnt, left, **self.kept)
        for number in range(1, LOOKS + 1):
            self.run.advance(left * number // LOOKS, bar.update)
            if self.run.failure:
                return False
            if not (self.free and may_stop and number < LOOKS // 2):
                continue
            energies = self.run.energies_since(0)
            below, above = _outside(energies, self.kernel.partition)
            if below:
                state = self._extend(energies, below, above)
                self._spend(self.run.step)
                self._begin(state, (self.steps - self.spent) // 3)
                return True
        return False


def _outside(energies: np.ndarray, partition: Partition) -> tuple[int, int]:
    """How many bins to add below and above for these energies."""
    if energies.size == 0:
        return 0, 0
    lower = energies[energies <= partition.low]
    below = 0
    if lower.size >= 20 and partition.low - np.quantile(lower, 0.1) > DEEPER * partition.width:
        below = int((partition.low - np.median(lower)) / partition.width)  # a new bin 0 must not be empty
    crowded = np.mean(energies > partition.high) > BEYOND
    return below, partition.bins // 2 if crowded else 0


def _rebin(state: ContourState, energies: np.ndarray, old: Partition, new: Partition) -> ContourState:
    """θ over more bins. In an end bin nothing was flattened: its θ is shared out as its energies were visited."""
    below, above = round((old.low - new.low) / old.width), new.bins - old.bins
    above -= below
    counts = np.bincount(np.asarray(new.index(energies)).ravel(), minlength=new.bins) + 0.5
    lower, upper = counts[: below + 1], counts[new.bins - above - 1 :]
    levels = state.theta.levels
    theta = jnp.concatenate(
        [
            levels[0] + jnp.log(lower / lower.sum()).astype(levels.dtype),
            levels[1:-1],
            levels[-1] + jnp.log(upper / upper.sum()).astype(levels.dtype),
        ]
    )
    visits: Int[Array, " bins"] = jnp.zeros(new.bins, state.visits.dtype)
    return state._replace(theta=LogTheta(theta, state.theta.offset), visits=visits)


def _plain(leaf: Float[Array | np.ndarray, "..."]) -> Any:
    return np.asarray(leaf, float).tolist()
