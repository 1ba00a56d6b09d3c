"""Models of modelling languages as targets: their energy, how their users see positions, and where chains can start."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Array, Float

from contourmc._core.pytrees import Position
from contourmc.targets.energies import ExactEnergy
from contourmc.targets.view import View


class Model(View):
    """What a door to a modelling language knows of a model; positions are dictionaries by the names of variables."""

    @abstractmethod
    def energy(self, position: Position) -> Float[Array, ""]:
        """Minus the log density of a sampled position, as JAX can trace it."""

    @abstractmethod
    def starts(self, keys: Array) -> Position:
        """A sampled position for each key, stacked, from the model's prior."""


@dataclass(frozen=True)
class ModelEnergy(ExactEnergy):
    """The energy of a model.

    model: without which the energy, as it was traced, can be evaluated.
    """

    functions: ClassVar[tuple[str, ...]] = ("energy", "model")
    model: Model

    @property
    def view(self) -> View:
        return self.model

    def starts(self, keys: Array) -> Position:
        return self.model.starts(keys)
