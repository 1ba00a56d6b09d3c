"""Model averages on a fixed test set: what all draws together predict, beside what single ones do.

With weights w_k of the draws x_k, the prediction of a chain is the mixture Σ_k w_k p(y|x_k) / Σ_k w_k. Chains that each
learnt a θ of their own count alike; where θ is one for all, each counts by the sum of its weights. It is summed up
while the run goes on (`sample(..., average=...)`), or over stored draws (`average.over(run)`).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc import averages
from contourmc.averages import Average, Weights
from contourmc.checks import require, require_count, require_finite, require_number
from contourmc.estimates import normalise
from contourmc.kernels.base import Info, Position

Kind = TypeVar("Kind", bound="Prediction")


class Points(NamedTuple):
    """Errors (RMSE, or the share of wrong classes) and negative log likelihoods of single draws.

    best_error: the smallest error of all draws, and best_nll the NLL of that draw: the paper's best point
        estimate. It is chosen by the test set, and so flatters.
    last_error, last_nll: of the last draw.
    """

    best_error: Float[Array | np.ndarray, "..."]
    best_nll: Float[Array | np.ndarray, "..."]
    last_error: Float[Array | np.ndarray, "..."]
    last_nll: Float[Array | np.ndarray, "..."]


class Sums(NamedTuple):
    """weights: of the draws so far.  means: running weighted means of predictions.  points: single draws."""

    weights: Weights
    means: Any
    points: Points


@dataclass(frozen=True)
class Prediction:
    """What a model average predicts on a test set; arrays have a leading chain axis.

    means: weighted means over draws, by name.
    truth: what is to be predicted.
    effective_models: for each chain, how many equally weighted draws its average is worth, (Σ w)² / Σ w².
    models: how many draws it is made of.
    points: errors of single draws.
    shares: by how much each chain counts; they sum to 1.
    """

    means: dict[str, np.ndarray]
    truth: np.ndarray
    effective_models: Float[np.ndarray, " chains"]
    models: int
    points: Points
    shares: Float[np.ndarray, " chains"]

    def chain(self: Kind, index: int) -> Kind:
        """The prediction of one chain alone."""
        rows = slice(index, index + 1)
        means = {name: leaf[rows] for name, leaf in self.means.items()}
        points = Points(*(leaf[rows] for leaf in self.points))
        worth = self.effective_models[rows]
        return replace(self, means=means, effective_models=worth, points=points, shares=np.ones(1))

    def over_chains(self, values: np.ndarray) -> np.ndarray:
        """The mean of something that each chain has, by their shares."""
        return np.tensordot(self.shares, values, axes=1)

    def _described(self, **figures: float) -> str:
        listed = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        worth = self.effective_models.min()
        return f"{listed}; {self.models} models a chain, worth {worth:.1f} equally weighted ones at the least"


@dataclass(frozen=True, eq=False)
class ModelAverage(Average, arrays=("inputs", "targets")):
    """The weighted average of a model's predictions on a test set.

    predict: a function from the parameters and the inputs to predictions, such as the `predict` of a likelihood;
        for a posterior with a state, from the parameters, the state and the inputs.
    inputs, targets: the test set.
    tempering: the power of the weights, w^tempering: 1 as they are, 0 all equal. At a very large ζ the weights leave
        a few draws alone in the average, which `effective_models` tells; a smaller power trades variance for bias.
    chunk: how many inputs are predicted at a time, to save memory; None: all at once. Each prediction must depend on
        its own input alone, as that of batch norm does with the statistics of the training data.
    """

    predict: Callable[..., Any]
    inputs: Any
    targets: Any
    tempering: float = 1.0
    chunk: int | None = None

    def __post_init__(self):
        require(callable(self.predict), "predict", self.predict, "give a function of parameters and inputs")
        remedy = "the power of the weights must be in [0, 1]"
        require_number("tempering", self.tempering, remedy, positive=False)
        require(self.tempering <= 1, "tempering", self.tempering, remedy)
        if self.chunk is not None:
            chunk = require_count("chunk", self.chunk, 1, "predict at least 1 input at a time, or None for all at once")
            object.__setattr__(self, "chunk", chunk)
        object.__setattr__(self, "inputs", jax.tree.map(jnp.asarray, self.inputs))
        object.__setattr__(self, "targets", jnp.asarray(self.targets))
        require_finite("targets", self.targets)
        for leaf in jax.tree.leaves(self.inputs):
            require_finite("inputs", leaf)
            remedy = f"give one input for each of the {len(self.targets)} targets"
            require(leaf.shape[:1] == self.targets.shape[:1], "inputs", f"an array of shape {leaf.shape}", remedy)

    def init(self) -> Sums:
        worst = jnp.asarray(jnp.inf, jnp.result_type(float))
        return Sums(averages.no_weights(), self.no_means(), Points(worst, worst, worst, worst))

    def add(self, sums: Sums, info: Info, position: Position, state: Any) -> Sums:
        arguments = (position,) if state is None else (position, state)
        predicted = in_chunks(partial(self.predict, *arguments), self.inputs, self.chunk)
        weights, share = averages.add_weight(sums.weights, self.tempering * info.log_weight)
        means, error, nll = self.add_means(sums.means, share, predicted)
        better = error < sums.points.best_error
        best_error = jnp.where(better, error, sums.points.best_error)
        points = Points(best_error, jnp.where(better, nll, sums.points.best_nll), error, nll)
        return jax.tree.map(lambda new, old: new.astype(old.dtype), Sums(weights, means, points), sums)

    @abstractmethod
    def no_means(self) -> dict[str, Array]:
        """Means over no draws."""

    @abstractmethod
    def add_means(
        self, means: dict[str, Array], share: Float[Array, ""], predicted: Any
    ) -> tuple[dict[str, Array], Float[Array, ""], Float[Array, ""]]:
        """The means with one prediction more, and its own error and NLL."""

    def _finish(self, kind: type[Any], sums: Sums, one_theta: bool) -> Any:
        numbers = jax.tree.map(lambda leaf: np.asarray(leaf, float), sums)
        with np.errstate(divide="ignore"):
            effective = 1 / numbers.weights.concentration
        models = int(numbers.weights.draws[0])
        require(models > 0, "draws", 0, "no draw was kept: the run ended during burn-in")
        total = numbers.weights.log_total
        shares = normalise(total if one_theta else np.zeros_like(total))
        return kind(numbers.means, np.asarray(self.targets), effective, models, numbers.points, shares)


def in_chunks(function: Callable[[Any], Any], inputs: Any, chunk: int | None) -> Any:
    """A function of a batch of inputs over all of them, `chunk` at a time, in a loop; None: all at once."""
    size = jax.tree.leaves(inputs)[0].shape[0]
    if chunk is None or chunk >= size:
        return function(inputs)
    whole = size - size % chunk
    pieces = jax.tree.map(lambda leaf: leaf[:whole].reshape(-1, chunk, *leaf.shape[1:]), inputs)
    results = jax.tree.map(lambda leaf: leaf.reshape(whole, *leaf.shape[2:]), jax.lax.map(function, pieces))
    if whole == size:
        return results
    rest = function(jax.tree.map(lambda leaf: leaf[whole:], inputs))
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), results, rest)


def toward(mean: Array, value: Array, share: Float[Array, ""]) -> Array:
    """A running weighted mean with one value more."""
    return mean + share * (value - mean)


def log_toward(log_mean: Array, log_value: Array, share: Float[Array, ""]) -> Array:
    """The logarithm of a running weighted mean with one value more."""
    return jnp.logaddexp(log_mean + jnp.log1p(-share), log_value + jnp.log(share))
