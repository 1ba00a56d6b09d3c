"""What a model average predicts on a test set, and what it is made of."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Array, Float

from contourmc._core.checks import require
from contourmc.draws.exhibits.chart import Chart
from contourmc.draws.exhibits.table import Table
from contourmc.draws.stored import Stored
from contourmc.predictions.tempering import share_that_counts, warn_tempered

WORDS = {  # figures as a report names them
    "accuracy": "accuracy",
    "nll": "negative log likelihood",
    "ece": "expected calibration error",
    "rmse": "root mean square error",
    "best_accuracy": "accuracy of the best draw",
    "best_rmse": "root mean square error of the best draw",
}
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


@dataclass(frozen=True, repr=False)
class Prediction(Stored):
    """What a model average predicts on a test set; arrays have a leading chain axis.

    means: weighted means over draws, by name.
    truth: the values to be predicted; None for an average without targets.
    effective_models: for each chain, how many equally weighted draws its average is worth, (Σ w)² / Σ w².
    models: the number of draws of a chain.
    points: errors of single draws.
    shares: how much each chain counts; they sum to 1.
    tempering: the power of the weights that was used.
    asked: whether the user gave that power, or the share of the models that must count.
    """

    means: dict[str, np.ndarray]
    truth: np.ndarray | None
    effective_models: Float[np.ndarray, " chains"]
    models: int
    points: Points
    shares: Float[np.ndarray, " chains"]
    tempering: float = 1.0
    asked: bool = True

    def chain(self: Kind, index: int) -> Kind:
        """The prediction of one chain alone."""
        one = slice(index, index + 1)
        means = {name: leaf[one] for name, leaf in self.means.items()}
        points = Points(*(leaf[one] for leaf in self.points))
        worth = self.effective_models[one]
        return replace(self, means=means, effective_models=worth, points=points, shares=np.ones(1))

    @property
    def known_truth(self) -> np.ndarray:
        """The values to be predicted; raises if they are not known."""
        remedy = "how good predictions are can be said with the targets of the inputs: give them to the average too"
        require(self.truth is not None, "targets", None, remedy)
        assert self.truth is not None
        return self.truth

    @property
    def effective_share(self) -> float:
        """The share of the models of all chains that count, (Σ w)² / Σ w² by their number."""
        return float(share_that_counts(1 / self.effective_models, self.shares, self.models))

    def warn_if_tempered(self) -> None:
        """Warn if the weights were tempered without being asked for."""
        if not self.asked and self.tempering < 1:
            warn_tempered(self.tempering, self.models * len(self.shares), stacklevel=4)

    @property
    def complaint(self) -> str:
        """What is wrong with what the models predicted; empty if nothing is."""
        return ""

    def over_chains(self, values: np.ndarray) -> np.ndarray:
        """The mean of something that each chain has, by their shares."""
        return np.tensordot(self.shares, values, axes=1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        means = {f"mean.{name}": values for name, values in self.means.items()}
        points = {f"point.{name}": values for name, values in self.points._asdict().items()}
        counted = dict(effective_models=self.effective_models, models=np.asarray(self.models), shares=self.shares)
        counted |= dict(tempering=np.array([self.tempering]), asked=np.array([self.asked]))
        return means | points | counted | ({} if self.truth is None else {"truth": self.truth})

    @classmethod
    def from_arrays(cls: type[Kind], arrays: dict[str, np.ndarray]) -> Kind:
        return cls(
            means={name[len("mean.") :]: values for name, values in arrays.items() if name.startswith("mean.")},
            truth=arrays.get("truth"),
            effective_models=arrays["effective_models"],
            models=int(arrays["models"]),
            points=Points(*(arrays[f"point.{name}"] for name in Points._fields)),
            shares=arrays["shares"],
            tempering=float(arrays.get("tempering", np.ones(1))[0]),  # files of earlier versions do not say
            asked=bool(arrays.get("asked", np.ones(1))[0]),
        )

    def figures(self) -> dict[str, float]:
        """How good the average is, by name; nothing without targets."""
        return {}

    def exhibits(self) -> list[Table | Chart]:
        """The figures, and what the average is made of, as a table."""
        figures = {WORDS.get(name, name): value for name, value in self.figures().items()}
        rows: list[tuple[str, int | float]] = [*figures.items(), ("models of a chain", self.models)]
        rows.append(("effective models of the worst chain", float(self.effective_models.min())))
        rows.append(("power of the weights", self.tempering))
        note = "The best draw is chosen on the test set, and so is too optimistic." if figures else ""
        return [Table("predictions", ("figure", "value"), rows, note)]

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} {value:.4g}" for name, value in self.figures().items())
        listed = listed or f"{next(iter(self.means.values())).shape[1]} inputs without targets"
        worth = self.effective_models.min()
        power = "" if self.tempering == 1 else f" (weights to the power of {self.tempering:.2g})"
        models = f"{self.models} models a chain, worth at least {worth:.1f} equally weighted ones{power}"
        return f"{type(self).__name__}({listed}; {models})"


def warn_about(results: Any, settings: dict[str, Any]) -> None:
    """Warn if something is wrong with an average, or with one in a list; and if its weights were tempered without being
    asked for.

    settings: those of the run. One with a learning rate chooses the weights by itself, and nobody has to be warned.
    """
    for result in results if isinstance(results, list) else [results]:
        if isinstance(result, Prediction):
            if result.complaint:
                warnings.warn(result.complaint, stacklevel=3)
            if "learning_rate" not in settings:
                result.warn_if_tempered()
