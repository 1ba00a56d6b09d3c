"""The paper's two-dimensional target with nine modes."""

from dataclasses import KW_ONLY, dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc.problems.base import Problem, Truth
from contourmc.problems.quadrature import draw_from_grid, log_integral, moments, normalise


@dataclass(frozen=True)
class NineModes(Problem):
    """The paper's two-dimensional target: U(x) = Σ_i (x_i² − 10·cos(1.2π x_i))/3, confined by a regulariser.

    The regulariser of the supplement, (‖x‖² − 7)·1[‖x‖² > 7], leaves nine modes on a 3 × 3 grid, at 0 and
    about ±1.63 in each coordinate; the centre is the most probable, the corners the least. Barriers are 6 to 7.
    Label: the cell. Truth: quadrature.

    >>> problem = contourmc.problems.NineModes()
    >>> print(problem.masses.argmax(), problem.mode(np.array([0.0, 0.0])))
    4 4
    """

    _: KW_ONLY
    name: str = "nine-modes"

    def energy(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        """U(x) with the regulariser."""
        square = jnp.sum(x**2)
        waves = jnp.sum(x**2 - 10 * jnp.cos(1.2 * jnp.pi * x)) / 3
        return waves + jnp.maximum(square - 7, 0.0)

    @property
    def start(self) -> Float[np.ndarray, " 2"]:
        """A corner."""
        return np.array([-1.63, -1.63])

    @staticmethod
    def cell(x: np.ndarray) -> np.ndarray:
        """The number 0 … 8 of the mode whose cell a point (last axis of length 2) lies in, row by row."""
        column = np.digitize(x, [-5 / 6, 5 / 6])  # the crests of the waves
        return np.asarray(3 * column[..., 1] + column[..., 0])

    def mode(self, x: Float[np.ndarray, "*batch 2"]) -> Int[np.ndarray, "*batch"]:
        """The cell."""
        return self.cell(x)

    def grid(self, points: int = 1001, reach: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates of a square grid (points, points, 2), and the energies there."""
        line = np.linspace(-reach, reach, points)
        x = np.stack(np.meshgrid(line, line), axis=-1)
        square = np.sum(x**2, axis=-1)
        waves = np.sum(x**2 - 10 * np.cos(1.2 * np.pi * x), axis=-1) / 3
        return x, waves + np.maximum(square - 7, 0.0)

    def draw(self, count: int, seed: int = 0) -> Float[np.ndarray, "count 2"]:
        """Draws from the cells of the grid, 0.008 wide."""
        x, energy = self.grid()
        line = x[0, :, 0]
        return draw_from_grid((line, line), normalise(energy), count, np.random.default_rng(seed))

    def _find_log_normaliser(self, temperature: float) -> float:
        reach = 6.0 * max(1.0, temperature**0.5)
        x, energy = self.grid(int(60 * reach) + 1, reach)
        return log_integral(energy / temperature, float(x[0, 1, 0] - x[0, 0, 0]) ** 2)

    def _find_truth(self) -> Truth:
        x, energy = self.grid()
        probability = normalise(energy)
        masses = np.bincount(self.cell(x).ravel(), probability.ravel(), minlength=9)
        return Truth(masses, *moments(x, probability))
