"""The pilot's walkers: a crowd of chains that moves a chunk of steps at a time, at a chosen temperature."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from contourmc._core.pytrees import Position
from contourmc.kernels.adjusted import AdjustedInputs
from contourmc.kernels.dynamics import Dynamics
from contourmc.targets.base import Target, call_on

VISITS = 4  # points of a chunk of steps that are kept


class Record(NamedTuple):
    """A chunk of steps: energies (step, walker), the share of accepted proposals, the share of steps that met a
    gradient which is NaN where the energy is finite, the variances of x and ∇U, and some of the points with the
    gradients there, each (walker, point, …).
    """

    energies: Float[Array, "steps walkers"]
    acceptance: Float[Array, ""]
    undefined: Float[Array, ""]
    position_variance: Position
    gradient_variance: Position
    points: Position
    gradients: Position


@jax.jit
def place(dynamics: Dynamics, positions: Position) -> Any:
    """The states of walkers at rest at stacked positions."""
    return jax.vmap(dynamics.init)(positions)


def walk(
    target: Target, dynamics: Dynamics, chunk: int, states: Any, key: PRNGKeyArray, step_size: float, temperature: float
) -> tuple[Any, Record]:
    """`chunk` steps of every walker."""
    return call_on(target, _walk, dynamics, states, key, step_size, temperature, chunk=chunk)


def _walk(
    target: Target,
    dynamics: Dynamics,
    states: Any,
    key: PRNGKeyArray,
    step_size: Array,
    temperature: Array,
    *,
    chunk: int,
) -> tuple[Any, Record]:

    def walker(key: PRNGKeyArray, state: Any) -> tuple[Any, Any]:
        move_key, target_key = jax.random.split(key)
        steps = jnp.arange(1, chunk + 1, dtype=jnp.int32)
        inputs = dynamics.prepare(move_key, state.position, steps)
        full = partial(jnp.full, steps.shape)
        if isinstance(inputs, AdjustedInputs):
            inputs = inputs._replace(step_size=full(step_size), temperature=full(temperature))
        else:
            noise = jax.tree.map(lambda leaf: leaf * jnp.sqrt(temperature).astype(leaf.dtype), inputs.noise)
            inputs = inputs._replace(noise=noise, temperature=full(temperature))
        noise = target.prepare(target_key, state.position, steps)

        def step(state: Any, given: Any) -> tuple[Any, Any]:
            move_inputs, target_inputs = given
            energy, gradient = target.evaluate(target_inputs, state.position)
            new, info = dynamics.move(move_inputs, state, energy, gradient)
            if isinstance(inputs, AdjustedInputs):  # what matters is where a Metropolis test might have let them go
                here, undefined = state.gradient, new.undefined - state.undefined
            else:
                unknown = [jnp.any(jnp.isnan(leaf)) for leaf in jax.tree.leaves(gradient)]
                here, undefined = gradient, jnp.any(jnp.stack(unknown)) & jnp.isfinite(energy)
            return new, (info.energy, dynamics.draw(state), here, undefined)

        state, (energies, xs, gs, undefined) = jax.lax.scan(step, state, (inputs, noise))
        some = partial(jax.tree.map, lambda leaf: leaf[:: -(-chunk // VISITS)])
        variances = jax.tree.map(_variance, xs), jax.tree.map(_variance, gs)
        return state, (energies, jnp.mean(undefined), *variances, some(xs), some(gs))

    before = getattr(states, "accepted", jnp.zeros(1))
    keys = jax.random.split(key, states.steps.shape[0])
    states, (energies, undefined, x, g, points, gradients) = jax.vmap(walker)(keys, states)
    accepted = getattr(states, "accepted", jnp.full(1, chunk)) - before
    middle = partial(jax.tree.map, partial(jnp.median, axis=0))
    acceptance = jnp.mean(accepted) / chunk
    return states, Record(energies.T, acceptance, jnp.mean(undefined), middle(x), middle(g), points, gradients)


def _variance(values: Array) -> Array:
    """Along the second half of a walker's chunk."""
    return jnp.var(values[values.shape[0] // 2 :], axis=0)


@jax.jit
def measured_scale(scale: Position, record: Record) -> Position:
    """σ⁴ = Var x / Var ∇U, which holds for a Gaussian even before it has been crossed (Seyboldt 2024).

    A coordinate that did not move keeps the scale it has.
    """

    def measure(scale: Array, x: Array, g: Array) -> Array:
        moved = (x > 0) & (g > 0) & jnp.isfinite(x) & jnp.isfinite(g)
        return jnp.where(moved, (x / jnp.where(moved, g, 1.0)) ** 0.25, scale)

    return jax.tree.map(measure, scale, record.position_variance, record.gradient_variance)
