"""BlackJAX's CSGLD, given contourmc's partition and step size, and weighted by us.

BlackJAX bins by floor((U − min_energy)/gap + 1), at least 1, so that its bin 0 stays empty: with `min_energy` a bin
below our first edge, its bin i + 1 is our bin i. It makes no weights. Its chain samples π/Ψ^ζ with

    log Ψ(U) = log θ(J−1) + (log θ(J) − log θ(J−1))·(U − u_{J−1})/Δu,

which is what its gradient multiplier integrates to, so that is the weight; ζ = 1, and θ is that of the step. The
multiplier at the ends is BlackJAX's own, not flat as ours is. A step takes an energy and its gradient, one apart from
the other, and counts as much as one of ours.
"""

import time
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from benchmarks.gallery.langevin import sgld_settings
from benchmarks.gallery.outcome import WITH_GRADIENT, Budget, Outcome, Tuning, compiled, log_density, thinned
from contourmc.kernels.schedules import Polynomial
from contourmc.problems import Problem

OMEGAS = (0.1, 1.0)  # the scale of ω_k; at 10, its θ(0) falls to 0 and the chains to NaN within 10⁵ steps


def csgld_settings(tuning: Tuning) -> list[tuple[float, float]]:
    """Step sizes as for SGLD, each with two learning rates of θ."""
    return [(step_size, scale) for step_size in sgld_settings(tuning) for scale in OMEGAS]


def csgld(problem: Problem, setting: tuple[float, float], tuning: Tuning, budget: Budget, seed: int) -> Outcome:
    """All chains as one vector in one compiled loop; the first tenth is left out, as contourmc does."""
    partition, (step_size, scale) = tuning.partition, setting
    program, compile_seconds = _program(problem, budget, partition.bins + 1)
    keys = jax.random.split(jax.random.key(seed), budget.chains)
    low = partition.low - partition.width
    began = time.perf_counter()
    positions, log_weights = jax.block_until_ready(program(keys, step_size, scale, low, partition.width))
    seconds = time.perf_counter() - began
    burn_in = positions.shape[1] // 10
    positions = np.asarray(positions).reshape(*positions.shape[:2], *problem.start.shape)
    spent = WITH_GRADIENT * budget.chains * (budget.steps // _thin(budget) * _thin(budget))
    return Outcome(positions[:, burn_in:], np.asarray(log_weights)[:, burn_in:], spent, seconds, compile_seconds)


def _thin(budget: Budget) -> int:
    return thinned(0.9 * budget.steps)


@lru_cache(maxsize=4)
def _program(problem: Problem, budget: Budget, bins: int) -> tuple[Any, float]:
    import blackjax  # pyright: ignore[reportMissingImports]  # an optional extra

    density, start, thin = log_density(problem), jnp.asarray(problem.start, float).ravel(), _thin(budget)
    gradient = jax.grad(density)

    def run(key: Array, step_size: Array, scale: Array, low: Array, width: Array) -> tuple[Array, Array]:
        sampler: Any = blackjax.csgld(
            lambda x, _: density(x),
            lambda x, _: gradient(x),
            num_partitions=bins,
            energy_gap=width,  # type: ignore[arg-type]
            min_energy=low,  # type: ignore[arg-type]
        )
        omega = Polynomial(scale=1.0, power=0.6, offset=100.0)

        def step(state: Any, inputs: tuple[Array, Array]) -> tuple[Any, None]:
            key, k = inputs
            return sampler.step(key, state, None, step_size, scale * omega(k)), None

        def keep(state: Any, inputs: tuple[Array, Array]) -> tuple[Any, tuple[Array, Array]]:
            key, first = inputs
            state, _ = jax.lax.scan(step, state, (jax.random.split(key, thin), first + jnp.arange(thin)))
            levels, index = jnp.log(state.energy_pdf), state.energy_idx
            fraction = (-density(state.position) - low) / width - (index - 1)
            return state, (state.position, levels[index - 1] + fraction * (levels[index] - levels[index - 1]))

        count = budget.steps // thin
        state = sampler.init(start)
        state = state._replace(energy_idx=jnp.asarray(state.energy_idx))  # a scan carries arrays only
        return jax.lax.scan(keep, state, (jax.random.split(key, count), 1 + thin * jnp.arange(count)))[1]

    keys = jax.random.split(jax.random.key(0), budget.chains)
    return compiled(jax.vmap(run, (0, None, None, None, None)), keys, 1.0, 1.0, 0.0, 1.0)
