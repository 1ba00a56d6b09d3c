"""A ring with bumps along it."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc.problems.base import Problem, Truth
from contourmc.problems.quadrature import draw_from_grid, log_integral, midpoints, moments, normalise

TILT_ANGLE = 0.3  # so that no two wells are alike
CORE = 0.1  # rounds off the centre, where the angle has no gradient


@dataclass(frozen=True)
class Ring(Problem):
    """U = ½ ((ρ − R)/w)² − h·cos 6φ + t·cos(φ − 0.3), in two dimensions: six wells on a ring, of unequal depth.

    ρ = √(x² + y² + 0.01) and the cosines are taken of x/ρ and y/ρ, so that the energy is smooth at the centre.
    Barriers along the ring are about 6. Label: the sixth of the circle, 0 around φ = 0. Truth: quadrature
    on a polar grid.

    radius: R.  width: w.  height: h, half a barrier.  tilt: t.

    >>> problem = contourmc.problems.Ring(radius=4.0)
    >>> print(problem.mode(np.array([[4.0, 0.0], [-4.0, 0.0]])), len(problem.masses))
    [0 3] 6
    """

    radius: float = 4.0
    width: float = 0.3
    height: float = 3.0
    tilt: float = 0.7
    _: KW_ONLY
    name: str = "ring"

    def energy(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        """U(x), as above."""
        return self._formula(x[0], x[1], jnp.sqrt)

    @property
    def start(self) -> Float[np.ndarray, " 2"]:
        """The shallowest well, at φ = 0."""
        return np.array([self.radius, 0.0])

    def mode(self, x: Float[np.ndarray, "*batch 2"]) -> Int[np.ndarray, "*batch"]:
        """The sixth of the circle."""
        angle = np.arctan2(x[..., 1], x[..., 0])
        return np.asarray(np.rint(angle / (np.pi / 3)).astype(int) % 6)

    def draw(self, count: int, seed: int = 0) -> Float[np.ndarray, "count 2"]:
        """Draws from the cells of the polar grid, 0.006 by 0.15°."""
        radii, angles, _, energy = self._polar()
        probability = normalise(energy - np.log(radii)[:, None])
        drawn = draw_from_grid((radii, angles), probability, count, np.random.default_rng(seed))
        return drawn[:, :1] * np.stack([np.cos(drawn[:, 1]), np.sin(drawn[:, 1])], axis=-1)

    def _formula(self, first: Any, second: Any, sqrt: Any) -> Any:
        """cos 6φ = Re (c + is)⁶ = p (p² − 12 c²s²), with p = c² − s²."""
        rho = sqrt(first**2 + second**2 + CORE**2)
        cosine, sine = first / rho, second / rho
        difference, product = cosine**2 - sine**2, (cosine * sine) ** 2
        sixfold = difference * (difference**2 - 12 * product)
        tilt = cosine * float(np.cos(TILT_ANGLE)) + sine * float(np.sin(TILT_ANGLE))
        return 0.5 * ((rho - self.radius) / self.width) ** 2 - self.height * sixfold + self.tilt * tilt

    def _polar(self, temperature: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Radii, angles, the grid's points, and their energies; dx dy = r dr dφ, so that a cell counts r times."""
        reach = 10 * self.width * max(1.0, temperature**0.5)
        radii = midpoints(max(self.radius - reach, 0.0), self.radius + reach, 1000)
        angles = midpoints(-np.pi / 6, 11 * np.pi / 6, 2400)  # the sixths of the circle end between cells
        points = radii[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        energy = self._formula(points[..., 0], points[..., 1], np.sqrt)
        return radii, angles, points, energy

    def _find_log_normaliser(self, temperature: float) -> float:
        radii, angles, _, energy = self._polar(temperature)
        cell = (radii[1] - radii[0]) * (angles[1] - angles[0])
        return log_integral(energy / temperature - np.log(radii)[:, None], cell)

    def _find_truth(self) -> Truth:
        radii, _, points, energy = self._polar()
        probability = normalise(energy - np.log(radii)[:, None])
        masses = np.bincount(self.mode(points).ravel(), probability.ravel(), minlength=6)
        return Truth(masses, *moments(points, probability))
