"""Ready-made likelihoods on data (x, y), and the predictions that belong to them.

Each takes the model as a function `apply(params, x)` of a batch of inputs. A `Posterior` calls the likelihood, and a
model average its `predict`. For anything else, write your own function.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc._core.checks import require, require_count, require_number
from contourmc.targets.random_key import takes_key

Apply = Callable[..., Any]


@dataclass(frozen=True)
class ModelLikelihood(ABC):
    """The likelihood of targets y, given what a model makes of the inputs x.

    apply: the model in training, `apply(params, x)`. Of a posterior with a state, such as batch-norm statistics,
        `apply(params, state, x)`, which gives the outputs and the new state. If its last parameter is called `key`, it
        also gets a random key in every step, as for dropout: `apply(params, x, key)`, `apply(params, state, x, key)`.
    evaluate: the model when it predicts, `evaluate(params, x)` or `evaluate(params, state, x)`: by the statistics that
        the state holds, and without dropout. It gives the outputs alone. None: `apply`, for a model with neither.
    """

    apply: Apply
    evaluate: Apply | None = field(default=None, kw_only=True)

    @property
    def takes_key(self) -> bool:
        return takes_key(self.apply)

    def __call__(self, params: Any, *given: Any) -> Any:
        """The log likelihoods of a batch (x, y), and with a state the new one.

        given: the state, if there is one; the batch; and a random key, if `apply` takes one.
        """
        given, key = (given[:-1], given[-1:]) if self.takes_key else (given, ())
        *state, (inputs, targets) = given
        outputs = self.apply(params, *state, inputs, *key)
        if not state:
            return self.log_density(outputs, targets)
        pair = isinstance(outputs, tuple) and len(outputs) == 2
        remedy = "of a posterior with a state, the model gives its outputs and the new state"
        require(pair, "apply", type(outputs).__name__, remedy)
        return self.log_density(outputs[0], targets), outputs[1]

    def predict(self, params: Any, *given: Any) -> Any:
        """What the model says of y for each input, from the state, if there is one, and the inputs."""
        plain = self.evaluate is not None or (len(given) == 1 and not self.takes_key)
        remedy = "a model with a state or a random key needs another function to predict, by the statistics of its"
        require(
            plain, "evaluate", None, f"{remedy} state and without dropout: evaluate(params, x) or (params, state, x)"
        )
        return self.describe_targets((self.apply if self.evaluate is None else self.evaluate)(params, *given))

    @abstractmethod
    def log_density(self, outputs: Any, targets: Array) -> Float[Array, " n"]:
        """log p(y) of each target, from the outputs of the model."""

    @abstractmethod
    def describe_targets(self, outputs: Any) -> Any:
        """What `predict` gives, from the outputs of the model."""

    def check_data(self, data: Any) -> None:
        """Raise unless the data are (x, y)."""
        check_pair(data)


@dataclass(frozen=True)
class GaussianLikelihood(ModelLikelihood):
    """y ~ N(apply(params, x), noise²), with the noise known. `predict` gives the mean and variance for each input.

    apply: gives a mean for each input, of the shape of y; see `ModelLikelihood` for batch norm and dropout.
    noise: the standard deviation of y about it.

    >>> likelihood = cm.GaussianLikelihood(line, noise=0.5)
    >>> mean, variance = likelihood.predict(2.0, jnp.array([1.0, 3.0]))
    >>> print(mean, variance)
    [2. 6.] [0.25 0.25]
    """

    noise: float = 1.0

    def __post_init__(self):
        require_number("noise", self.noise, "a standard deviation must be above 0", positive=True)

    def log_density(self, outputs: Any, targets: Array) -> Float[Array, " n"]:
        return _normal(targets, *self.describe_targets(outputs))

    def describe_targets(self, outputs: Any) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        mean = _column(outputs)
        return mean, jnp.full_like(mean, self.noise**2)


@dataclass(frozen=True)
class HeteroscedasticLikelihood(ModelLikelihood):
    """y ~ N(μ, e^s), with (μ, s) = apply(params, x): noise that depends on the input, and is learnt.

    `predict` gives the mean and variance for each input.

    apply: gives an array of shape (n, 2) for n inputs: a mean and a log variance each; see `ModelLikelihood` for batch
        norm and dropout.

    >>> likelihood = cm.HeteroscedasticLikelihood(lambda params, x: x[:, None] * params)
    >>> mean, variance = likelihood.predict(jnp.array([2.0, 0.0]), jnp.array([1.0, 3.0]))
    >>> print(mean, variance)
    [2. 6.] [1. 1.]
    """

    def log_density(self, outputs: Any, targets: Array) -> Float[Array, " n"]:
        return _normal(targets, *self.describe_targets(outputs))

    def describe_targets(self, outputs: Any) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        fine = outputs.ndim == 2 and outputs.shape[1] == 2
        require(fine, "apply", f"outputs of shape {outputs.shape}", "give a mean and a log variance for each input")
        return outputs[:, 0], jnp.exp(outputs[:, 1])


@dataclass(frozen=True)
class CategoricalLikelihood(ModelLikelihood):
    """p(y = c) ∝ e^{logit_c}, with the logits = apply(params, x). `predict` gives the logits for each input.

    apply: gives an array of shape (n, classes) for n inputs; see `ModelLikelihood` for batch norm and dropout.
    classes: how many there are; labels are 0 … classes − 1.

    >>> likelihood = cm.CategoricalLikelihood(lambda params, x: x @ params, classes=2)
    >>> print(jnp.exp(likelihood(jnp.zeros((3, 2)), (jnp.ones((4, 3)), jnp.array([0, 1, 1, 0])))))
    [0.5 0.5 0.5 0.5]
    """

    classes: int

    def __post_init__(self):
        require_count("classes", self.classes, 2, "there must be at least 2 classes")

    def log_density(self, outputs: Any, targets: Array) -> Float[Array, " n"]:
        log_probabilities = jax.nn.log_softmax(self.describe_targets(outputs))
        return jnp.take_along_axis(log_probabilities, targets[:, None].astype(jnp.int32), axis=1)[:, 0]

    def describe_targets(self, outputs: Any) -> Float[Array, "n classes"]:
        fine = outputs.ndim == 2 and outputs.shape[1] == self.classes
        remedy = f"give one logit for each of the {self.classes} classes"
        require(fine, "apply", f"outputs of shape {outputs.shape}", remedy)
        return outputs

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
