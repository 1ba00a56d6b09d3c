"""The model average of a classifier: probabilities, uncertainty, and how good they are."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc._core.checks import require, require_count
from contourmc.draws.exhibits.chart import Chart
from contourmc.draws.exhibits.table import Table
from contourmc.predictions.calibration import calibration_chart
from contourmc.predictions.model_average import ModelAverage, updated_mean
from contourmc.predictions.prediction import Prediction
from contourmc.targets.likelihoods import check_labels


@dataclass(frozen=True, repr=False)
class ClassificationPrediction(Prediction):
    """The mean probabilities on the test set, over all draws of all chains."""

    @property
    def probabilities(self) -> Float[np.ndarray, "n classes"]:
        return self.over_chains(self.means["probabilities"])

    @property
    def accuracy(self) -> float:
        """Of the model average."""
        return float(np.mean(self.probabilities.argmax(axis=1) == self.known_truth))

    @property
    def nll(self) -> float:
        """Minus the mean log probability of the labels."""
        return float(-np.mean(np.log(np.maximum(self._of_labels, 1e-38))))  # about the smallest float32 above 0

    @property
    def brier(self) -> float:
        """The mean over inputs of Σ_c (p_c − 1[y = c])²."""
        squares = np.sum(self.probabilities**2, axis=1)
        return float(np.mean(squares - 2 * self._of_labels + 1))

    @property
    def entropy(self) -> Float[np.ndarray, " n"]:
        """The entropy of the mean probabilities, in nats: all uncertainty."""
        probabilities = self.probabilities
        return -np.sum(probabilities * np.log(np.maximum(probabilities, 1e-300)), axis=1)

    @property
    def mutual_information(self) -> Float[np.ndarray, " n"]:
        """The entropy less the mean entropy of the models: the part that comes from their disagreement."""
        return self.entropy - self.over_chains(self.means["entropy"])

    def reliability(self, bins: int = 15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean confidence, accuracy and share of the inputs, by confidence in equal bins; empty bins are left out."""
        bins = require_count("bins", bins, 1, "give at least 1 bin")
        confidence = self.probabilities.max(axis=1)
        right = self.probabilities.argmax(axis=1) == self.known_truth
        index = np.minimum((confidence * bins).astype(int), bins - 1)
        counts = np.bincount(index, minlength=bins)
        used = counts > 0
        means = [np.bincount(index, values, bins)[used] / counts[used] for values in (confidence, right)]
        return means[0], means[1], counts[used] / counts.sum()

    def calibration_error(self, bins: int = 15) -> float:
        """ECE: the mean over inputs of |confidence − accuracy| in the bin of the input."""
        confidence, accuracy, share = self.reliability(bins)
        return float(np.sum(share * np.abs(confidence - accuracy)))

    @property
    def _of_labels(self) -> Float[np.ndarray, " n"]:
        return self.probabilities[np.arange(len(self.known_truth)), self.known_truth]

    def exhibits(self) -> list[Table | Chart]:
        if self.truth is None:
            return super().exhibits()
        confidence, accuracy, share = self.reliability()
        caption = f"Share of right classes against confidence, in {len(share)} bins: {self.accuracy:.1%} are right at a"
        caption += (
            f" mean confidence of {np.sum(share * confidence):.1%}; the mean gap is {self.calibration_error():.3f}."
        )
        labels = "confidence", "share of right classes"
        counts = share * len(self.known_truth)
        return [*super().exhibits(), calibration_chart("Reliability", caption, labels, confidence, accuracy, counts)]

    def figures(self) -> dict[str, float]:
        if self.truth is None:
            return {}
        best = 1 - float(np.min(self.points.best_error))
        return dict(accuracy=self.accuracy, nll=self.nll, ece=self.calibration_error(), best_accuracy=best)


@dataclass(frozen=True, eq=False)
class ClassificationAverage(ModelAverage):
    """The average over draws of the class probabilities, from the logits that `predict` gives.

    classes: how many there are; targets are labels 0 … classes − 1.

    >>> likelihood = cm.CategoricalLikelihood(lambda slope, x: jnp.stack([-slope * x, slope * x], axis=1), classes=2)
    >>> target = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x, (y > 0).astype(int)), batch_size=10)
    >>> average = cm.ClassificationAverage(likelihood.predict, x, (y > 0).astype(int), classes=2)
    >>> run = cm.sample(target, init=1.0, steps=2_000, kernel=cm.sgld(0.001), average=average)
    >>> print(run.average.accuracy > 0.9, run.average.probabilities.shape)
    True (100, 2)
    """

    result = ClassificationPrediction

    classes: int = 2

    def __post_init__(self):
        require_count("classes", self.classes, 2, "there must be at least 2 classes")
        if self.targets is not None:
            check_labels("targets", self.targets, self.classes)
        super().__post_init__()

    def no_means(self) -> dict[str, Array]:
        zeros = jnp.zeros((self.size, self.classes), jnp.result_type(float))
        return dict(probabilities=zeros, entropy=zeros[:, 0])

    def add_means(
        self, means: dict[str, Array], share: Float[Array, ""], predicted: Any
    ) -> tuple[dict[str, Array], Float[Array, ""], Float[Array, ""]]:
        shape = self.size, self.classes
        remedy = f"give one logit for each of {shape[0]} inputs and {shape[1]} classes"
        require(predicted.shape == shape, "predict", f"logits of shape {predicted.shape}", remedy)
        log_probabilities = jax.nn.log_softmax(predicted.astype(means["entropy"].dtype))
        probabilities = jnp.exp(log_probabilities)
        entropy = -jnp.sum(probabilities * jnp.maximum(log_probabilities, -1e30), axis=1)  # 0·log 0 is 0
        new = dict(
            probabilities=updated_mean(means["probabilities"], probabilities, share),
            entropy=updated_mean(means["entropy"], entropy, share),
        )
        if self.targets is None:
            return new, jnp.asarray(jnp.nan), jnp.asarray(jnp.nan)
        nll = -jnp.mean(jnp.take_along_axis(log_probabilities, self.targets[:, None].astype(jnp.int32), axis=1))
        return new, jnp.mean(jnp.argmax(predicted, axis=1) != self.targets), nll
