"""Integrals of powers of a Gaussian mixture: what normalises it at another temperature."""

from math import lgamma

import numpy as np
from jaxtyping import Float

from contourmc.problems.quadrature import log_integral, midpoints

REACH = 8.0  # standard deviations
SPACING = 0.3  # standard deviations
MOST_AXES = 2  # a grid over more, and a radius, is too large


def log_power_integral(
    weights: Float[np.ndarray, " components"],
    centres: Float[np.ndarray, "components dimension"],
    scales: Float[np.ndarray, "components dimension"],
    power: float,
) -> float | None:
    """log ∫ (Σ_k w_k N(x; μ_k, diag σ_k²))^β dx; None if it cannot be brought down to three dimensions.

    Coordinates that have the same mean μ and scale σ in all components are factors: each gives
    log ∫ N(x; μ, σ²)^β dx = ½ (1 − β) log(2πσ²) − ½ log β. In the others, in units of the first component's scales,
    all components must be round, N(z; ν_k, s_k² I). Then the density is a function of y, the coordinates in the plane
    (or line) through all ν_k, and of the distance r from it in the n dimensions left over:

        ∫ f(z)^β dz = 2π^{n/2}/Γ(n/2) · ∫∫ f(y, r)^β r^{n−1} dr dy,

    by the midpoint rule, which is exact to many digits for functions as smooth as these.
    """
    if power == 1:
        return float(np.log(weights.sum()))
    same = np.all((centres == centres[0]) & (scales == scales[0]), axis=0)
    shared = 0.5 * (1 - power) * np.log(2 * np.pi * scales[0, same] ** 2) - 0.5 * np.log(power)
    total, unit = float(shared.sum()), scales[0, ~same]
    if not len(unit):
        return total
    points, ratios = centres[:, ~same] / unit, scales[:, ~same] / unit
    if not np.allclose(ratios, ratios[:, :1]):
        return None
    points = _within_their_plane(points)
    if points.shape[1] > MOST_AXES:
        return None
    # f(x) = f(z)/Π_i σ_0i and dx = Π_i σ_0i dz
    jacobian = (1 - power) * float(np.log(unit).sum())
    return total + jacobian + _log_round_integral(weights, points, ratios[:, 0], len(unit), power)


def _within_their_plane(points: Float[np.ndarray, "components dimension"]) -> Float[np.ndarray, "components axes"]:
    """The points in coordinates of the smallest plane that holds them all."""
    offsets = points - points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(offsets, full_matrices=False)
    return offsets @ axes[sizes > 1e-9 * max(1.0, sizes[0])].T


def _log_round_integral(
    weights: Float[np.ndarray, " components"],
    points: Float[np.ndarray, "components axes"],
    scales: Float[np.ndarray, " components"],
    dimension: int,
    power: float,
) -> float:
    """log ∫ (Σ_k w_k N(z; ν_k, s_k² I))^β dz over `dimension` coordinates, of which the axes of ν_k are the first."""
    axes = points.shape[1]
    wider = power**-0.5  # a Gaussian to the power β has its standard deviation over √β
    spacing, reach = SPACING * scales.min() * min(1.0, wider), REACH * scales.max() * wider
    sides = [_cells(low - reach, high + reach, spacing) for low, high in zip(points.min(0), points.max(0), strict=True)]
    plane = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, axes)
    squares = np.sum((plane[:, None] - points) ** 2, axis=-1) / scales**2
    heights = np.log(weights) - 0.5 * dimension * np.log(2 * np.pi * scales**2)
    radii, log_shells = _shells(dimension - axes, spacing, scales * wider)
    cell = float(np.prod([side[1] - side[0] for side in sides]))
    planes = []
    for radius in radii:
        log_density = _log_sum(heights - 0.5 * (squares + (radius / scales) ** 2))
        planes.append(log_integral(-power * log_density, cell))
    return log_integral(-log_shells - np.array(planes), 1.0)


def _shells(
    dimension: int, spacing: float, scales: Float[np.ndarray, " components"]
) -> tuple[Float[np.ndarray, " radii"], Float[np.ndarray, " radii"]]:
    """Radii that Gaussians of these scales reach in n dimensions, and the log volume of the shell at each radius."""
    if dimension == 0:
        return np.zeros(1), np.zeros(1)
    low = max(0.0, scales.min() * (dimension**0.5 - REACH))
    radii = _cells(low, scales.max() * (dimension**0.5 + REACH), spacing)
    sphere = np.log(2) + 0.5 * dimension * np.log(np.pi) - lgamma(dimension / 2)
    return radii, sphere + (dimension - 1) * np.log(radii) + np.log(radii[1] - radii[0])


def _cells(low: float, high: float, spacing: float) -> Float[np.ndarray, " cells"]:
    return midpoints(low, high, int(np.ceil((high - low) / spacing)))


def _log_sum(terms: Float[np.ndarray, "points components"]) -> Float[np.ndarray, " points"]:
    top = terms.max(axis=1)
    return top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
