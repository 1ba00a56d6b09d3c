"""Ready-made likelihoods on data (x, y), and the predictions that belong to them.

Each takes the model as a function `apply(params, x)` of a batch of inputs. A `Posterior` calls the likelihood, and a
model average its `predict`. For anything else, write your own function.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc._core.checks import require, require_count, require_number

Apply = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class GaussianLikelihood:
    """y ~ N(apply(params, x), noise²), with the noise known.

    apply: gives a mean for each input, of the shape of y.
    noise: the standard deviation of y about it.
    """

    apply: Apply
    noise: float = 1.0

    def __post_init__(self):
        require_number("noise", self.noise, "a standard deviation must be above 0", positive=True)

    def __call__(self, params: Any, batch: tuple[Array, Array]) -> Float[Array, " n"]:
        inputs, targets = batch
        return _normal(targets, *self.predict(params, inputs))

    def predict(self, params: Any, inputs: Any) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """The mean and variance of y for each input."""
        mean = _column(self.apply(params, inputs))
        return mean, jnp.full_like(mean, self.noise**2)

    def check_data(self, data: Any) -> None:
        """Raise unless the data are (x, y)."""
        check_pair(data)


@dataclass(frozen=True)
class HeteroscedasticLikelihood:
    """y ~ N(μ, e^s), with (μ, s) = apply(params, x): noise that depends on the input, and is learnt.

    apply: gives an array of shape (n, 2) for n inputs: a mean and a log variance each.
    """

    apply: Apply

    def __call__(self, params: Any, batch: tuple[Array, Array]) -> Float[Array, " n"]:
        inputs, targets = batch
        return _normal(targets, *self.predict(params, inputs))

    def predict(self, params: Any, inputs: Any) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The mean and variance of y for each input."""
        outputs = self.apply(params, inputs)
        fine = outputs.ndim == 2 and outputs.shape[1] == 2
        require(fine, "apply", f"outputs of shape {outputs.shape}", "give a mean and a log variance for each input")
        return outputs[:, 0], jnp.exp(outputs[:, 1])

    def check_data(self, data: Any) -> None:
        """Raise unless the data are (x, y)."""
        check_pair(data)


@dataclass(frozen=True)
class CategoricalLikelihood:
    """p(y = c) ∝ e^{logit_c}, with the logits = apply(params, x).

    apply: gives an array of shape (n, classes) for n inputs.
    classes: how many there are; labels are 0 … classes − 1.
    """

    apply: Apply
    classes: int

    def __post_init__(self):
        require_count("classes", self.classes, 2, "there must be at least 2 classes")

    def __call__(self, params: Any, batch: tuple[Array, Array]) -> Float[Array, " n"]:
        inputs, labels = batch
        log_probabilities = jax.nn.log_softmax(self.predict(params, inputs))
        return jnp.take_along_axis(log_probabilities, labels[:, None].astype(jnp.int32), axis=1)[:, 0]

    def predict(self, params: Any, inputs: Any) -> Float[Array, "n classes"]:
        """The logits of the classes for each input."""
        logits = self.apply(params, inputs)
        fine = logits.ndim == 2 and logits.shape[1] == self.classes
        remedy = f"give one logit for each of the {self.classes} classes"
        require(fine, "apply", f"outputs of shape {logits.shape}", remedy)
        return logits

    def check_data(self, data: Any) -> None:
        """Raise unless the data are (x, y) with labels in range."""
        check_pair(data)
        check_labels("data[1]", data[1], self.classes)


def check_pair(data: Any) -> None:
    """Raise unless the data are (x, y)."""
    pair = isinstance(data, (tuple, list)) and len(data) == 2
    require(pair, "data", type(data).__name__, "give a pair of inputs and targets, (x, y)")


def check_labels(argument: str, labels: Any, classes: int) -> None:
    """Raise unless the labels are a vector of whole numbers 0 … classes − 1."""
    labels = np.asarray(labels)
    whole = labels.ndim == 1 and np.issubdtype(labels.dtype, np.integer)
    remedy = f"labels are a vector of whole numbers 0 … {classes - 1}"
    require(whole, argument, f"an array of {labels.dtype} of shape {labels.shape}", remedy)
    wrong = labels[(labels < 0) | (labels >= classes)]
    require(wrong.size == 0, argument, wrong[:1].tolist(), f"{remedy}, but {wrong.size} are not")


def _normal(targets: Array, mean: Array, variance: Array) -> Float[Array, " n"]:
    """The log density of N(mean, variance) at the targets."""
    targets = _column(targets)
    remedy = f"give one mean for each target; there are {targets.shape[0]} targets"
    require(mean.shape == targets.shape, "apply", f"outputs of shape {mean.shape}", remedy)
    return -0.5 * ((targets - mean) ** 2 / variance + jnp.log(variance) + math.log(2 * math.pi))


def _column(values: Array) -> Float[Array, "..."]:
    """A vector, from a vector or a matrix with one column; anything else as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
