"""Models with subsampled plates: posteriors on mini-batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from contourmc._core.pytrees import Position
from contourmc.numpyro.model import NumPyroModel
from contourmc.targets.base import Target
from contourmc.targets.view import View


@dataclass(frozen=True)
class SubsampledEnergy(Target):
    """−log density of a model whose plates draw a subsample with a random key; NumPyro scales up its likelihood.

    energy: from a position and a key.
    size: that of the largest subsampled plate.
    """

    functions: ClassVar[tuple[str, ...]] = ("energy", "model")
    energy: Callable[[Any, PRNGKeyArray], Array]
    model: NumPyroModel
    size: int

    @property
    def observations(self) -> int:
        return self.size

    @property
    def view(self) -> View:
        return self.model

    def starts(self, keys: Array) -> Position:
        return self.model.starts(keys)

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Key[Array, " steps"]:
        return jax.vmap(jax.random.fold_in, (None, 0))(key, steps)

    def evaluate(self, inputs: PRNGKeyArray, position: Position) -> tuple[Float[Array, ""], Position]:
        return jax.value_and_grad(self.energy)(position, inputs)
