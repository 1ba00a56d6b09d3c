"""The check of step weights: how far they shift the estimates from those with continuous weights."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import floor, log, log10
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc._core.pytrees import coordinates
from contourmc.draws import estimates
from contourmc.draws.findings import Finding
from contourmc.draws.weighted import WeightedDraws
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import LogTheta, Scheme, at_bin, interpolate, log_theta

LEAST = 0.01  # standard deviations: a smaller shift is no problem
ERRORS = 3.0  # a shift must exceed this number of its standard errors, if one mean is compared
BATCH = 1000  # draws that are evaluated together, each with its own θ


class _Weights(NamedTuple):
    """Weights of the draws of the chains that count. Each kind sums to 1.

    own: the weights of the run.
    step, continuous: θ^ζ(J) and Ψ^ζ(U), from the same θ.
    """

    own: Float[np.ndarray, "chains draws"]
    step: Float[np.ndarray, "chains draws"]
    continuous: Float[np.ndarray, "chains draws"]


def check_step_weights(samples: WeightedDraws) -> Iterator[Finding]:
    """Compare the means by step weights and by continuous weights, on the same draws.

    The chain samples π/Ψ^ζ with a continuous Ψ, so that the weights Ψ^ζ(U) are right. The paper's weights θ^ζ(J) are
    constant inside a bin. They bias the estimates by an amount that depends on the partition, and a longer run does
    not remove the bias. The check compares the mean energy, and the mean of every coordinate if the draws are stored
    and have few coordinates.

    The finding is a problem if a mean is shifted by more than 0.01 standard deviations and by more than 3 standard
    errors of the shift (by more than √(9 + 2 ln n) if n means are compared). Otherwise it is a warning. It is never a
    note, because a run with notes alone is trusted, and a bias may hide in the noise of a short run or in a quantity
    that is not compared. There is no finding if both kinds of weights are the same, as for ζ = 0 or a uniform θ.
    """
    flattening = samples.flattening
    if flattening is None or not flattening.step_weights:
        return
    weights = _both_kinds(samples)
    if weights is None:
        return
    pooled, every = samples.pooled, samples.draws is not None and samples.few_coordinates
    found = coordinates(samples.positions, leading=2) if every else {}
    numbers = {f"mean of {name}": values[pooled] for name, values in found.items()}
    ranked = sorted(numbers, key=lambda name: -abs(_shift(numbers[name], weights)))
    # The energy is last: it represents all that is not compared, but a coordinate means more to a reader.
    numbers["mean energy"] = samples.energies[pooled]
    ranked.append("mean energy")
    limit = (ERRORS**2 + 2 * log(len(ranked))) ** 0.5  # chance exceeds it about as often as 3 errors of one mean
    worst = next((name for name in ranked if _shifted(numbers[name], weights, limit)), None)
    named = worst or ranked[0]
    message = "the step weights θ^ζ(J), as in the paper, are biased by the partition"
    message += ": " if worst else ". Here the bias is small, or within its error: "
    message += f"the {named} is {_both_means(numbers[named], weights)}."
    if not every:
        reason = "the draws are not stored" if samples.draws is None else "a draw has too many coordinates"
        message += f" Only energies were compared, because {reason}."
    severity, figure = "problem" if worst else "warning", _shift(numbers[named], weights)
    yield Finding(severity, "step weights", figure, message, 'Use weights="continuous", the default.')


def _both_kinds(samples: WeightedDraws) -> _Weights | None:
    """The weights to compare; None if both kinds are the same."""
    flattening = samples.flattening
    assert flattening is not None
    assert flattening.zeta is not None
    log_psi, log_step = _log_psi_and_step(samples)
    # At a changed temperature a factor is common to both kinds.
    common = flattening.tilt * np.asarray(samples.energies, float)
    kinds = [flattening.zeta * logs + common for logs in (log_step, log_psi)]
    pooled = samples.pooled
    if np.ptp((kinds[1] - kinds[0])[pooled]) < 1e-6:
        return None
    step, continuous = (replace(samples, log_weights=logs).weights[pooled] for logs in kinds)
    return _Weights(samples.weights[pooled], step, continuous)


def _log_psi_and_step(
    samples: WeightedDraws,
) -> tuple[Float[np.ndarray, "chains draws"], Float[np.ndarray, "chains draws"]]:
    """log Ψ(U) and log θ(J) of every draw, interpolated between θ at the mark before it and at the mark after it."""
    flattening, trajectory = samples.flattening, samples.trajectory
    assert flattening is not None
    assert flattening.scheme is not None
    assert trajectory.theta is not None
    places = np.interp(samples.steps, trajectory.steps, np.arange(len(trajectory.steps)))
    before = places.astype(int)
    after = np.minimum(before + 1, len(trajectory.steps) - 1)
    # Counted from the lowest bin, in float64, so that large energies keep the digits that tell bins apart.
    energies = np.asarray(samples.energies, float) - flattening.partition.low
    partition = replace(flattening.partition, low=0.0)
    early, late = (
        [np.asarray(logs, float) for logs in _evaluate(trajectory.theta, partition, at, energies, flattening.scheme)]
        for at in (before, after)
    )
    log_psi, log_step = (one + (places - before) * (other - one) for one, other in zip(early, late, strict=True))
    return log_psi, log_step


@partial(jax.jit, static_argnames="scheme")
def _evaluate(
    thetas: Float[Array, "chains marks bins"],
    partition: Partition,
    marks: Int[Array, " draws"],
    energies: Float[Array, "chains draws"],
    scheme: Scheme,
) -> tuple[Float[Array, "chains draws"], Float[Array, "chains draws"]]:
    """log Ψ(U) and log θ(J) of every draw, by θ at its mark."""

    def of_chain(chain: tuple[Array, Array]) -> tuple[Array, Array]:
        thetas, energies = chain
        logs = jax.vmap(log_theta)(thetas)

        def of_draw(draw: tuple[Array, Array]) -> tuple[Array, Array]:
            mark, energy = draw
            theta = LogTheta(logs.levels[mark], logs.offset[mark])
            return interpolate(theta, partition, energy, scheme)[0], at_bin(theta, partition.index(energy))

        return jax.lax.map(of_draw, (marks, energies), batch_size=BATCH)

    return jax.lax.map(of_chain, (thetas, energies))


def _shift(values: np.ndarray, weights: _Weights) -> float:
    """How far step weights shift a mean, in standard deviations of the number; 0 for a constant."""
    if np.ptp(values) == 0:
        return 0.0
    both = (weights.step + weights.continuous) / 2
    centred = np.asarray(values, float) - np.sum(both * values)
    deviation = float(np.sum(both * centred**2)) ** 0.5
    difference = float(np.sum((weights.step - weights.continuous) * centred))
    return difference / deviation if deviation > 0 else 0.0


def _shifted(values: np.ndarray, weights: _Weights, limit: float) -> bool:
    """Whether step weights shift a mean by more than 0.01 standard deviations, and by more than `limit` errors."""
    if abs(_shift(values, weights)) <= LEAST:
        return False
    step, series = estimates.linearised(values, weights.step)
    continuous, other = estimates.linearised(values, weights.continuous)
    return abs(step - continuous) > limit * estimates.error_of_mean(series - other)


def _both_means(values: np.ndarray, weights: _Weights) -> str:
    """The means of a number with both kinds of weights, in words.

    The mean with step weights is the run's own. The shift is computed from θ at the marks of the trajectory, which may
    differ a little from θ at a draw, but this cancels in a difference. The mean with continuous weights follows.
    """
    own, series = estimates.linearised(values, weights.own)
    step, by_step = estimates.linearised(values, weights.step)
    continuous, by_continuous = estimates.linearised(values, weights.continuous)
    shift = by_step - by_continuous
    with_step = _with_error(own, estimates.error_of_mean(series))
    without = _with_error(own - (step - continuous), estimates.error_of_mean(series - shift))
    difference = _with_error(abs(step - continuous), estimates.error_of_mean(shift))
    return f"{with_step} with step weights and {without} with continuous weights (difference {difference})"


def _with_error(value: float, error: float) -> str:
    """A number with as many decimals as two digits of its error have."""
    if not 1e-6 < error < 1e6:
        return f"{value:.4g} ± {error:.2g}"
    decimals = max(0, 1 - floor(log10(error)))
    return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"
