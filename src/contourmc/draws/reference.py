"""A reference that a user gives for the evidence: a distribution with draws and a density, as NumPyro and TFP have."""

import inspect
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from contourmc._core.checks import require
from contourmc.draws.bridging.integral import DensityDraws, integrate_by_halves
from contourmc.draws.vectors import Vectors
from contourmc.draws.weighted import apply

TOLERANCE = 0.05  # of the logarithm of its integral, which must be 0
CHECKED = 10_000  # draws by which the integral is found
ROWS = 10  # as many chains as the draws are taken for


class GivenReference:
    """A distribution over positions, as one over vectors.

    distribution: has `sample(key, sample_shape)`, or `sample(sample_shape, seed=key)`; and `log_prob(position)`.
    """

    def __init__(self, distribution: Any, vectors: Vectors):
        for name in ("sample", "log_prob"):
            remedy = "give a distribution with sample(key, sample_shape) and log_prob(position)"
            require(callable(getattr(distribution, name, None)), "reference", distribution, remedy)
        self.distribution, self.vectors = distribution, vectors

    def draw(self, count: int, random: np.random.Generator) -> Float[np.ndarray, "count size"]:
        key, sample = jax.random.key(int(random.integers(2**31))), self.distribution.sample
        seeded = "seed" in inspect.signature(sample).parameters
        drawn = sample(sample_shape=(count,), seed=key) if seeded else sample(key, (count,))
        layout = self.vectors.layout
        shapes = [(count, *shape) for shape in layout.shapes]
        alike = jax.tree.structure(drawn) == layout.structure and list(map(np.shape, jax.tree.leaves(drawn))) == shapes
        expected = jax.tree.unflatten(layout.structure, [jax.ShapeDtypeStruct(s, np.float32) for s in shapes])
        remedy = f"{count} of its draws must have the shapes {jax.tree.map(np.shape, expected)}, like positions"
        require(alike, "reference", f"draws of shapes {jax.tree.map(np.shape, drawn)}", remedy)
        return np.asarray(self.vectors.of(drawn, 1), float)

    def log_density(self, x: Float[np.ndarray, "count size"]) -> Float[np.ndarray, " count"]:
        positions = jax.tree.map(lambda leaf: leaf[None], self.vectors.positions(x))
        values = apply(self.distribution.log_prob, positions)
        shape = np.shape(values)
        remedy = "log_prob must give one number for a position; of independent coordinates their sum, .to_event(1)"
        require(shape == (1, len(x)), "reference", f"log_prob of shape {shape[2:]}", remedy)
        return np.nan_to_num(np.asarray(values[0], float), nan=-np.inf, neginf=-np.inf, posinf=np.inf)

    def require_normalised(self, random: np.random.Generator) -> None:
        """Raise unless its density integrates to 1, by a bridge to a mixture fitted to its own draws."""

        def evaluate(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            rounded = np.asarray(self.vectors.of(self.vectors.positions(x), 1), float)
            return rounded, self.log_density(rounded)

        x = self.draw(CHECKED, random)
        shape = ROWS, CHECKED // ROWS
        found = integrate_by_halves(
            DensityDraws(
                x.reshape(*shape, -1), self.log_density(x).reshape(shape), np.full(shape, -np.log(CHECKED)),
                np.zeros(shape, int), np.ones(ROWS, bool), evaluate,
            ),
            random,
        )  # fmt: skip
        fine = abs(found.log_value) <= max(TOLERANCE, 5 * found.error)
        remedy = "its draws are not those of its log_prob, or that is not normalised"
        text = f"a density whose integral is e^({found.log_value:.3f} ± {found.error:.3f})"
        require(fine, "reference", text, remedy)
