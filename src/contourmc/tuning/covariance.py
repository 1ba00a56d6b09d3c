"""The covariance of a basin from points of it and the gradients there."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

MOST_DENSE = 200  # coordinates; for more, each gets a width of its own
FLOOR = 1e-10  # of an eigenvalue, in units of the widths: what rounding leaves of float32


class Shape(NamedTuple):
    """mean: μ.  widths: σ of every coordinate.  covariance: Σ, or None if only the widths are known."""

    mean: Float[np.ndarray, " size"]
    widths: Float[np.ndarray, " size"]
    covariance: Float[np.ndarray, "size size"] | None

    @property
    def factor(self) -> Float[np.ndarray, "size size"]:
        """L with LLᵀ = Σ: the widths times the square root of Σ in units of them."""
        if self.covariance is None:
            return np.diag(self.widths)
        return self.widths[:, None] * _power(self._unit, 0.5)

    @property
    def log_volume(self) -> float:
        """log √det Σ."""
        if self.covariance is None:
            return float(np.log(self.widths).sum())
        return float(np.log(self.widths).sum() + np.linalg.slogdet(self._unit)[1] / 2)

    @property
    def _unit(self) -> np.ndarray:
        """Σ in units of the widths."""
        assert self.covariance is not None
        return self.covariance / np.outer(self.widths, self.widths)

    @property
    def condition(self) -> float:
        """The condition number of Σ in units of the widths: how much there is to gain over the widths alone."""
        if self.covariance is None:
            return 1.0
        values = np.linalg.eigvalsh(self._unit)
        return float(values[-1] / max(values[0], 1e-12))


def measure(
    points: Float[np.ndarray, "walkers points size"], gradients: Float[np.ndarray, "walkers points size"]
) -> Shape | None:
    """The shape of a basin at temperature 1 from points of walkers in it and the gradients there.

    On a Gaussian ∇U = Σ⁻¹(x − μ), so that whatever the points are, even if they have not yet crossed it,

        Σ = C # G⁻¹,    μ = x̄ − Σ ḡ,

    with C and G the covariances of points and gradients, and A # B = A^½ (A^−½ B A^−½)^½ A^½ the geometric mean
    (Seyboldt 2024). For every coordinate alone this is σ² = √(Var x / Var ∇U). Covariances are taken around the mean
    of each walker, so that walkers in other basins do no harm. None if a coordinate did not move.
    """
    points, gradients = np.asarray(points, float), np.asarray(gradients, float)
    size, mean, slope = points.shape[-1], points.mean(axis=(0, 1)), gradients.mean(axis=(0, 1))
    few = points.shape[1] < 3  # points of a walker
    x, g = (leaf - leaf.mean(axis=(0, 1) if few else 1, keepdims=True) for leaf in (points, gradients))
    freedom = x.shape[0] * x.shape[1] - (1 if few else len(x))
    x, g = x.reshape(-1, size), g.reshape(-1, size)
    fine = np.isfinite(x).all() and np.isfinite(g).all() and freedom >= 4
    variances = np.mean(x**2, axis=0), np.mean(g**2, axis=0)
    if not fine or min(np.min(variance) for variance in variances) <= 0:
        return None
    widths = (variances[0] / variances[1]) ** 0.25
    if size > MOST_DENSE or freedom < 2 * size:
        return Shape(mean - widths**2 * slope, widths, None)
    x, g = x / widths, g * widths
    unit = _geometric_mean(_floored(x.T @ x / freedom), np.linalg.inv(_floored(g.T @ g / freedom)))
    covariance = unit * np.outer(widths, widths)
    return Shape(mean - covariance @ slope, widths, covariance)


def _floored(matrix: np.ndarray) -> np.ndarray:
    return matrix + FLOOR * np.trace(matrix) / len(matrix) * np.eye(len(matrix))


def _geometric_mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    root, inverse = _power(a, 0.5), _power(a, -0.5)
    mean = root @ _power(inverse @ b @ inverse, 0.5) @ root
    return (mean + mean.T) / 2


def _power(matrix: np.ndarray, power: float) -> np.ndarray:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, 1e-15 * values[-1]) ** power) @ vectors.T
