"""Jumps between basins: a Metropolis move that crosses any barrier, for exact energies."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from contourmc._core.checks import require, require_count
from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.kernels.adjusted import Adjusted, AdjustedInputs, AdjustedState, Flight
from contourmc.kernels.base import Collect
from contourmc.kernels.basin_shapes import BasinShapes
from contourmc.kernels.dynamics import Flatten, Flattenable, unflattened
from contourmc.kernels.scale import from_vector, to_vector
from contourmc.kernels.schedules import Schedule

EVERY = 12  # steps for each jump: a twelfth of the evaluations


class JumpState(NamedTuple):
    """inner: the state of the underlying dynamics, whose proposal may be a jump's.
    jumping: whether it is.
    log_volume: by how much the jump widens a volume, as a logarithm; −∞ for one that must not be made.
    landed: how many jumps have been accepted.
    """

    inner: AdjustedState
    jumping: Bool[Array, ""]
    log_volume: Float[Array, ""]
    landed: Int[Array, ""]

    @property
    def position(self) -> Position:
        return self.inner.position

    @property
    def steps(self) -> Int[Array, ""]:
        return self.inner.steps

    def at(self, position: Position) -> "JumpState":
        return self._replace(inner=self.inner.at(position))


class JumpInputs(NamedTuple):
    """inner: what the dynamics needs.  leaving: whether the next proposal is a jump.  choice: of a basin, in [0, 1)."""

    inner: AdjustedInputs
    leaving: Bool[Array, "..."]
    choice: Float[Array, "..."]

    @property
    def temperature(self) -> Array:
        return self.inner.temperature


@dataclass(frozen=True)
class Jumps(Flattenable, arrays=("dynamics", "shapes")):
    """Metropolis-adjusted dynamics that in every so many steps try to jump to another basin.

    From x in basin a to its image y = μ_b + L_b L_a⁻¹(x − μ_a) in basin b, drawn from all others, with probability

        min(1, ϖ(y)|det L_b| / (ϖ(x)|det L_a|))   if y belongs to b,   else 0,

    where ϖ is the flattened density. The same rule leads back from y to x, so that ϖ stays as it is, whatever μ and L
    are; they only decide how often a jump is accepted. A jump costs one evaluation, as any step does, and keeps the
    velocity.

    dynamics: `adjusted(...)`; energies must be exact.
    shapes: of the basins, from `basin_shapes`.
    every: steps for each jump.
    """

    dynamics: Adjusted
    shapes: BasinShapes = field(repr=False, compare=False)
    every: int = EVERY

    def __post_init__(self):
        exact = isinstance(self.dynamics, Adjusted)
        require(exact, "dynamics", self.dynamics, "jumps need a Metropolis test: give adjusted(...)")
        require(isinstance(self.shapes, BasinShapes), "shapes", self.shapes, "give basin_shapes(means, factors)")
        require_count("every", self.every, 2, "there must be steps between two jumps")

    @property
    def temperature(self) -> Schedule:
        return self.dynamics.temperature

    def init(self, position: Position) -> JumpState:
        size, expected = to_vector(position).size, self.shapes.means.shape[1]
        require(size == expected, "shapes", f"basins in {expected} dimensions", f"a position has {size} numbers")
        inner = self.dynamics.init(position)
        return JumpState(inner, jnp.zeros((), bool), jnp.zeros_like(inner.energy), jnp.zeros((), jnp.int32))

    def draw(self, state: JumpState) -> Position:
        return self.dynamics.draw(state.inner)

    def found(self, collect: Collect) -> dict[str, Any]:
        return self.dynamics.found(lambda part: collect(lambda state: part(state.inner)))

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> JumpInputs:
        inner_key, choice_key = jax.random.split(key)
        inner = self.dynamics.prepare(inner_key, position, steps)
        # The same for all chains, so that the vectorised loop, too, makes images only when they are needed.
        return JumpInputs(inner, (steps + 1) % self.every == 0, jax.random.uniform(choice_key, steps.shape))

    def move(
        self, inputs: JumpInputs, state: JumpState, energy: Array, gradient: Position, flatten: Flatten = unflattened
    ) -> tuple[JumpState, Info]:
        inner = state.inner
        here, there = self.dynamics.ends(inner, energy, flatten)
        stepped = self.dynamics.flight(inner, gradient, there)
        # A jump does not use the gradient at its end, but the next step does: where it is NaN, so is the rise.
        rise = jnp.where(jnp.isnan(stepped.rise), stepped.rise, -state.log_volume.astype(stepped.rise.dtype))
        jumped = Flight(inner.velocity, inner.velocity, rise)
        flight = jax.tree.map(lambda a, b: jnp.where(state.jumping, a, b), jumped, stepped)
        after, info = self.dynamics.decide(inputs.inner, inner, gradient, here, there, flight)
        landed = state.landed + jnp.where(state.jumping, after.accepted - inner.accepted, 0)

        def leave(after: AdjustedState) -> tuple[Position, Array]:
            image, log_volume = self.shapes.image(to_vector(after.here), inputs.choice)
            return from_vector(image, after.here), log_volume.astype(state.log_volume.dtype)

        def stay(after: AdjustedState) -> tuple[Position, Array]:
            return after.position, jnp.zeros_like(state.log_volume)

        position, log_volume = jax.lax.cond(inputs.leaving, leave, stay, after)
        return JumpState(after.at(position), inputs.leaving, log_volume, landed), info


def jumps(dynamics: Adjusted, shapes: BasinShapes, every: int = EVERY) -> Jumps:
    """Jumps between known basins in every so many steps of `adjusted(...)`; the settings are explained at `Jumps`.

    >>> shapes = cm.basin_shapes(means=[[-1.0], [1.0]], factors=[[[0.1]], [[0.1]]])
    >>> cm.sample(energy, init=1.0, steps=2_000, kernel=cm.jumps(cm.adjusted(0.01), shapes))
    Samples(4 chains × 1800 draws, Jumps)
    """
    return Jumps(dynamics, shapes, every)
