"""The rules by which θ is learnt: stochastic approximation, one step after every move.

With J the bin of the point, ω the step size and w the gain of the rule,

    θ(i) ← θ(i) + ω·w·(1[i = J] − θ(i)).

A rule is an object with a `gain` and an `update`. Four are defined here, with the names `original`, `biased`,
`scalable` and `visits`. To add one, subclass `Rule` and give an instance of it to a contour kernel.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require, require_number
from contourmc.flattening.theta import LogTheta, at_bin, normalised


class Rule(ABC):
    """How θ is learnt. Subclasses are frozen dataclasses: equal rules compile once.

    >>> rule = cm.csgld(0.1, cm.Partition(low=2.0, width=0.5, bins=6), rule="scalable").rule
    >>> isinstance(rule, cm.Rule), rule.visit_power(zeta=10.0)
    (True, 0.0)
    """

    @abstractmethod
    def gain(self, theta: LogTheta, index: Int[Array, ""], log_weight: Float[Array, ""]) -> Float[Array, ""]:
        """log w, from θ, the bin of the point, and the point's log weight."""

    def update(
        self,
        theta: LogTheta,
        index: Int[Array, ""],
        gain: Float[Array, ""],
        log_omega: Float[Array, ""],
        axis: str | tuple[str, ...] | None = None,
    ) -> LogTheta:
        """θ after one step, with J = `index`, w = e^gain and ω = e^log_omega.

        axis: the mapped axis, or axes, of chains that share one θ, which then learns from the mean of their steps
            (ICSGLD).
        """
        if axis is None:
            learnt = learn(theta, index, gain, log_omega, self.high_order)
        else:
            learnt = learn_together(theta, index, gain, log_omega, axis, self.high_order)
        # The high-order term, which the bins below J do not get, changes Σθ: it is 1 again after every step, and not
        # only when rounding errors are removed, so that the result does not depend on when that is.
        return normalised(learnt) if self.high_order else learnt

    @property
    def high_order(self) -> float:
        """ρ of the term ωρ·1[i ≥ J] that is added to w; 0 for none."""
        return 0.0

    @abstractmethod
    def visit_power(self, zeta: float) -> float:
        """The power p with which bins are visited in proportion to θ^p, once θ is learnt; 0: all equally."""


@dataclass(frozen=True)
class Original(Rule):
    """w = the weight of the point, Ψ^ζ(U) or θ^ζ(J): then θ(i) → ∫_{bin i} π (the paper's rule).

    >>> cm.csgld(0.1, cm.Partition(low=2.0, width=0.5, bins=6), rule=cm.Original()).rule
    Original()
    """

    def gain(self, theta: LogTheta, index: Int[Array, ""], log_weight: Float[Array, ""]) -> Float[Array, ""]:
        return log_weight

    def visit_power(self, zeta: float) -> float:
        return 1 - zeta


@dataclass(frozen=True)
class Biased(Original):
    """`Original` with the high-order term ωρ·1[i ≥ J] added to w: for large ζ, where w = θ^ζ vanishes.

    rho: ρ, 0 or more. The bins below J do not get the term, which costs a pass over θ.

    >>> cm.csgld(0.1, cm.Partition(low=2.0, width=0.5, bins=6), zeta=10.0, rule=cm.Biased(rho=0.5)).rule
    Biased(rho=0.5)
    """

    rho: float = 1.0

    def __post_init__(self):
        require_number("rho", self.rho, "the high-order term ρ must be 0 or more", positive=False)

    @property
    def high_order(self) -> float:
        return self.rho


@dataclass(frozen=True)
class Scalable(Rule):
    """w = θ(J): then θ(i) → (∫_{bin i} π)^{1/ζ}, up to a constant; for large ζ and deep networks.

    >>> cm.csgld(0.1, cm.Partition(low=2.0, width=0.5, bins=6), zeta=10.0, rule=cm.Scalable()).rule
    Scalable()
    """

    def gain(self, theta: LogTheta, index: Int[Array, ""], log_weight: Float[Array, ""]) -> Float[Array, ""]:
        return at_bin(theta, index)

    def visit_power(self, zeta: float) -> float:
        return 0.0


@dataclass(frozen=True)
class Visits(Rule):
    """w = 1: then θ(i) is the share of visits to bin i. With the weights Ψ^ζ these are the shares of well-tempered
    metadynamics, ∝ (∫_{bin i} π)^{1/(1+ζ)}: part of the way to a flat histogram, and never beyond what was visited.

    >>> cm.csgld(0.1, cm.Partition(low=2.0, width=0.5, bins=6), rule=cm.Visits()).rule
    Visits()
    """

    def gain(self, theta: LogTheta, index: Int[Array, ""], log_weight: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.zeros_like(log_weight)

    def visit_power(self, zeta: float) -> float:
        return 1.0


RULES: dict[str, Rule] = {"original": Original(), "biased": Biased(), "scalable": Scalable(), "visits": Visits()}


def as_rule(rule: Rule | str) -> Rule:
    """The rule itself, or the rule of this name."""
    if isinstance(rule, Rule):
        return rule
    require(rule in RULES, "rule", rule, f"choose one of {', '.join(RULES)}, or give a Rule")
    return RULES[rule]


def learn(
    theta: LogTheta,
    index: Int[Array, ""],
    gain: Float[Array, ""],
    log_omega: Float[Array, ""],
    rho: float = 0.0,
) -> LogTheta:
    """One step with J = `index`, w = e^gain and ω = e^log_omega:

        θ(i) ← θ(i) + ω·(w + ωρ·1[i ≥ J])·(1[i = J] − θ(i))

    With y = ω(w + ωρ), every level moves by log(1 − y), through the offset, and bin J moves to log(θ(J)(1 − y) + y).
    """
    levels, log_step = theta.levels, log_omega + gain
    if rho:
        above = log_omega + jnp.logaddexp(gain, log_omega + math.log(rho))
        extra = jnp.log1p(-jnp.exp(log_step)) - jnp.log1p(-jnp.exp(above))
        levels = levels + jnp.where(jnp.arange(levels.size) < index, extra, 0.0)
        log_step = above
    # log(1 + z) and not log1p(z) below: it takes half the time, and is exact to the precision of a level. The two
    # exponentials do not wait for one another: this is the longest chain of operations in a step.
    growth = 1 / (1 - jnp.exp(log_step))
    here = jax.lax.dynamic_index_in_dim(levels, index, keepdims=False)
    there = log_step - theta.offset
    smaller = jnp.exp(-jnp.abs(there - here))
    risen = jnp.maximum(here, there) + jnp.log(jnp.where(there > here, growth + smaller, 1 + smaller * growth))
    levels = jax.lax.dynamic_update_index_in_dim(levels, risen, index, axis=0)
    return LogTheta(levels, theta.offset - jnp.log(growth))


def learn_together(
    theta: LogTheta,
    index: Int[Array, ""],
    gain: Float[Array, ""],
    log_omega: Float[Array, ""],
    axis: str | tuple[str, ...],
    rho: float = 0.0,
) -> LogTheta:
    """`learn` by the mean over the C chains of a mapped axis, which share one θ:

        θ(i) ← θ(i) + ω/C·Σ_c (w_c + ωρ·1[i ≥ J_c])·(1[i = J_c] − θ(i))

    The result is the same in every chain. It costs a pass over θ.
    """
    bins, below = jnp.arange(theta.levels.size), log_omega + gain
    above = log_omega + jnp.logaddexp(gain, log_omega + math.log(rho)) if rho else below
    largest = jax.lax.pmax(above, axis)
    most, least = jnp.exp(above - largest), jnp.exp(below - largest)
    rise = jnp.where(bins == index, most, 0.0)
    step = jnp.where(bins < index, least, most) if rho else most[None]
    # One mean of both: between devices, what counts is how often they wait for one another.
    rise, step = jnp.split(jax.lax.pmean(jnp.concatenate([rise, step]), axis), [bins.size])
    keep = jnp.log1p(-jnp.exp(largest) * step)
    levels = jnp.logaddexp(theta.levels + theta.offset + keep, jnp.log(rise) + largest)
    return LogTheta(levels, jnp.zeros_like(theta.offset))
