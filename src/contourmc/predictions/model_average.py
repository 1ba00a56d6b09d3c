"""Model averages on a fixed test set: what all draws predict together, and how well single ones do.

With weights w_k of the draws x_k, the prediction of a chain is the mixture Σ_k w_k p(y|x_k) / Σ_k w_k. Chains that each
learnt their own θ count equally; where θ was fixed and the same for all, each counts by the sum of its weights. The
average is made during the run (`sample(..., average=...)`), or from stored draws (`average.over(run)`).

Where weights differ by orders of magnitude, as at a large ζ, that mixture is one model. So the weights are tempered,
just so far that a stated share of the models counts: half of them, unless the user says otherwise (tempering.py).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc._core.checks import require, require_count, require_finite
from contourmc._core.info import Info
from contourmc._core.pytrees import Position, as_array
from contourmc.draws.weighted import WeightedDraws
from contourmc.predictions.average import Average, Weights, add_weight, no_weights
from contourmc.predictions.prediction import Points, Prediction, warn_about
from contourmc.predictions.tempering import POWERS, chain_shares, largest_power, required_share, share_that_counts


class Sums(NamedTuple):
    """weights: of the draws so far.  means: running weighted means of predictions.  points: single draws.

    Unless the power of the weights is given, weights and means have a leading axis of `POWERS`.
    """

    weights: Weights
    means: Any
    points: Points


@dataclass(frozen=True, eq=False)
class ModelAverage(Average, arrays=("inputs", "targets")):
    """The weighted average of a model's predictions on a test set.

    predict: a function from the parameters and the inputs to predictions, such as the `predict` of a likelihood;
        for a posterior with a state, from the parameters, the state and the inputs.
    inputs, targets: the test set. Without targets, what the models predict is averaged, but how good that is, such as
        the accuracy, cannot be asked for.
    tempering: the power of the weights, w^tempering: 1 as they are, 0 all equal. A smaller power trades variance for
        bias.
    effective: the share of the models that must count, (Σ w)² / Σ w² ≥ effective · models, in place of `tempering`: the
        power is the largest of 1, ½, ¼ … at which they do, and 0 if there is none. 0.5 unless one of the two is given;
        then a power below 1 comes with a warning, but for runs with a learning rate. It takes the memory of 29 means,
        whatever the number of models.
    chunk: how many inputs are predicted at a time, to save memory; None: all at once. Each prediction must depend on
        its own input only, as with batch norm that uses the statistics of the training data.
    """

    result: ClassVar[type[Prediction]]  # what `finish` gives
    functions: ClassVar[tuple[str, ...]] = ("predict",)

    predict: Callable[..., Any]
    inputs: Any
    targets: Any = None
    tempering: float | None = None
    chunk: int | None = None
    effective: float | None = field(default=None, kw_only=True)

    def __post_init__(self):
        require(callable(self.predict), "predict", self.predict, "give a function of parameters and inputs")
        required_share(self.tempering, self.effective)
        if self.chunk is not None:
            chunk = require_count("chunk", self.chunk, 1, "predict at least 1 input at a time, or None for all at once")
            object.__setattr__(self, "chunk", chunk)
        object.__setattr__(self, "inputs", jax.tree.map(as_array, self.inputs))
        leaves = jax.tree.leaves(self.inputs)
        require(bool(leaves) and all(leaf.ndim > 0 for leaf in leaves), "inputs", self.inputs, "give a batch of inputs")
        size, counted = self.size, "inputs in the first of the arrays"
        if self.targets is not None:
            object.__setattr__(self, "targets", as_array(self.targets))
            require_finite("targets", self.targets)
            size, counted = len(self.targets), "targets"
        for leaf in leaves:
            require_finite("inputs", leaf)
            remedy = f"give one input for each of the {size} {counted}"
            require(leaf.shape[0] == size, "inputs", f"an array of shape {leaf.shape}", remedy)

    @property
    def size(self) -> int:
        """The number of inputs."""
        return jax.tree.leaves(self.inputs)[0].shape[0]

    def over(self, samples: WeightedDraws, inputs: Any = None, targets: Any = None) -> Any:
        """The result over the stored draws of a finished run: the same as if the average had been given to the run.

        inputs: others than those of the average, with or without their targets.
        """
        remedy = "they belong to new inputs: give these too"
        require(inputs is not None or targets is None, "targets", "an array without inputs", remedy)
        average = self if inputs is None else replace(self, inputs=inputs, targets=targets)
        result = Average.over(average, samples)
        warn_about(result, samples.settings)
        return result

    def of_one_chain(self, sums: Sums) -> Any:
        """The result from the sums of a single chain, in a loop of your own, such as one with Optax.

        The sums begin as `average.init()`, and `average.add(sums, info, position, None)` adds a draw; in place of None
        the state of a model that has one.

        >>> average = cm.RegressionAverage(cm.GaussianLikelihood(line, noise=0.1).predict, x, y)
        >>> number, index = jnp.array(0.0), jnp.array(0)
        >>> info = cm.Info(energy=number, bin=index, multiplier=number, log_weight=number)
        >>> average.of_one_chain(average.add(average.init(), info, jnp.array(2.0), None)).models
        1
        """
        result = self.finish(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], sums))
        warn_about(result, {})
        return result

    def init(self) -> Sums:
        worst = jnp.asarray(jnp.nan if self.targets is None else jnp.inf, jnp.result_type(float))
        sums = Sums(no_weights(), self.no_means(), Points(worst, worst, worst, worst))
        if self.tempering is not None:
            return sums
        weights, means = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (len(POWERS), *leaf.shape)), (sums.weights, sums.means)
        )
        return Sums(weights, means, sums.points)

    def predicted(self, position: Position, state: Any) -> Any:
        """What the model at a position predicts for the inputs."""
        arguments = (position,) if state is None else (position, state)
        return in_chunks(partial(self.predict, *arguments), self.inputs, self.chunk)

    def add(self, sums: Sums, info: Info, position: Position, state: Any) -> Sums:
        predicted = self.predicted(position, state)

        def add_at(power: Any, weights: Weights, means: dict[str, Array]) -> tuple[Weights, dict[str, Array], Any, Any]:
            weights, share = add_weight(weights, power * info.log_weight)
            return weights, *self.add_means(means, share, predicted)

        if self.tempering is not None:
            weights, means, error, nll = add_at(self.tempering, sums.weights, sums.means)
        else:
            at_each = jax.vmap(add_at, out_axes=(0, 0, None, None))
            weights, means, error, nll = at_each(jnp.asarray(POWERS), sums.weights, sums.means)
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
        """The means with one more prediction, and the error and NLL of that prediction; NaN without targets."""

    def finish(self, sums: Sums, comparable_weights: bool = False) -> Any:
        weights, means = sums.weights, sums.means
        models = int(np.ravel(weights.draws)[0])
        require(models > 0, "draws", 0, "no draw was kept: the run ended during burn-in")
        required = required_share(self.tempering, self.effective)
        power = 1.0 if self.tempering is None else self.tempering
        if required is not None:
            shares = chain_shares(np.asarray(weights.log_total), comparable_weights)
            counting = share_that_counts(np.asarray(weights.concentration, float), shares, models)
            index = largest_power(counting, required)
            power, (weights, means) = POWERS[index], jax.tree.map(lambda leaf: leaf[:, index], (weights, means))
        means, points = jax.tree.map(lambda leaf: np.asarray(leaf, float), (means, sums.points))
        return self.result(
            means=means,
            truth=None if self.targets is None else np.asarray(self.targets),
            effective_models=1 / np.asarray(weights.concentration, float),
            models=models,
            points=points,
            shares=chain_shares(np.asarray(weights.log_total), comparable_weights),
            tempering=power,
            asked=self.tempering is not None or self.effective is not None,
        )


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
