"""The measurements: how θ is learnt, and the errors of weighted averages along three sweeps."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from contourmc.draws.samples import Samples
from contourmc.flattening import theta as flattening
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.kernels.contour import DEFAULT_OMEGA, csgld, ksgld
from contourmc.studies.theory.setting import NAMES, PROBLEM, ZETA, Setting, Variant, grid, truth


def measure_learning(variant: Variant, lengths: tuple[int, ...], chains: int) -> dict[str, Any]:
    """How θ of CSGLD approaches θ⋆ at ε = 0.1.

    lengths: the steps of one run or several; shorter ones come first and give closer marks early on.
    """
    setting = Setting(step_size=0.1)
    kernel = csgld(0.1, setting.partition, zeta=ZETA, scheme=variant[0], weights=variant[1])
    runs = [setting.sample(kernel, steps, chains) for steps in lengths]
    steps = np.concatenate([run.trajectory.steps for run in runs])
    theta = np.concatenate([run.trajectory.theta for run in runs], axis=1)  # type: ignore[arg-type]
    new = np.append(True, steps[1:] > np.maximum.accumulate(steps)[:-1])
    steps, errors = steps[new], theta[:, new] - PROBLEM.theta(setting.partition)
    squares, variance = np.sum(errors**2, axis=-1), errors.var(axis=0, ddof=1).sum(axis=-1)
    omega = np.asarray(DEFAULT_OMEGA(jnp.asarray(steps)), float)
    last = steps >= steps[-1] // 20
    return {
        "steps": steps.tolist(),
        "omega": omega.tolist(),
        "mean_square": squares.mean(axis=0).tolist(),
        "mean_square_standard_error": (squares.std(axis=0, ddof=1) / chains**0.5).tolist(),
        "variance": variance.tolist(),
        "rate": slope(np.log(omega[last]), np.log(variance[last])),
        "floor": floor(errors[:, steps > 0.75 * steps[-1]].mean(axis=1)),
        "estimates": _summaries(runs[-1]),
    }


def slope(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """The slope of a straight line through at least 3 points, and its standard error from their scatter."""
    line, covariance = np.polyfit(x, y, 1, w=weights, cov=True)
    return float(line[0]), float(covariance[0, 0] ** 0.5)


def floor(errors: np.ndarray) -> tuple[float, float]:
    """‖bias‖² of θ from the errors of the chains (chain, bin), minus what their spread adds; its standard error."""
    bias, chains = errors.mean(axis=0), len(errors)
    along = (errors - bias) @ bias
    unbiased = bias @ bias - errors.var(axis=0, ddof=1).sum() / chains
    return float(unbiased), float(2 * along.std(ddof=1) / chains**0.5)


def _summaries(samples: Samples) -> dict[str, dict[str, float]]:
    """Bias, its standard error, and mean absolute error of the weighted averages of U and 1[x < 0]."""
    weights, x = samples.weights * samples.chains, samples.draws
    line, energy, _ = grid()
    summaries = {}
    for name, values in (("E[U]", np.interp(x, line, energy)), ("P(x < 0)", x < 0)):  # the exact U, without noise
        errors = np.sum(weights * values, axis=1) - truth()[name]
        summaries[name] = {
            "bias": float(errors.mean()),
            "standard_error": float(errors.std(ddof=1) / samples.chains**0.5),
            "mean_absolute_error": float(np.abs(errors).mean()),
        }
    return summaries


def measure_estimates(
    sweeps: Mapping[str, tuple[float, ...]], schemes: tuple[Scheme, ...], steps: int, chains: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Errors of KSGLD, whose θ is θ⋆, along each sweep; a setting that several sweeps share is run once."""
    names = {variant: name for variant, name in NAMES.items() if variant[0] in schemes}
    known: dict[tuple[Setting, Scheme], dict[str, Any]] = {}
    for sweep, values in sweeps.items():
        swept = [replace(Setting(), **{sweep: value}) for value in values]
        for setting, scheme in product(swept, schemes):
            if (setting, scheme) not in known:
                known[setting, scheme] = _known(setting, scheme, steps, chains)
        yield (
            sweep,
            {
                "values": list(values),
                "errors": {name: [known[setting, s][w] for setting in swept] for (s, w), name in names.items()},
                "step_bias_by_quadrature": {
                    s: [_step_bias(setting.partition, s) for setting in swept] for s in schemes
                },
            },
        )


def _known(setting: Setting, scheme: Scheme, steps: int, chains: int) -> dict[str, Any]:
    """One run, weighted in both ways: with θ fixed, the positions do not depend on the weights."""
    partition = setting.partition
    theta = PROBLEM.theta(partition)
    kernel = ksgld(setting.step_size, partition, theta.tolist(), zeta=ZETA, scheme=scheme)
    samples = setting.sample(kernel, steps, chains)
    bins = np.asarray(partition.index(jnp.asarray(samples.energies)))
    stepped = replace(samples, log_weights=ZETA * np.log(theta)[bins])
    return {"continuous": _summaries(samples), "step": _summaries(stepped)}


@cache
def _step_bias(partition: Partition, scheme: Scheme) -> dict[str, float]:
    """The bias of step weights for ε → 0 and k → ∞: the chain samples π/Ψ^ζ, and its draws are weighted by θ^ζ(J)."""
    x, exact, probability = grid()
    energy = jnp.asarray(exact, jnp.result_type(float))
    theta = flattening.log_theta(jnp.asarray(PROBLEM.theta(partition), energy.dtype))
    log_psi, _ = jax.vmap(lambda u: flattening.interpolate(theta, partition, u, scheme))(energy)
    excess = np.asarray(theta.levels[partition.index(energy)] - log_psi, float)
    weighted = probability * np.exp(ZETA * excess)
    weighted /= weighted.sum()
    means = {"E[U]": weighted @ exact, "P(x < 0)": weighted @ (x < 0)}
    return {name: float(mean) - truth()[name] for name, mean in means.items()}
