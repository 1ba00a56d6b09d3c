"""Rastrigin's function as an energy, at a temperature where its cells are modes."""

from dataclasses import KW_ONLY, dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc.problems.base import Problem, Truth
from contourmc.problems.quadrature import draw_from_grid, log_integral, midpoints, moments, normalise

REACH = 6.5  # beyond it the density of a coordinate is below e⁻⁴⁰


@dataclass(frozen=True)
class Rastrigin(Problem):
    """U(x) = Σ_i x_i² + 4·(1 − cos 2πx_i), in two dimensions: a mode near every pair of whole numbers.

    The barriers are 8.2 out of the centre and 6 to 7 on the way back. The 25 cells of the central block hold
    0.9997 of the mass. Label: 5·a + b for the cell (a − 2, b − 2) of the block, 25 everywhere else. Truth:
    quadrature of one coordinate; the two are independent and alike.

    >>> problem = contourmc.problems.Rastrigin()
    >>> print(problem.energy(jnp.zeros(2)), problem.mode(np.array([0.1, -0.1])))
    0.0 12
    """

    _: KW_ONLY
    name: str = "rastrigin"

    def energy(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        """U(x), as above."""
        return jnp.sum(x**2 + 4 * (1 - jnp.cos(2 * jnp.pi * x)))

    @property
    def start(self) -> Float[np.ndarray, " 2"]:
        """The mode next to the central one in both coordinates."""
        return np.array([0.987, -0.987])

    def mode(self, x: Float[np.ndarray, "*batch 2"]) -> Int[np.ndarray, "*batch"]:
        """The cell of the nearest whole numbers."""
        nearest = np.rint(x)
        block = np.clip(nearest, -2, 2).astype(int) + 2
        inside = np.all(np.abs(nearest) <= 2, axis=-1)
        return np.where(inside, 5 * block[..., 0] + block[..., 1], 25)

    def draw(self, count: int, seed: int = 0) -> Float[np.ndarray, "count 2"]:
        """Each coordinate from cells 0.001 wide."""
        random = np.random.default_rng(seed)
        line, probability = self._line()
        columns = [draw_from_grid((line,), probability, count, random) for _ in range(2)]
        return np.concatenate(columns, axis=-1)

    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        line = midpoints(-REACH, REACH, 13_000)
        return line, normalise(self._along(line))

    @staticmethod
    def _along(line: np.ndarray) -> np.ndarray:
        """The energy of one coordinate."""
        return line**2 + 4 * (1 - np.cos(2 * np.pi * line))

    def _find_log_normaliser(self, temperature: float) -> float:
        """Twice that of one coordinate."""
        reach = REACH * max(1.0, temperature**0.5)
        line = midpoints(-reach, reach, int(2000 * reach))
        return 2 * log_integral(self._along(line) / temperature, line[1] - line[0])

    def _find_truth(self) -> Truth:
        line, probability = self._line()
        cells = np.rint(line).astype(int) + 2
        inside = (cells >= 0) & (cells < 5)
        single = np.bincount(cells[inside], probability[inside], minlength=5)
        block = np.outer(single, single).ravel()
        mean, variance = moments(line[:, None], probability)
        return Truth(np.append(block, 1 - block.sum()), np.repeat(mean, 2), np.repeat(variance, 2))
