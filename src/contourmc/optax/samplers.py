"""The named samplers, by what a training script has: a learning rate of the mean loss, and a weight decay."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import optax
from jaxtyping import Array

from contourmc._core.checks import require, require_number
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.kernels import contour
from contourmc.kernels.contour import DEFAULT_OMEGA, Bins, RuleOrName, Weights
from contourmc.kernels.schedules import Number, Schedule
from contourmc.kernels.sghmc import SGHMC
from contourmc.kernels.sgld import SGLD
from contourmc.optax.transformation import sampler

# A number, or a function of the number of updates before, as Optax has them.
LearningRate = Number | Callable[[Any], Any]


def sgld(
    learning_rate: LearningRate,
    *,
    data_size: Number,
    temperature: Schedule = 1.0,
    weight_decay: Number = 0.0,
    seed: int | Array = 0,
) -> optax.GradientTransformationExtraArgs:
    """SGLD; the settings are explained at `csghmc`.

    >>> import contourmc.optax as samplers
    >>> params, tx = {"w": jnp.zeros(3)}, samplers.sgld(0.1, data_size=100, weight_decay=1e-4)
    >>> updates, state = tx.update({"w": jnp.ones(3)}, tx.init(params), params)
    """
    dynamics = SGLD(_step_size(learning_rate, data_size), temperature)
    return sampler(dynamics, data_size=data_size, weight_decay=weight_decay, seed=seed)


def sghmc(
    learning_rate: LearningRate,
    *,
    data_size: Number,
    temperature: Schedule = 1.0,
    momentum: Number = 0.9,
    weight_decay: Number = 0.0,
    seed: int | Array = 0,
) -> optax.GradientTransformationExtraArgs:
    """SGHMC; the settings are explained at `csghmc`. At temperature 0 it is momentum SGD.

    >>> import contourmc.optax as samplers
    >>> params, tx = {"w": jnp.zeros(3)}, samplers.sghmc(0.1, data_size=100, temperature=0.0)
    >>> updates, state = tx.update({"w": jnp.ones(3)}, tx.init(params), params)
    >>> print(updates["w"])  # momentum SGD
    [-0.1 -0.1 -0.1]
    """
    dynamics = SGHMC(_step_size(learning_rate, data_size), temperature, momentum)
    return sampler(dynamics, data_size=data_size, weight_decay=weight_decay, seed=seed)


def csgld(
    learning_rate: LearningRate,
    partition: Bins,
    *,
    data_size: Number,
    temperature: Schedule = 1.0,
    weight_decay: Number = 0.0,
    zeta: Number = 1.0,
    omega: Schedule | None = DEFAULT_OMEGA,
    scheme: Scheme = "smooth",
    rule: RuleOrName = "original",
    weights: Weights = "continuous",
    theta: Sequence[float] | np.ndarray | None = None,
    seed: int | Array = 0,
) -> optax.GradientTransformationExtraArgs:
    """Contour SGLD; the settings are explained at `csghmc`.

    >>> import contourmc.optax as samplers
    >>> params, tx = {"w": jnp.zeros(3)}, samplers.csgld(0.1, cm.Partition(low=50.0, width=5.0, bins=20), data_size=100)
    >>> updates, state = tx.update({"w": jnp.ones(3)}, tx.init(params), params, value=0.7)
    >>> print(state.info.energy, state.info.bin)
    70.0 4
    """
    _check_injected(partition, zeta=zeta, omega=omega)
    kernel = contour.csgld(
        _step_size(learning_rate, data_size), partition, temperature=temperature, zeta=zeta, omega=omega,
        scheme=scheme, rule=rule, weights=weights, theta=theta,
    )  # fmt: skip
    return sampler(kernel, data_size=data_size, weight_decay=weight_decay, seed=seed)


def csghmc(
    learning_rate: LearningRate,
    partition: Bins,
    *,
    data_size: Number,
    temperature: Schedule = 1.0,
    momentum: Number = 0.9,
    weight_decay: Number = 0.0,
    zeta: Number = 1.0,
    omega: Schedule | None = DEFAULT_OMEGA,
    scheme: Scheme = "smooth",
    rule: RuleOrName = "original",
    weights: Weights = "continuous",
    theta: Sequence[float] | np.ndarray | None = None,
    seed: int | Array = 0,
) -> optax.GradientTransformationExtraArgs:
    """Contour SGHMC.

    learning_rate: of the mean loss; a number, or an Optax schedule.
    partition: bins of the energy U = N·loss + (Nλ/2)·‖x‖².
    data_size: N, the number of observations in the training set, of which the loss is a mean.
    temperature: τ; the posterior has 1, and 0 is momentum SGD.
    momentum: the share of the velocity that a step keeps.
    weight_decay: λ, a Gaussian prior of precision Nλ on all parameters.
    zeta, omega, scheme, rule, weights, theta: as for `contourmc.Contour`.
    seed: of the noise.

    >>> import contourmc.optax as samplers
    >>> params, tx = {"w": jnp.zeros(3)}, samplers.csghmc(0.1, "auto", data_size=100, temperature=0.01)
    >>> updates, state = tx.update({"w": jnp.ones(3)}, tx.init(params), params, value=0.7)
    >>> print(state.kernel.steps, state.info.multiplier)
    1 1.0
    """
    _check_injected(partition, zeta=zeta, omega=omega)
    kernel = contour.csghmc(
        _step_size(learning_rate, data_size), partition, temperature=temperature, momentum=momentum, zeta=zeta,
        omega=omega, scheme=scheme, rule=rule, weights=weights, theta=theta,
    )  # fmt: skip
    return sampler(kernel, data_size=data_size, weight_decay=weight_decay, seed=seed)


def _check_injected(partition: Bins, **settings: Any) -> None:
    """Raise if `inject_hyperparams` made numbers of settings that bins which follow the energies choose themselves."""
    names = [name for name, value in settings.items() if isinstance(value, jax.Array)]
    fixed, remedy = isinstance(partition, Partition), 'give it static_args=("zeta", "omega"): the bins choose both'
    require(fixed or not names, " and ".join(names), "numbers of inject_hyperparams", remedy)


def _step_size(learning_rate: LearningRate, data_size: Any) -> Schedule:
    """ε = η/N. Optax counts updates from 0, and contourmc steps from 1."""
    require_number("data_size", data_size, "give the number of observations in the training set", positive=True)
    if callable(learning_rate):
        return lambda step: learning_rate(step - 1) / data_size
    require_number("learning_rate", learning_rate, "the learning rate must be above 0", positive=True)
    return learning_rate / data_size
