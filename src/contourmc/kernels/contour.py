"""The contour combinator: any dynamics on the flattened landscape (Deng, Lin & Liang 2020)."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.checks import require, require_number
from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.flattening.following import Following
from contourmc.flattening.partition import Partition
from contourmc.flattening.rules import Rule, as_rule
from contourmc.flattening.summary import Flattening
from contourmc.flattening.theta import LogTheta, Scheme, at_bin, interpolate
from contourmc.kernels.base import chain_axes
from contourmc.kernels.dynamics import Flatten, Flattenable
from contourmc.kernels.flattened import ContourInputs, ContourState, FlattenedKernel, one_more, start_theta
from contourmc.kernels.following_contour import FollowingContour
from contourmc.kernels.schedules import Number, Polynomial, Schedule, check_schedule, evaluate
from contourmc.kernels.sghmc import SGHMC
from contourmc.kernels.sgld import SGLD

Weights = Literal["continuous", "step"]
RuleOrName = Rule | Literal["original", "biased", "scalable", "visits"]
Bins = Partition | Following | Literal["auto"]

DEFAULT_OMEGA = Polynomial(scale=1.0, power=0.6, offset=100.0)


@dataclass(frozen=True)
class Contour(FlattenedKernel, arrays=("dynamics", "partition")):
    """A dynamics whose gradient is multiplied by 1 + ζτ·s(U), while θ is learnt.

    At x_k, with its energy and gradient: weigh x_k by Ψ^ζ, move by the multiplied gradient, and learn θ from its bin.

    dynamics: how to move, with its step size and temperature.
    partition: the energy bins.
    zeta: ζ, how far the landscape is flattened: 0 not at all, 1 to a flat histogram of energies.
    omega: ω_k, the step size of learning θ; None: θ stays as it is.
    scheme: how log Ψ interpolates log θ: `smooth`, or the paper's `left`, its supplement's `right`, `centred`, `step`.
    rule: how θ is learnt, by θ(i) ← θ(i) + ω·w·(1[i=J] − θ(i)); a `Rule`, or one of these names:
        `original`  w = the weight of x_k; θ(i) → ∫_{bin i} π.
        `biased`    adds the high-order term ω²ρ·1[i ≥ J] for large ζ, where w vanishes; ρ = 1, or `Biased(rho=…)`.
        `scalable`  w = θ(J); θ(i) → (∫_{bin i} π)^{1/ζ}, up to a constant: for large ζ and deep networks.
        `visits`    w = 1; θ(i) → (∫_{bin i} π)^{1/(1+ζ)}, the share of visits, as in well-tempered metadynamics.
    weights: `continuous` weighs by Ψ^ζ(U(x)), which matches what the chain samples; `step` by θ^ζ(J), as in the
        paper, which leaves a bias that no number of steps removes.
    theta: the probabilities of the bins if they are known; then nothing is learnt (KSGLD).
    shared: whether the chains of a run share one θ, learnt from the mean of their steps (ICSGLD).

    >>> kernel = cm.Contour(cm.sgld(0.002), cm.Partition(low=-0.3, width=0.4, bins=40), zeta=0.75)
    >>> cm.sample(energy, init=1.0, steps=2_000, kernel=kernel).theta.shape
    (4, 40)
    """

    schedules: ClassVar[tuple[str, ...]] = ("omega",)
    dynamics: Flattenable
    partition: Partition
    _: KW_ONLY
    zeta: Number = 1.0
    omega: Schedule | None = DEFAULT_OMEGA
    scheme: Scheme = "smooth"
    rule: RuleOrName = "original"
    weights: Weights = "continuous"
    theta: Sequence[float] | np.ndarray | None = None
    shared: bool = False

    def __post_init__(self):
        require(isinstance(self.dynamics, Flattenable), "dynamics", self.dynamics, "give sgld(...) or sghmc(...)")
        require(
            isinstance(self.partition, Partition),
            "partition",
            self.partition,
            'give Partition(low=…, width=…, bins=…), or "auto" for mini-batches',
        )
        require_number("zeta", self.zeta, "the flattening ζ must be 0 or more", positive=False)
        object.__setattr__(self, "rule", as_rule(self.rule))
        if self.omega is not None:
            first = check_schedule("omega", self.omega, "the learning rate ω of θ must be above 0")
            require(first is None or first < 1, "omega at step 1", first, "the learning rate ω must be below 1")
        for argument, kind in (("scheme", Scheme), ("weights", Weights)):
            value = getattr(self, argument)
            require(value in get_args(kind), argument, value, f"choose one of {', '.join(get_args(kind))}")
        if self.theta is not None:
            theta = np.asarray(self.theta, float)
            bins = self.partition.bins
            require(theta.shape == (bins,), "theta", theta.shape, f"give one probability for each of {bins} bins")
            distribution = bool(np.all(theta >= 0) and abs(theta.sum() - 1) < 1e-3)
            require(distribution, "theta", self.theta, "give probabilities of 0 or more that sum to 1 (to 1e-3)")
            object.__setattr__(self, "theta", tuple(theta.tolist()))

    @property
    def flattening(self) -> Flattening:
        zeta, temperature = float(self.zeta), self.dynamics.temperature
        return Flattening(
            self.partition,
            as_rule(self.rule).visit_power(zeta),
            fixed=self._omega is None,
            temperature=None if callable(temperature) else float(temperature),
            zeta=zeta,
            scheme=self.scheme,
            step_weights=self.weights == "step",
        )

    def init(self, position: Position) -> ContourState:
        bins = self.partition.bins
        probabilities = np.full(bins, 1 / bins) if self.theta is None else np.asarray(self.theta)
        return ContourState(self.dynamics.init(position), start_theta(probabilities), jnp.zeros(bins, jnp.int32))

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> ContourInputs:
        dynamics = self.dynamics.prepare(key, position, steps)
        omega = self._omega
        return ContourInputs(dynamics, None if omega is None else jnp.log(evaluate(omega, steps)))

    def begin_step(
        self, inputs: ContourInputs, state: ContourState, energy: Array
    ) -> tuple[ContourState, Array, Flatten]:
        def flatten(energy: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
            log_weight, slope = self._weigh(state.theta, energy)
            return log_weight, 1 + self.zeta * inputs.dynamics.temperature * slope

        return state, energy.astype(state.theta.levels.dtype), flatten

    def learn(self, inputs: ContourInputs, state: ContourState, info: Info) -> tuple[ContourState, Info]:
        theta, index = state.theta, self.partition.index(info.energy)
        if inputs.log_omega is not None:
            rule = as_rule(self.rule)
            gain = rule.gain(theta, index, info.log_weight)
            if self.scheme == "right":  # below the first edge Ψ, and so w, rises without limit: ωw stays below 1
                gain = jnp.minimum(gain, math.log(0.5) - inputs.log_omega)
            theta = rule.update(theta, index, gain, inputs.log_omega, chain_axes() if self.shared else None)
        return state._replace(theta=theta, visits=one_more(state.visits, index)), info._replace(bin=index)

    @property
    def learns(self) -> bool:
        return self._omega is not None

    @property
    def _omega(self) -> Schedule | None:
        """ω_k, or None if θ is fixed."""
        return None if self.theta is not None else self.omega

    def _weigh(self, theta: LogTheta, energy: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The log weight ζ·log Ψ, or ζ·log θ(J) for `step` weights, and the slope of log Ψ."""
        log_psi, slope = interpolate(theta, self.partition, energy, self.scheme)
        if self.weights == "step":
            log_psi = at_bin(theta, self.partition.index(energy))
        return self.zeta * log_psi, slope


def contour(
    dynamics: Flattenable,
    partition: Bins,
    *,
    zeta: Number = 1.0,
    omega: Schedule | None = DEFAULT_OMEGA,
    scheme: Scheme = "smooth",
    rule: RuleOrName = "original",
    weights: Weights = "continuous",
    theta: Sequence[float] | np.ndarray | None = None,
    shared: bool = False,
) -> FlattenedKernel:
    """Flatten any dynamics; the settings are explained at `Contour`.

    partition: the energy bins; or "auto", or `Following(...)`, for bins that find themselves on mini-batches.

    >>> kernel = cm.contour(cm.adjusted(0.01), cm.Partition(low=-0.3, width=0.4, bins=40))
    >>> cm.sample(energy, init=1.0, steps=2_000, kernel=kernel)
    Samples(4 chains × 1800 draws, Contour)
    """
    settings: dict[str, Any] = dict(zeta=zeta, omega=omega, scheme=scheme, rule=rule, weights=weights, theta=theta)
    if not isinstance(partition, Following) and not (isinstance(partition, str) and partition == "auto"):
        return Contour(dynamics, partition, shared=shared, **settings)
    usual = Contour.__dataclass_fields__
    for name, value in settings.items():
        same = value is usual[name].default or (np.ndim(value) == 0 and value == usual[name].default)
        require(bool(same), name, value, "bins that follow the energies choose it by themselves: leave it out")
    return FollowingContour(dynamics, Following() if isinstance(partition, str) else partition, shared=shared)


def csgld(
    step_size: Schedule,
    partition: Bins,
    *,
    temperature: Schedule = 1.0,
    zeta: Number = 1.0,
    omega: Schedule | None = DEFAULT_OMEGA,
    scheme: Scheme = "smooth",
    rule: RuleOrName = "original",
    weights: Weights = "continuous",
    theta: Sequence[float] | np.ndarray | None = None,
    shared: bool = False,
) -> FlattenedKernel:
    """Contour SGLD; the settings are explained at `contour` and `Contour`.

    >>> kernel = cm.csgld(0.002, cm.Partition(low=-0.3, width=0.4, bins=40), zeta=0.75)
    >>> cm.sample(energy, init=1.0, steps=2_000, kernel=kernel)
    Samples(4 chains × 1800 draws, Contour)
    """
    return contour(
        SGLD(step_size, temperature), partition, zeta=zeta, omega=omega, scheme=scheme, rule=rule, weights=weights,
        theta=theta, shared=shared,
    )  # fmt: skip


def csghmc(
    step_size: Schedule,
    partition: Bins,
    *,
    temperature: Schedule = 1.0,
    momentum: Number = 0.9,
    zeta: Number = 1.0,
    omega: Schedule | None = DEFAULT_OMEGA,
    scheme: Scheme = "smooth",
    rule: RuleOrName = "original",
    weights: Weights = "continuous",
    theta: Sequence[float] | np.ndarray | None = None,
    shared: bool = False,
) -> FlattenedKernel:
    """Contour SGHMC; the settings are explained at `contour` and `Contour`.

    >>> cm.sample(posterior, init=0.0, steps=2_000, kernel=cm.csghmc(1e-5, "auto", momentum=0.9))
    Samples(4 chains × 1800 draws, FollowingContour)
    """
    return contour(
        SGHMC(step_size, temperature, momentum), partition, zeta=zeta, omega=omega, scheme=scheme, rule=rule,
        weights=weights, theta=theta, shared=shared,
    )  # fmt: skip


def ksgld(
    step_size: Schedule,
    partition: Partition,
    theta: Sequence[float] | np.ndarray,
    *,
    temperature: Schedule = 1.0,
    zeta: Number = 1.0,
    scheme: Scheme = "smooth",
    weights: Weights = "continuous",
) -> Contour:
    """Contour SGLD with θ known and fixed: what CSGLD becomes once θ has been learnt.

    >>> kernel = cm.ksgld(0.002, cm.Partition(low=0.0, width=1.0, bins=4), theta=[0.4, 0.3, 0.2, 0.1])
    >>> kernel.learns
    False
    """
    return Contour(SGLD(step_size, temperature), partition, zeta=zeta, scheme=scheme, weights=weights, theta=theta)
