"""Two wells with a high barrier between them."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Float, Int

from contourmc.problems.base import Problem, Truth
from contourmc.problems.quadrature import draw_from_grid, log_integral, midpoints, moments, normalise


@dataclass(frozen=True)
class DoubleWell(Problem):
    """U(x) = B (x₀² − 1)² + t x₀ + ½ ((x₁ − c x₀)/s)²: wells at x₀ = ±1, a barrier of about B between them.

    With t = ½ log(7/3) the wells hold about 0.7 and 0.3. Label: the sign of x₀. Truth: quadrature over x₀;
    x₁ given x₀ is N(c x₀, s²).

    barrier: B.  tilt: t.  slope: c.  scale: s.

    >>> problem = contourmc.problems.DoubleWell(barrier=20.0)
    >>> print(problem.mode(np.array([[-1.0, 0.0], [1.0, 0.0]])), problem.masses.round(1))
    [0 1] [0.7 0.3]
    """

    barrier: float = 20.0
    tilt: float = 0.42365
    slope: float = 0.5
    scale: float = 0.5
    _: KW_ONLY
    name: str = "double-well"

    def energy(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        """U(x), as above."""
        return self._along(x[0]) + 0.5 * ((x[1] - self.slope * x[0]) / self.scale) ** 2

    @property
    def start(self) -> Float[np.ndarray, " 2"]:
        """The shallower well."""
        side = 1.0 if self.tilt >= 0 else -1.0
        return np.array([side, self.slope * side])

    def mode(self, x: Float[np.ndarray, "*batch 2"]) -> Int[np.ndarray, "*batch"]:
        """0 on the left, 1 on the right."""
        return np.asarray(x[..., 0] > 0, int)

    def draw(self, count: int, seed: int = 0) -> Float[np.ndarray, "count 2"]:
        """x₀ from cells 0.0004 wide, then x₁ given x₀."""
        random = np.random.default_rng(seed)
        line, probability = self._line()
        first = draw_from_grid((line,), probability, count, random)[:, 0]
        return np.stack([first, self.slope * first + self.scale * random.normal(size=count)], axis=-1)

    def _along(self, first: Any) -> Any:
        return self.barrier * (first**2 - 1) ** 2 + self.tilt * first

    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        line = midpoints(-4.0, 4.0, 20_000)
        return line, normalise(self._along(line))

    def _find_log_normaliser(self, temperature: float) -> float:
        """log ∫ e^{−U₀(x₀)/T} dx₀ + ½ log(2πs²T)."""
        reach = 4.0 * max(1.0, temperature**0.25)  # far out U grows like B·x₀⁴
        line = midpoints(-reach, reach, 20_000)
        along = log_integral(self._along(line) / temperature, line[1] - line[0])
        return along + 0.5 * float(np.log(2 * np.pi * self.scale**2 * temperature))

    def _find_truth(self) -> Truth:
        line, probability = self._line()
        mean, variance = moments(line[:, None], probability)
        masses = np.bincount(np.asarray(line > 0, int), probability, minlength=2)
        return Truth(
            masses,
            np.array([mean[0], self.slope * mean[0]]),
            np.array([variance[0], self.scale**2 + self.slope**2 * variance[0]]),
        )
