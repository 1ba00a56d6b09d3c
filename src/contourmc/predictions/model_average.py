"""Model averages on a fixed test set: what all draws predict together, and how well single ones do.

With weights w_k of the draws x_k, the prediction of a chain is the mixture Σ_k w_k p(y|x_k) / Σ_k w_k. Chains that each
learnt their own θ count equally; where θ was fixed and the same for all, each counts by the sum of its weights. The
average is made during the run (`sample(..., average=...)`), or from stored draws (`average.over(run)`).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc._core.checks import require, require_count, require_finite, require_number
from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.draws.estimates import normalise
from contourmc.predictions.average import Average, Weights, add_weight, no_weights
from contourmc.predictions.prediction import Points, Prediction


class Sums(NamedTuple):
    """weights: of the draws so far.  means: running weighted means of predictions.  points: single draws."""

    weights: Weights
    means: Any
    points: Points


@dataclass(frozen=True, eq=False)
class ModelAverage(Average, arrays=("inputs", "targets")):
    """The weighted average of a model's predictions on a test set.

    predict: a function from the parameters and the inputs to predictions, such as the `predict` of a likelihood;
        for a posterior with a state, from the parameters, the state and the inputs.
    inputs, targets: the test set.
    tempering: the power of the weights, w^tempering: 1 as they are, 0 all equal. At a very large ζ only a few draws
        have any weight, as `effective_models` shows; a smaller power trades variance for bias.
    chunk: how many inputs are predicted at a time, to save memory; None: all at once. Each prediction must depend on
        its own input only, as with batch norm that uses the statistics of the training data.
    """

    result: ClassVar[type[Prediction]]  # what `finish` gives
    functions: ClassVar[tuple[str, ...]] = ("predict",)

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
        return Sums(no_weights(), self.no_means(), Points(worst, worst, worst, worst))

    def add(self, sums: Sums, info: Info, position: Position, state: Any) -> Sums:
        arguments = (position,) if state is None else (position, state)
        predicted = in_chunks(partial(self.predict, *arguments), self.inputs, self.chunk)
        weights, share = add_weight(sums.weights, self.tempering * info.log_weight)
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
        """The means with one more prediction, and the error and NLL of that prediction."""

    def finish(self, sums: Sums, comparable_weights: bool = False) -> Any:
        numbers = jax.tree.map(lambda leaf: np.asarray(leaf, float), sums)
        with np.errstate(divide="ignore"):
            effective = 1 / numbers.weights.concentration
        models = int(numbers.weights.draws[0])
        require(models > 0, "draws", 0, "no draw was kept: the run ended during burn-in")
        total = numbers.weights.log_total
        shares = normalise(total if comparable_weights else np.zeros_like(total))
        return self.result(numbers.means, np.asarray(self.targets), effective, models, numbers.points, shares)


def in_chunks(function: Callable[[Any], Any], inputs: Any, chunk: int | None) -> Any:
    """Apply a function of a batch of inputs to all of them, `chunk` at a time, in a loop; None: all at once."""
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


def updated_mean(mean: Array, value: Array, share: Float[Array, ""]) -> Array:
    """A running weighted mean with one more value, whose weight is `share` of the total."""
    return mean + share * (value - mean)


def updated_log_mean(log_mean: Array, log_value: Array, share: Float[Array, ""]) -> Array:
    """The logarithm of a running weighted mean with one more value."""
    return jnp.logaddexp(log_mean + jnp.log1p(-share), log_value + jnp.log(share))
