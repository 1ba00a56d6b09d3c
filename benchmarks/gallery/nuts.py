"""BlackJAX's NUTS, each chain with a window adaptation of its own.

As its documentation recommends: step size for an acceptance of 0.8, diagonal mass matrix, trees of up to 10
doublings. The adaptation is part of the budget: 1,000 draws, or fewer in a short run. Then draws are made in
blocks until the chains have spent their budget on average: the leapfrog steps of every tree count.
"""

import time
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from benchmarks.gallery.outcome import WITH_GRADIENT, Budget, Outcome, Tuning, compiled, log_density, thinned
from contourmc.problems import Problem


def nuts(problem: Problem, setting: str, tuning: Tuning | None, budget: Budget, seed: int) -> Outcome:
    """All chains as one vector; draws of the adaptation are left out."""
    warm_up, block, compile_seconds = _programs(problem, budget)
    key = jax.random.key(seed)
    began = time.perf_counter()
    states, parameters, costs = warm_up(jax.random.split(key, budget.chains))
    spent, thin = float(np.mean(costs)), 0
    kept: list[np.ndarray] = []
    while not kept or spent < budget.steps:
        keys = jax.random.split(jax.random.fold_in(key, len(kept)), budget.chains)
        states, positions, costs = block(keys, states, parameters)
        cost = float(np.mean(costs))
        thin = thin or thinned((budget.steps - spent) / cost * positions.shape[1])
        kept.append(np.asarray(positions)[:, ::thin])
        spent += cost
    seconds = time.perf_counter() - began
    draws = np.concatenate(kept, axis=1)
    draws = draws.reshape(*draws.shape[:2], *problem.start.shape)
    return Outcome(draws, np.zeros(draws.shape[:2]), WITH_GRADIENT * spent * budget.chains, seconds, compile_seconds)


def _block(budget: Budget) -> int:
    return max(10, budget.steps // 5000)


@lru_cache(maxsize=2)
def _programs(problem: Problem, budget: Budget) -> tuple[Any, Any, float]:
    import blackjax  # pyright: ignore[reportMissingImports]  # an optional extra

    density, start = log_density(problem), jnp.asarray(problem.start, float).ravel()
    draws = min(1000, max(50, budget.steps // 100))
    kernel: Any = blackjax.nuts.build_kernel()

    def warm_up(key: Array) -> tuple[Any, Any, Array]:
        adaptation: Any = blackjax.window_adaptation(
            blackjax.nuts, density, adaptation_info_fn=lambda state, info, adapted: info.num_integration_steps
        )
        (state, parameters), cost = adaptation.run(key, start, draws)
        return state, parameters, jnp.sum(cost)

    def block(key: Array, state: Any, parameters: Any) -> tuple[Any, Array, Array]:
        def draw(state: Any, key: Array) -> tuple[Any, tuple[Array, Array]]:
            state, info = kernel(key, state, density, **parameters)
            return state, (state.position, info.num_integration_steps)

        state, (positions, cost) = jax.lax.scan(draw, state, jax.random.split(key, _block(budget)))
        return state, positions, jnp.sum(cost)

    keys = jax.random.split(jax.random.key(0), budget.chains)
    first, first_seconds = compiled(jax.vmap(warm_up), keys)
    states, parameters, _ = jax.eval_shape(jax.vmap(warm_up), keys)
    second, second_seconds = compiled(jax.vmap(block), keys, states, parameters)
    return first, second, first_seconds + second_seconds
