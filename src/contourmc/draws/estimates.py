"""Statistics of weighted, correlated draws: plain functions of arrays, in float64."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

_ROUNDING = 1e-9  # of a sum of all weights


def normalise(log_weights: Float[np.ndarray, "*batch draws"]) -> Float[np.ndarray, "*batch draws"]:
    """Weights that sum to 1 along the last axis; safe for log weights of any size."""
    log_weights = np.asarray(log_weights, float)
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def kish(weights: Float[np.ndarray, "*batch draws"]) -> Float[np.ndarray | np.generic, "*batch"]:
    """(Σw)² / Σw²: how many equal weights these are worth; ignores correlation."""
    return weights.sum(axis=-1) ** 2 / np.sum(weights**2, axis=-1)


def quantile(
    values: Float[np.ndarray, "draws ..."],
    weights: Float[np.ndarray, " draws"],
    levels: Float[np.ndarray, "..."],
) -> Float[np.ndarray, "..."]:
    """Weighted quantiles along the first axis: the smallest value with at least that much weight up to it."""
    flat = np.reshape(values, (len(values), -1))
    columns = []
    for column in flat.T:
        order = np.argsort(column, kind="stable")
        heights = np.cumsum(weights[order])
        ranks = np.searchsorted(heights, levels * heights[-1])
        columns.append(column[order][np.minimum(ranks, len(column) - 1)])
    return np.reshape(np.stack(columns, axis=-1), (*levels.shape, *values.shape[1:]))


def systematic(
    weights: Float[np.ndarray, " draws"], count: int, random: np.random.Generator
) -> Int[np.ndarray, " count"]:
    """Systematic resampling: one uniform shift, `count` equally spaced points over the cumulative weights."""
    heights = np.cumsum(weights / weights.sum())
    points = (np.arange(count) + random.uniform()) / count
    return np.minimum(np.searchsorted(heights, points, side="right"), len(weights) - 1)


def balanced(
    weights: Float[np.ndarray, " draws"], values: Float[np.ndarray, "draws size"], count: int
) -> Int[np.ndarray, " count"]:
    """Resampling that keeps the means of some numbers.

    Like `systematic` it takes a draw count · weight times, rounded up or down, and up to any draw the total is right to
    less than 1. Where both ways are possible, it rounds so that Σ (times − count · weight)·z stays near 0, for the
    standardised numbers z: a mean is off by about √size / count standard deviations, and not by 1 / √count.
    """
    expected = count * (weights / weights.sum())
    mean = weights @ values / weights.sum()
    spread = np.sqrt(weights @ (values - mean) ** 2 / weights.sum())
    scaled = (values - mean) / np.where(spread > 0, spread, 1.0)
    z = np.concatenate([scaled, np.ones((len(scaled), 1))], axis=1)
    times, excess, off = np.floor(expected), 0.0, np.zeros(z.shape[1])
    for i in np.flatnonzero(expected > times):
        part = expected[i] - times[i]
        up, down = excess - part < -_ROUNDING, excess + 1 - part > _ROUNDING
        if up and down:  # the shorter of off + (1 − part)·z and off − part·z
            up = 2 * (off @ z[i]) + (1 - 2 * part) * (z[i] @ z[i]) < 0
        change = 1 - part if up else -part
        times[i] += up
        excess += change
        off += change * z[i]
    chosen = np.repeat(np.arange(len(weights)), times.astype(int))
    # Rounding errors may leave one draw too many or too few at the end.
    return np.concatenate([chosen, np.full(max(count - len(chosen), 0), len(weights) - 1)])[:count].astype(int)


def chain_error(
    shares: Float[np.ndarray, " chains"], means: Float[np.ndarray, "chains ..."]
) -> Float[np.ndarray | np.generic, "..."]:
    """Standard error of Σ_c s_c m_c from the spread of the chains, √(C/(C−1)·Σ_c s_c²(m_c − m̄)²)."""
    with np.errstate(invalid="ignore"):
        deviations = means - np.einsum("c,c...->...", shares, means)
    chains = len(means)
    return np.sqrt(np.einsum("c,c...->...", shares**2, deviations**2) * chains / (chains - 1))


def batch_error(
    log_weights: Float[np.ndarray, "chains batches"], means: Float[np.ndarray, "chains batches ..."]
) -> Float[np.ndarray | np.generic, "..."]:
    """Standard error of the mean over chains of Σ_b w_b m_b / Σ_b w_b, from the batches b of each chain.

    The ratio is linearised: its variance is that of Σ_b w_b (m_b − m̄) / Σ_b w_b, with the batches of
    a chain taken as independent.
    """
    used = np.isfinite(log_weights).all(axis=0)
    shares = normalise(log_weights[:, used])
    shares = shares.reshape(shares.shape + (1,) * (means.ndim - 2))
    deviations = shares * (means[:, used] - np.sum(shares * means[:, used], axis=1, keepdims=True))
    batches = max(int(used.sum()), 1)
    per_chain = np.sum(deviations**2, axis=1) * batches / max(batches - 1, 1)
    return np.sqrt(per_chain.sum(axis=0)) / len(means)


def effective_size(
    values: Float[np.ndarray, "chains draws ..."], weights: Float[np.ndarray, "chains draws"]
) -> Float[np.ndarray, "..."]:
    """ESS = Var_π(f) / Var(f̂) for the weighted mean f̂, for every coordinate f.

    f̂ is linearised to the plain mean of z = N·w·(f − f̂), whose variance is that of a correlated series; it
    is found as for unweighted chains (Geyer's initial positive sequence, with the spread between
    chains), so that weights, correlation and disagreement all count. NaN for a constant.
    """
    flat = np.reshape(np.asarray(values, float), (*weights.shape, -1))
    sizes = [_effective_size(flat[..., i], weights) for i in range(flat.shape[-1])]
    return np.reshape(np.array(sizes), values.shape[2:])


def _effective_size(values: np.ndarray, weights: np.ndarray) -> float:
    if not np.all(np.isfinite(values)):
        return float("nan")
    mean, error = mean_and_error(values, weights)
    spread = np.sum(weights * (values - mean) ** 2)
    most = 10 * float(kish(weights.ravel()))  # few draws say little about their own spread
    if np.ptp(values) == 0:
        return float("nan")
    return most if error == 0 else min(float(spread / error**2), most)


def mean_and_error(
    values: Float[np.ndarray, "chains draws"], weights: Float[np.ndarray, "chains draws"]
) -> tuple[float, float]:
    """The weighted mean f̂ of one number, and its standard error: that of the plain mean of z = N·w·(f − f̂).

    Weights sum to 1. The error sees correlation along the chains and the spread between them.
    """
    mean, series = linearised(values, weights)
    return mean, error_of_mean(series)


def linearised(
    values: Float[np.ndarray, "chains draws"], weights: Float[np.ndarray, "chains draws"]
) -> tuple[float, Float[np.ndarray, "chains draws"]]:
    """The weighted mean f̂ of one number, and the series z = N·w·(f − f̂), whose plain mean has the error of f̂.

    The series of several weighted means add up: the sum of the means has the error of the mean of the summed series.
    """
    values = np.asarray(values, float)
    with np.errstate(invalid="ignore"):  # of values that are not finite, which the diagnosis names
        mean = float(np.sum(weights * values))
        return mean, weights.size * weights * (values - mean)


def error_of_mean(series: Float[np.ndarray, "chains draws"]) -> float:
    """The standard error of the plain mean of a stationary series in several chains."""
    return _variance_of_mean(series) ** 0.5


def standard_errors(
    values: Float[np.ndarray, "chains draws ..."], weights: Float[np.ndarray, "chains draws"]
) -> Float[np.ndarray, "..."]:
    """The standard error of the weighted mean of every coordinate."""
    flat = np.reshape(np.asarray(values, float), (*weights.shape, -1))
    errors = [mean_and_error(flat[..., i], weights)[1] for i in range(flat.shape[-1])]
    return np.reshape(np.array(errors), values.shape[2:])


def one_sided(values: np.ndarray, weights: Float[np.ndarray, "chains draws"]) -> Any:
    """Which numbers are 0, or 1, at every draw that has a weight: events that never or always happened."""
    some = np.reshape(values, (*weights.shape, -1))[weights > 0]
    return np.reshape(np.all(some == 0, axis=0) | np.all(some == 1, axis=0), values.shape[2:])


def most_unseen(effective: float) -> float:
    """The probability below which an event lies, with 95% confidence, that n independent draws did not show.

    (1 − p)ⁿ = 0.05, so that p = 1 − 0.05^(1/n), about 3/n.
    """
    return 1 - 0.05 ** (1 / effective) if effective > 0 else 1.0


def rhat_across(values: Sequence[np.ndarray], weights: Float[np.ndarray, "chains draws"]) -> tuple[float, float]:
    """R̂ along the direction in which the means of the chains differ most, and its significance; NaN if unknown.

    values: arrays of coordinates, (chains, draws, …).

    R̂ of a coordinate misses chains in different modes whose distance is spread over many coordinates. Let μ_c be the
    means of the first halves of the chains, and σ² the mean of the variances within these. The direction is a/σ, with
    the unit vector a along which (μ_c − μ̄)/σ varies most. Along it the second halves are compared, which had no say in
    the choice: R̂ = √(1 + B/W), with the variance B between their means, and the mean W of the variances within them.

    The significance is B/E, with the mean E of the squared errors of these means, divided by what it may be by chance:
    twice, since errors of few draws are rough, the 0.9999 quantile of χ² with a degree of freedom less than there are
    chains, over its mean (Wilson and Hilferty's formula). Above 1, chance does not explain R̂.
    """
    half = weights.shape[1] // 2
    shares = [part / part.sum(axis=1, keepdims=True) for part in (weights[:, :half], weights[:, half : 2 * half])]
    if not values or half < 10 or len(weights) < 2 or not all(np.isfinite(part).all() for part in shares):
        return float("nan"), float("nan")
    flat = [np.reshape(leaf, (*weights.shape, -1)) for leaf in values]
    scales, differences = [], []
    for leaf in flat:
        moments = [_mean_and_variance(x[:half], w) for x, w in zip(leaf, shares[0], strict=True)]
        means, variances = map(np.stack, zip(*moments, strict=True))
        scale = np.sqrt(variances.mean(axis=0))
        varies = scale > 1e-7 * np.abs(means).max(axis=0)  # but for rounding
        scales.append(np.where(varies, 1 / np.where(varies, scale, 1.0), 0.0))
        differences.append((means - means.mean(axis=0)) * scales[-1])
    chains = np.linalg.eigh(np.sum([part @ part.T for part in differences], axis=0))[1][:, -1]
    along = np.zeros((len(weights), half))
    for leaf, scale, part in zip(flat, scales, differences, strict=True):
        direction = scale * (chains @ part)
        along += np.stack([x[half : 2 * half] @ direction for x in leaf])
    within = [_mean_and_variance(y, w) for y, w in zip(along, shares[1], strict=True)]
    errors = [mean_and_error(y[None], w[None])[1] for y, w in zip(along, shares[1], strict=True)]
    between = float(np.var([mean for mean, _ in within], ddof=1))
    inside, error = float(np.mean([variance for _, variance in within])), float(np.mean(np.square(errors)))
    if inside == 0 or error == 0:
        return float("nan"), float("nan")
    spread = 2 / (9 * (len(weights) - 1))
    by_chance = 2 * (1 - spread + 3.719 * spread**0.5) ** 3
    return (1 + between / inside) ** 0.5, between / error / by_chance


def _mean_and_variance(values: np.ndarray, weights: Float[np.ndarray, " draws"]) -> tuple[Any, Any]:
    """Along the first axis; weights sum to 1."""
    mean = weights @ values
    return mean, weights @ np.square(values - mean)


def stand_still(energies: Float[np.ndarray, "chains draws"], draws: Any) -> Bool[np.ndarray, " chains"]:
    """Which chains hardly ever moved: fewer than one in a hundred draws differs from the one before it.

    Energies differ wherever draws do, unless the landscape is flat; draws are compared only where energies agree.
    """
    if energies.shape[1] < 100:
        return np.zeros(len(energies), bool)
    still = np.mean(energies[:, 1:] != energies[:, :-1], axis=1) < 0.01
    if draws is None and np.ptp(energies) == 0:  # a flat landscape, or a standstill that nobody can tell from it
        return np.zeros(len(energies), bool)
    for chain in np.flatnonzero(still):
        for leaf in jax.tree.leaves(draws):
            rows = np.reshape(np.asarray(leaf)[chain], (leaf.shape[1], -1))
            still[chain] &= np.mean(np.any(rows[1:] != rows[:-1], axis=1)) < 0.01
    return still


def _variance_of_mean(series: np.ndarray) -> float:
    """The variance of the mean of several chains of a stationary series."""
    chains, draws = series.shape
    centred = series - series.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * draws)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2)[:, :draws].mean(axis=0) / draws
    between = series.mean(axis=1).var(ddof=1) if chains > 1 else 0.0
    total = covariance[0] + between
    correlation = 1 - (covariance[0] - covariance) / total if total > 0 else covariance * 0
    pairs = correlation[: draws // 2 * 2].reshape(-1, 2).sum(axis=1)
    positive = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
    time = max(-1 + 2 * np.minimum.accumulate(pairs[: max(positive, 1)]).sum(), 1 / np.log10(draws + 10))
    return float(total * time / series.size)
