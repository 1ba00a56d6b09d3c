"""Langevin dynamics with a Metropolis test (Horowitz 1991): exact for exact energies, at any step size."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.checks import require
from contourmc._core.gradient_terms import require_whole
from contourmc._core.info import Info
from contourmc._core.noise import normal_like
from contourmc._core.pytrees import Position
from contourmc.kernels.base import Collect
from contourmc.kernels.dynamics import Flatten, describe_point, unflattened
from contourmc.kernels.momentum import MomentumDynamics
from contourmc.kernels.scale import Scale, check_scale, require_shape, scaled, scaled_gradient
from contourmc.kernels.schedules import Schedule, evaluate


class AdjustedState(NamedTuple):
    """position: the proposal x′, where energy and gradient are evaluated next.
    here: x_k, the point of the chain.
    energy, gradient: at x_k.
    velocity: v, with which the chain left x_k.
    kicked: v½, the velocity on the way to the proposal.
    half: what a kick on the way to the proposal multiplies ∇V by, (h/2)√τ/τ: its last one must match its first.
    accepted: how many proposals have been accepted.
    undefined: how many were refused for a gradient that is NaN, although their energy alone would have let them pass.
    steps: k, the steps done so far.
    """

    position: Position
    here: Position
    energy: Float[Array, ""]
    gradient: Position
    velocity: Position
    kicked: Position
    half: Float[Array, ""]
    accepted: Int[Array, ""]
    undefined: Int[Array, ""]
    steps: Int[Array, ""]

    def at(self, position: Position) -> "AdjustedState":
        return self._replace(position=position)


class Flight(NamedTuple):
    """How a proposal was reached.

    arrived: the velocity there, if it is accepted.  refused: the velocity if it is not.
    rise: what is added to the change of the flattened energy in the Metropolis test.
    """

    arrived: Position
    refused: Position
    rise: Float[Array, ""]


class AdjustedInputs(NamedTuple):
    """noise: √(1−β²)·w.  log_uniform: for the Metropolis test.  step_size: ε_k.  temperature: τ_k."""

    noise: Position
    log_uniform: Float[Array, "..."]
    step_size: Float[Array, "..."]
    temperature: Float[Array, "..."]


@dataclass(frozen=True)
class Adjusted(MomentumDynamics, arrays=("scale",)):
    """A leapfrog step h = √(2ε) from x_k, accepted or refused; with V the flattened energy over τ, and scale L:

        v½ = v − (h/2)√τ Lᵀ∇V(x_k),   x′ = x_k + h√τ L v½,   v′ = v½ − (h/2)√τ Lᵀ∇V(x′)
        accept with probability min(1, e^−Δ),   Δ = V(x′) − V(x_k) + (|v′|² − |v|²)/2;   else stay, with −v
        v ← βv + √(1−β²) w,   w ~ N(0, I).

    In the kicks the gradient multiplier is clipped to [−2, 2]: under a stronger force a chain may get stuck. The
    stationary distribution stays exact, as for any kick that depends on the position alone. A proposal whose energy
    is not finite is refused, as at a wall. So is one whose energy is finite and whose gradient is NaN: this is an error
    of the energy, since the draws then miss a part of its distribution, and `diagnose` reports it. One evaluation a
    step, at the proposal. For exact energies only: noise would be taken for a change of energy.

    scale: the preconditioner: σ of every coordinate, shaped like a position; the `Factor` of a covariance; None for 1.
    """

    momentum: float = 0.8
    scale: Scale = field(default=None, repr=False, compare=False)

    def __post_init__(self):
        super().__post_init__()
        hot = callable(self.temperature) or bool(self.temperature > 0)
        require(hot, "temperature", self.temperature, "a Metropolis test needs a temperature above 0")

    @property
    def elementwise(self) -> bool:
        return self.scale is None

    def init(self, position: Position) -> AdjustedState:
        require_shape(self.scale, position)
        zeros = jax.tree.map(jnp.zeros_like, position)
        energy, count = jnp.zeros((), jnp.result_type(float)), jnp.zeros((), jnp.int32)
        return AdjustedState(position, position, energy, zeros, zeros, zeros, energy, count, count, count)

    def draw(self, state: AdjustedState) -> Position:
        return state.here

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        noise_key, uniform_key = jax.random.split(key)
        spread = jnp.full(steps.shape, (1 - self.momentum**2) ** 0.5)
        return AdjustedInputs(
            normal_like(noise_key, position, spread),
            jnp.log(jax.random.uniform(uniform_key, steps.shape, minval=1e-38)),
            evaluate(self.step_size, steps),
            evaluate(self.temperature, steps),
        )

    def move(
        self,
        inputs: AdjustedInputs,
        state: AdjustedState,
        energy: Array,
        gradient: Position,
        flatten: Flatten = unflattened,
    ) -> tuple[AdjustedState, Info]:
        require_whole(gradient, "a Metropolis test")
        here, there = self.ends(state, energy, flatten)
        return self.decide(inputs, state, gradient, here, there, self.flight(state, gradient, there))

    def ends(self, state: AdjustedState, energy: Array, flatten: Flatten) -> tuple[Info, Info]:
        """The point of the chain and the proposal; before the first step they are the same."""
        here = jnp.where(state.steps == 0, energy, state.energy)
        return _held(describe_point(here, flatten)), _held(describe_point(energy, flatten))

    def flight(self, state: AdjustedState, gradient: Position, there: Info) -> Flight:
        """The end of a leapfrog step."""
        arrived = self._kick(state.kicked, gradient, state.half * there.multiplier)
        refused = jax.tree.map(jnp.negative, state.velocity)
        return Flight(arrived, refused, (_square(arrived) - _square(state.velocity)) / 2)

    def decide(
        self, inputs: AdjustedInputs, state: AdjustedState, gradient: Position, here: Info, there: Info, flight: Flight
    ) -> tuple[AdjustedState, Info]:
        """The Metropolis test, and the next leapfrog step as far as its proposal."""
        stride = jnp.sqrt(2 * inputs.step_size * inputs.temperature)
        half = (stride / inputs.temperature / 2).astype(state.half.dtype)
        climb = (there.energy - here.energy) / inputs.temperature + there.log_weight - here.log_weight
        rise = climb + flight.rise
        accept = (state.steps == 0) | (inputs.log_uniform < -rise)  # False if the rise is NaN
        # Of scalars alone, since a step in one dimension costs little more than they do; NaN in a gradient is NaN here.
        undefined = jnp.isnan(flight.rise) & (inputs.log_uniform < -climb) & jnp.isfinite(there.energy)

        def choose(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, old)

        point, slope = choose(state.position, state.here), choose(gradient, state.gradient)
        velocity = choose(flight.arrived, flight.refused)
        velocity = jax.tree.map(lambda v, w: self.momentum * v + w, velocity, inputs.noise)
        kicked = self._kick(velocity, slope, half * jnp.where(accept, there.multiplier, here.multiplier))
        drift = scaled(self.scale, kicked)
        position = jax.tree.map(lambda x, v: x + stride.astype(x.dtype) * v, point, drift)
        energy = jnp.where(accept, there.energy, here.energy)
        return state._replace(
            position=position, here=point, energy=energy, gradient=slope, velocity=velocity, kicked=kicked, half=half,
            accepted=state.accepted + accept, undefined=state.undefined + undefined, steps=state.steps + 1,
        ), here  # fmt: skip

    def found(self, collect: Collect) -> dict[str, Any]:
        """The share of steps whose proposal was refused for a gradient that is NaN, if there was any."""
        undefined, steps = collect(lambda state: (state.undefined, state.steps))
        share = float(np.sum(undefined, dtype=float) / max(1.0, np.sum(steps, dtype=float)))
        return {"nan_gradients": share} if share else {}

    def _kick(self, velocity: Position, gradient: Position, factor: Array) -> Position:
        """v − factor·Lᵀ∇U."""
        slope = scaled_gradient(self.scale, gradient)
        return jax.tree.map(lambda v, g: v - factor.astype(v.dtype) * g, velocity, slope)


def _held(info: Info) -> Info:
    return info._replace(multiplier=jnp.clip(info.multiplier, -2.0, 2.0))


def _square(velocity: Position) -> Array:
    return sum((jnp.sum(v * v) for v in jax.tree.leaves(velocity)), jnp.zeros(()))


def adjusted(step_size: Schedule, temperature: Schedule = 1.0, momentum: float = 0.8, scale: Scale = None) -> Adjusted:
    """Metropolis-adjusted Langevin dynamics with momentum, for exact energies: no discretisation error.

    scale: the standard deviation of every coordinate, shaped like a position, if they differ; steps are in its units.

    >>> cm.sample(energy, init=1.0, steps=2_000, kernel=cm.adjusted(0.01))
    Samples(4 chains × 1800 draws, Adjusted)
    """
    check_scale(scale)
    return Adjusted(step_size, temperature, momentum, scale)
