"""BlackJAX's adaptive tempered SMC with HMC moves: one population that has the budget of all chains.

SMC cannot start in one mode: it needs a broad first distribution. It is given one that a user could not know: a
Gaussian around the start with three times the true standard deviation in every coordinate. The next temperature
keeps an effective sample size of 0.7. The moves are HMC of 10 leapfrog steps; before every temperature its mass
matrix is set to the particles' variances (BlackJAX's `particles_stds`) and its step size moved towards an acceptance
of 0.65 (BlackJAX's `update_scale_from_acceptance_rate`). A particle has some 2,000 gradients: how many HMC moves that
is at each temperature follows from a trial with one move each, which is not counted. The log evidence is the sum of
the steps' increments and the log volume of the first distribution.
"""

import time
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from benchmarks.gallery.outcome import WITH_GRADIENT, Budget, Outcome, Tuning, compiled, log_density
from contourmc.problems import Problem

LEAPFROG = 10
PER_PARTICLE = 2000  # gradients
SPREAD = 3.0  # of the first distribution, in true standard deviations
TARGET_ESS = 0.7
ACCEPTANCE = 0.65
MOST_TEMPERATURES = 1000  # a run that needs more is stuck
TRIAL_SEED = 1_000_000


class Population(NamedTuple):
    """smc: BlackJAX's state.  step_size, variances: for the next moves.
    log_ratio: log of the normaliser at this temperature over that of the first distribution.
    """

    smc: Any
    step_size: Array
    variances: Array
    log_ratio: Array


def tempered_smc(problem: Problem, setting: str, tuning: Tuning | None, budget: Budget, seed: int) -> Outcome:
    """Equally weighted particles, after a last resampling and moves at temperature 1."""
    moves = _moves(problem, budget)
    step, compile_seconds = _program(problem, budget, moves)
    began = time.perf_counter()
    population, temperatures = _temper(step, problem, budget, seed)
    seconds = time.perf_counter() - began
    particles = np.asarray(population.smc.particles)
    positions = particles.reshape(1, len(particles), *problem.start.shape)
    spent = WITH_GRADIENT * len(particles) * temperatures * (1 + moves * LEAPFROG)
    log_volume = float(np.sum(np.log(_prior(problem)[1] * np.sqrt(2 * np.pi))))
    log_evidence = log_volume + float(population.log_ratio)
    return Outcome(positions, np.zeros(positions.shape[:2]), spent, seconds, compile_seconds, log_evidence=log_evidence)


def _temper(step: Any, problem: Problem, budget: Budget, seed: int) -> tuple[Population, int]:
    """From the first distribution to the target; the population at the end, and how often it was moved."""
    key, first_key = jax.random.split(jax.random.key(seed))
    population, count, done = _start(problem, budget, first_key), 0, False
    while not done:
        # A move follows the resampling of the temperature before: once at 1, the particles need another.
        done = float(population.smc.tempering_param) >= 1
        key, step_key = jax.random.split(key)
        population, count = step(step_key, population), count + 1
        reached = float(population.smc.tempering_param)
        if not np.isfinite(reached) or count > MOST_TEMPERATURES:
            raise ArithmeticError(f"tempering stopped at {reached:.3g} after {count} temperatures")
    return population, count


@lru_cache(maxsize=1)
def _moves(problem: Problem, budget: Budget) -> int:
    """HMC moves at each temperature that spend the budget."""
    step, _ = _program(problem, budget, 1)
    _, temperatures = _temper(step, problem, budget, TRIAL_SEED)
    each = budget.steps * budget.chains / _particles(budget) / temperatures
    return max(1, round((each - 1) / LEAPFROG))


def _particles(budget: Budget) -> int:
    return max(100, budget.steps * budget.chains // PER_PARTICLE)


def _prior(problem: Problem) -> tuple[Array, Array]:
    """The centre and the standard deviations of the first distribution."""
    centre = jnp.asarray(problem.start, float).ravel()
    return centre, SPREAD * jnp.sqrt(jnp.broadcast_to(jnp.asarray(problem.variance, float).ravel(), centre.shape))


def _start(problem: Problem, budget: Budget, key: Array) -> Population:
    from blackjax.smc import tempered  # pyright: ignore[reportMissingImports]  # an optional extra

    centre, spread = _prior(problem)
    particles = centre + spread * jax.random.normal(key, (_particles(budget), centre.size))
    smc = tempered.init(particles)
    step_size = jnp.asarray([centre.size**-0.25])  # about right for a Gaussian in units of its own spread
    return Population(smc._replace(tempering_param=jnp.zeros(())), step_size, spread**2, jnp.zeros(()))


@lru_cache(maxsize=4)
def _program(problem: Problem, budget: Budget, moves: int) -> tuple[Any, float]:
    import blackjax  # pyright: ignore[reportMissingImports]  # an optional extra
    from blackjax.smc import adaptive_tempered, resampling  # pyright: ignore[reportMissingImports]
    from blackjax.smc.tuning.from_kernel_info import (  # pyright: ignore[reportMissingImports]
        update_scale_from_acceptance_rate,
    )
    from blackjax.smc.tuning.from_particles import particles_stds  # pyright: ignore[reportMissingImports]

    density, (centre, spread) = log_density(problem), _prior(problem)
    hmc: Any = blackjax.hmc.build_kernel()

    def log_prior(x: Array) -> Array:
        return -0.5 * jnp.sum(((x - centre) / spread) ** 2)

    def move(key: Array, state: Any, log_density: Any, step_size: Array, variances: Array) -> tuple[Any, Array]:
        state, info = hmc(key, state, log_density, step_size, variances, LEAPFROG)
        return state, info.acceptance_rate

    kernel: Any = adaptive_tempered.build_kernel(
        log_prior, lambda x: density(x) - log_prior(x), move, blackjax.hmc.init, resampling.systematic, TARGET_ESS
    )

    def step(key: Array, population: Population) -> Population:
        parameters = {"step_size": population.step_size, "variances": population.variances[None]}
        smc, info = kernel(key, population.smc, moves, parameters)
        rate = jnp.mean(info.update_info)[None]
        step_size = update_scale_from_acceptance_rate(population.step_size, rate, ACCEPTANCE)
        log_ratio = population.log_ratio + info.log_likelihood_increment
        return Population(smc, step_size, particles_stds(smc.particles) ** 2, log_ratio)

    key = jax.random.key(0)
    return compiled(step, key, _start(problem, budget, key))
