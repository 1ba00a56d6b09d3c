"""Algorithm 1 of the paper exactly as printed, to compare with the paper line by line.

This is a reference for tests and studies, not a sampler to use: θ is a plain vector that underflows, and the last bin
can drive a chain to infinity. The library's kernel, `contourmc.kernels.contour`, computes the same quantities in log
space and differs on purpose in four things: the order of a step, the last bin, the normalisation of θ in the biased
rule, and continuous weights. `contourmc reproduce algorithm` measures what each of these differences does.

Bins are numbered from 1 to m as in the paper; θ(J) is `theta[J - 1]`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Rule = Literal["original", "biased", "scalable"]
Scheme = Literal["left", "right", "step"]
Target = Callable[[Array, Array, Array], tuple[Array, Array]]  # (x, gradient noise, energy noise) → (Ũ, ∇Ũ)


def papers_omega(k: Array) -> Array:
    """ω_k of the paper's first simulation (section 4.1)."""
    return 1 / (k**0.6 + 100)


class State(NamedTuple):
    """x_k with its stochastic energy and gradient, θ_k, and k."""

    x: Float[Array, "*shape"]
    energy: Float[Array, ""]
    gradient: Float[Array, "*shape"]
    theta: Float[Array, " m"]
    k: Int[Array, ""]


class Noise(NamedTuple):
    """Standard normal numbers of one step: w_{k+1} of the move, and noise of the stochastic gradient and energy."""

    move: Float[Array, "*shape"]
    gradient: Float[Array, "*shape"]
    energy: Float[Array, ""]


@dataclass(frozen=True)
class AlgorithmOne:
    """Contour SGLD, Algorithm 1.

    low: u₁.  width: Δu.  bins: m.  step_size: ε.  temperature: τ.  zeta: ζ.
    scheme: `left` is equation 6; `right` the alternative of the supplement, whose index is printed as J ∧ m where
        (J + 1) ∧ m is meant; `step` the naïve Ψ of section 2.1.
    rule: `original` is step 3 of Algorithm 1, `biased` the supplement's high-ζ extension with ρ, `scalable` the update
        at the end of section 3.
    """

    low: float | Array
    width: float
    bins: int
    step_size: float = 0.1
    temperature: float = 1.0
    zeta: float = 0.75
    scheme: Scheme = "left"
    rule: Rule = "original"
    omega: Callable[[Array], Array] = papers_omega
    rho: float = 1.0

    def bin(self, energy: Float[Array, ""]) -> Int[Array, ""]:
        """J, with u_{J−1} < U ≤ u_J, for u_0 = −∞ and u_m = ∞."""
        edges = self.low + self.width * jnp.arange(self.bins - 1, dtype=energy.dtype)
        return 1 + jnp.sum(edges < energy)

    def multiplier(self, theta: Float[Array, " m"], energy: Float[Array, ""]) -> Float[Array, ""]:
        """The gradient multiplier 1 + ζτ (log θ(J) − log θ((J − 1) ∨ 1)) / Δu."""
        J = self.bin(energy)
        upper, lower = {
            "left": (J, jnp.maximum(J - 1, 1)),
            "right": (jnp.minimum(J + 1, self.bins), J),
            "step": (J, J),
        }[self.scheme]
        slope = (jnp.log(theta[upper - 1]) - jnp.log(theta[lower - 1])) / self.width
        return 1 + self.zeta * self.temperature * slope

    def weight(self, theta: Float[Array, " m"], energy: Float[Array, ""]) -> Float[Array, ""]:
        """The importance weight θ^ζ(J)."""
        return theta[self.bin(energy) - 1] ** self.zeta

    def learn(self, theta: Float[Array, " m"], energy: Float[Array, ""], omega: Float[Array, ""]) -> Float[Array, " m"]:
        """θ(i) + ω·w·(1[i = J] − θ(i)), with the gain w of the rule."""
        i, J = jnp.arange(1, self.bins + 1), self.bin(energy)
        gain = theta[J - 1] if self.rule == "scalable" else self.weight(theta, energy)
        if self.rule == "biased":
            gain = gain + omega * self.rho * (i >= J)
        return theta + omega * gain * ((i == J) - theta)

    def init(self, x: Float[Array, "*shape"], noise: Noise, target: Target) -> State:
        """x_0 with θ_0(i) = 1/m."""
        energy, gradient = target(x, noise.gradient, noise.energy)
        return State(x, energy, gradient, jnp.full(self.bins, 1 / self.bins, energy.dtype), jnp.zeros((), int))

    def step(self, state: State, noise: Noise, target: Target) -> State:
        """Move from x_k by θ_k, evaluate Ũ and ∇Ũ at x_{k+1}, and learn θ_{k+1} from J(x_{k+1})."""
        drift = self.step_size * self.multiplier(state.theta, state.energy) * state.gradient
        x = state.x - drift + jnp.sqrt(2 * self.temperature * self.step_size) * noise.move
        energy, gradient = target(x, noise.gradient, noise.energy)
        theta = self.learn(state.theta, energy, self.omega((state.k + 1).astype(energy.dtype)))
        return State(x, energy, gradient, theta, state.k + 1)


# --- Running it --------------------------------------------------------------------------------------


@lru_cache
def noisy(energy: Callable[[Array], Array], gradient_variance: float = 0.0, energy_variance: float = 0.0) -> Target:
    """An energy function whose gradient and energy are seen with Gaussian noise, as in the paper's simulations."""

    def evaluate(x: Array, gradient_noise: Array, energy_noise: Array) -> tuple[Array, Array]:
        value, gradient = jax.value_and_grad(energy)(x)
        return value + energy_variance**0.5 * energy_noise, gradient + gradient_variance**0.5 * gradient_noise

    return evaluate


class Path(NamedTuple):
    """What chains leave at every mark; leading axes are (chain, mark).

    steps: the step of each mark.  x, energy, weight, multiplier: of the last step before it.
    theta: θ at each mark, or after the last step alone.
    total, mean: Σ w and Σ w x / Σ w over the steps since the mark before.
    visits: how many steps of the second half of the marks ended in each bin, (chain, bin).
    """

    steps: Int[np.ndarray, " marks"]
    x: np.ndarray
    energy: np.ndarray
    weight: np.ndarray
    multiplier: np.ndarray
    theta: np.ndarray
    total: np.ndarray
    mean: np.ndarray
    visits: np.ndarray

    @property
    def finite(self) -> np.ndarray:
        """Which chains are still finite, at every mark."""
        return np.isfinite(self.x).reshape(*self.energy.shape, -1).all(axis=-1) & np.isfinite(self.energy)

    def running_mean(self) -> np.ndarray:
        """Σ w x / Σ w over all steps up to each mark; NaN once a chain has diverged."""
        total = self.total.reshape(self.total.shape + (1,) * (self.mean.ndim - self.total.ndim))
        return np.cumsum(total * self.mean, axis=1) / np.cumsum(total, axis=1)


def run(
    algorithm: AlgorithmOne,
    target: Target,
    start: float | np.ndarray,
    *,
    steps: int,
    every: int,
    chains: int,
    seed: int,
    before: int = 0,
    every_theta: bool = False,
) -> Path:
    """Run independent chains in float64 with a mark after every so many of `steps`, and some steps before them.

    every_theta: whether to keep θ at every mark, and not the last one alone.
    """
    with jax.enable_x64(True):
        program = _program(replace(algorithm, low=0.0), target, steps // every, every, before // every, every_theta)
        keys = jax.random.split(jax.random.key(seed), chains)
        left = program(keys, jnp.asarray(start, jnp.float64), jnp.asarray(algorithm.low, jnp.float64))
        return Path(before + every * np.arange(1, 1 + steps // every), *map(np.asarray, left))


@lru_cache(maxsize=16)
def _program(
    algorithm: AlgorithmOne, target: Target, marks: int, every: int, before: int, every_theta: bool
) -> Callable[..., tuple[Array, ...]]:
    """The compiled program, from a key for each chain, the start and u₁: another u₁ does not compile it again."""

    def noise(key: Array, count: int, shape: tuple[int, ...]) -> Noise:
        keys = jax.random.split(key, 3)
        move, gradient = (jax.random.normal(one, (count, *shape)) for one in keys[:2])
        return Noise(move, gradient, jax.random.normal(keys[2], (count,)))

    @jax.jit
    def program(keys: Array, start: Array, low: Array) -> tuple[Array, ...]:
        one = replace(algorithm, low=low)

        def one_step(state: State, drawn: Noise) -> tuple[State, tuple[Array, ...]]:
            state = one.step(state, drawn, target)
            weight = one.weight(state.theta, state.energy)
            return state, (weight, weight * state.x, one.bin(state.energy))

        def to_mark(carry: tuple[State, Array], key: Array) -> tuple[tuple[State, Array], tuple[Any, ...]]:
            state, (weights, weighted, bins) = jax.lax.scan(one_step, carry[0], noise(key, every, start.shape))
            at = state.x, state.energy, weights[-1], one.multiplier(state.theta, state.energy)
            theta = state.theta if every_theta else None
            total = weights.sum()
            return (state, carry[1].at[bins - 1].add(1)), (*at, theta, total, weighted.sum(axis=0) / total)

        def chain(key: Array) -> tuple[Array, ...]:
            keys = jax.random.split(key, 1 + before + marks)
            first, half = 1 + before, 1 + before + marks // 2
            none = jnp.zeros(algorithm.bins, jnp.int32)
            state = one.init(start, jax.tree.map(lambda drawn: drawn[0], noise(keys[0], 1, start.shape)), target)
            (state, _), _ = jax.lax.scan(
                lambda carry, key: (to_mark(carry, key)[0], None), (state, none), keys[1:first]
            )
            (state, _), early = jax.lax.scan(to_mark, (state, none), keys[first:half])
            (state, visits), late = jax.lax.scan(to_mark, (state, none), keys[half:])
            *at, theta, total, mean = jax.tree.map(lambda *parts: jnp.concatenate(parts), early, late)
            return *at, state.theta[None] if theta is None else theta, total, mean, visits

        return jax.vmap(chain)(keys)

    return program
