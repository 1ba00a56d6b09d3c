"""What a model average predicts on a test set, and what it is made of."""

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Array, Float

from contourmc.draws.stored import Stored

Kind = TypeVar("Kind", bound="Prediction")


class Points(NamedTuple):
    """Errors (RMSE, or the share of wrong classes) and negative log likelihoods of single draws.

    best_error: the smallest error of all draws, and best_nll the NLL of that draw: the paper's best point
        estimate. It is chosen on the test set, and so is too optimistic.
    last_error, last_nll: of the last draw.
    """

    best_error: Float[Array | np.ndarray, "..."]
    best_nll: Float[Array | np.ndarray, "..."]
    last_error: Float[Array | np.ndarray, "..."]
    last_nll: Float[Array | np.ndarray, "..."]


@dataclass(frozen=True)
class Prediction(Stored):
    """What a model average predicts on a test set; arrays have a leading chain axis.

    means: weighted means over draws, by name.
    truth: the values to be predicted.
    effective_models: for each chain, how many equally weighted draws its average is worth, (Σ w)² / Σ w².
    models: the number of draws of a chain.
    points: errors of single draws.
    shares: how much each chain counts; they sum to 1.
    """

    means: dict[str, np.ndarray]
    truth: np.ndarray
    effective_models: Float[np.ndarray, " chains"]
    models: int
    points: Points
    shares: Float[np.ndarray, " chains"]

    def chain(self: Kind, index: int) -> Kind:
        """The prediction of one chain alone."""
        one = slice(index, index + 1)
        means = {name: leaf[one] for name, leaf in self.means.items()}
        points = Points(*(leaf[one] for leaf in self.points))
        worth = self.effective_models[one]
        return replace(self, means=means, effective_models=worth, points=points, shares=np.ones(1))

    def over_chains(self, values: np.ndarray) -> np.ndarray:
        """The mean of something that each chain has, by their shares."""
        return np.tensordot(self.shares, values, axes=1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        means = {f"mean.{name}": values for name, values in self.means.items()}
        points = {f"point.{name}": values for name, values in self.points._asdict().items()}
        counted = dict(effective_models=self.effective_models, models=np.asarray(self.models), shares=self.shares)
        return means | points | counted | {"truth": self.truth}

    @classmethod
    def from_arrays(cls: type[Kind], arrays: dict[str, np.ndarray]) -> Kind:
        return cls(
            means={name[len("mean.") :]: values for name, values in arrays.items() if name.startswith("mean.")},
            truth=arrays["truth"],
            effective_models=arrays["effective_models"],
            models=int(arrays["models"]),
            points=Points(*(arrays[f"point.{name}"] for name in Points._fields)),
            shares=arrays["shares"],
        )

    def _described(self, **figures: float) -> str:
        listed = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        worth = self.effective_models.min()
        return f"{listed}; {self.models} models a chain, worth at least {worth:.1f} equally weighted ones"
