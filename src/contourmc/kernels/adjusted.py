"""Langevin dynamics with a Metropolis test (Horowitz 1991): exact for exact energies, at any step size."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.checks import require
from contourmc._core.info import Info
from contourmc._core.noise import normal_like
from contourmc._core.pytrees import Position
from contourmc.kernels.dynamics import Flatten, describe_point, unflattened
from contourmc.kernels.momentum import MomentumDynamics
from contourmc.kernels.schedules import Schedule, evaluate


class AdjustedState(NamedTuple):
    """position: the proposal x′, where energy and gradient are evaluated next.
    here: x_k, the point of the chain.
    energy, gradient: at x_k.
    velocity: v, with which the chain left x_k.
    kicked: v½, the velocity on the way to the proposal.
    half: what a kick on the way to the proposal multiplies ∇V by, (h/2)√τ/τ: its last one must match its first.
    scale: σ of every coordinate, or None for 1: the preconditioner.
    accepted: how many proposals have been accepted.
    steps: k, the steps done so far.
    """

    position: Position
    here: Position
    energy: Float[Array, ""]
    gradient: Position
    velocity: Position
    kicked: Position
    half: Float[Array, ""]
    scale: Position | None
    accepted: Int[Array, ""]
    steps: Int[Array, ""]

    def at(self, position: Position) -> "AdjustedState":
        return self._replace(position=position)


class AdjustedInputs(NamedTuple):
    """noise: √(1−β²)·w.  log_uniform: for the Metropolis test.  step_size: ε_k.  temperature: τ_k."""

    noise: Position
    log_uniform: Float[Array, "..."]
    step_size: Float[Array, "..."]
    temperature: Float[Array, "..."]


@dataclass(frozen=True)
class Adjusted(MomentumDynamics):
    """A leapfrog step h = √(2ε) from x_k, accepted or refused; with V the flattened energy over τ, and scale σ:

        v½ = v − (h/2)σ√τ ∇V(x_k),   x′ = x_k + h√τσ v½,   v′ = v½ − (h/2)σ√τ ∇V(x′)
        accept with probability min(1, e^−Δ),   Δ = V(x′) − V(x_k) + (|v′|² − |v|²)/2;   else stay, with −v
        v ← βv + √(1−β²) w,   w ~ N(0, I).

    In the kicks the gradient multiplier is clipped to [−2, 2]: under a stronger force a chain may get stuck. The
    stationary distribution stays exact, as for any kick that depends on the position alone. A proposal whose energy
    is not finite is refused, as at a wall. One evaluation a step, at the proposal. For exact energies only: noise
    would be taken for a change of energy.
    """

    momentum: float = 0.8

    def __post_init__(self):
        super().__post_init__()
        hot = callable(self.temperature) or bool(self.temperature > 0)
        require(hot, "temperature", self.temperature, "a Metropolis test needs a temperature above 0")

    def init(self, position: Position) -> AdjustedState:
        zeros = jax.tree.map(jnp.zeros_like, position)
        energy, count = jnp.zeros((), jnp.result_type(float)), jnp.zeros((), jnp.int32)
        return AdjustedState(position, position, energy, zeros, zeros, zeros, energy, None, count, count)

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
        stride = jnp.sqrt(2 * inputs.step_size * inputs.temperature)
        half = (stride / inputs.temperature / 2).astype(state.half.dtype)
        first = state.steps == 0  # the proposal is the starting point itself
        info = _held(describe_point(jnp.where(first, energy, state.energy), flatten))
        there = _held(describe_point(energy, flatten))

        arrived = _kick(state.kicked, gradient, state.scale, state.half * there.multiplier)
        rise = (there.energy - info.energy) / inputs.temperature + there.log_weight - info.log_weight
        rise = rise + (_square(arrived) - _square(state.velocity)) / 2
        accept = first | (inputs.log_uniform < -rise)  # False if the rise is NaN

        def choose(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, old)

        here, slope = choose(state.position, state.here), choose(gradient, state.gradient)
        velocity = choose(arrived, jax.tree.map(jnp.negative, state.velocity))
        velocity = jax.tree.map(lambda v, w: self.momentum * v + w, velocity, inputs.noise)
        multiplier = jnp.where(accept, there.multiplier, info.multiplier)
        kicked = _kick(velocity, slope, state.scale, half * multiplier)
        position = _drift(here, kicked, state.scale, stride)
        energy = jnp.where(accept, there.energy, info.energy)
        return state._replace(
            position=position, here=here, energy=energy, gradient=slope, velocity=velocity, kicked=kicked, half=half,
            accepted=state.accepted + accept, steps=state.steps + 1,
        ), info  # fmt: skip


def _held(info: Info) -> Info:
    return info._replace(multiplier=jnp.clip(info.multiplier, -2.0, 2.0))


def _kick(velocity: Position, gradient: Position, scale: Position | None, factor: Array) -> Position:
    """v − factor·σ·∇U."""
    if scale is not None:
        gradient = jax.tree.map(jnp.multiply, scale, gradient)
    return jax.tree.map(lambda v, g: v - factor.astype(v.dtype) * g, velocity, gradient)


def _drift(position: Position, velocity: Position, scale: Position | None, stride: Array) -> Position:
    """x + h·σ·v."""
    if scale is not None:
        velocity = jax.tree.map(jnp.multiply, scale, velocity)
    return jax.tree.map(lambda x, v: x + stride.astype(x.dtype) * v, position, velocity)


def _square(velocity: Position) -> Array:
    return sum((jnp.sum(v * v) for v in jax.tree.leaves(velocity)), jnp.zeros(()))


def adjusted(step_size: Schedule, temperature: Schedule = 1.0, momentum: float = 0.8) -> Adjusted:
    """Metropolis-adjusted Langevin dynamics with momentum, for exact energies: no discretisation error."""
    return Adjusted(step_size, temperature, momentum)
