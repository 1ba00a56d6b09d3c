"""A network on one split of a data set: its posterior, and how it is tested."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import contourmc as cm
from benchmarks.networks.corruption import KINDS, STRENGTHS, corrupted
from benchmarks.networks.data import DataSet, Rows, Split
from contourmc.predictions.classification import ClassificationPrediction
from contourmc.predictions.prediction import Prediction
from contourmc.predictions.regression import RegressionPrediction

SPAN = 8.0  # of the log variance, in units of the standardised targets, so that no variance vanishes


def apply(params: list[dict[str, Array]], x: Float[Array, "n features"]) -> Float[Array, "n outputs"]:
    """A network of fully connected layers, with ReLU between them."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["kernel"] + layer["bias"])
    return x @ last["kernel"] + last["bias"]


def mean_and_log_variance(params: list[dict[str, Array]], x: Float[Array, "n features"]) -> Float[Array, "n 2"]:
    """The outputs of such a network for a regression: the second within ±SPAN."""
    outputs = apply(params, x)
    return outputs.at[:, 1].set(SPAN * jnp.tanh(outputs[:, 1] / SPAN))


@dataclass(frozen=True)
class Problem:
    """data: the set.  split: one of it, as it was read.  corruption: whether corrupted images are tested too."""

    data: DataSet
    split: Split
    corruption: bool = False

    @property
    def observations(self) -> int:
        return len(self.split.train.y)

    @property
    def posterior(self) -> cm.Posterior:
        prior = cm.GaussianPrior(self.observations * self.data.weight_decay)
        return cm.Posterior(self._likelihood, prior, tuple(self._standardised(self.split.train)), self.data.batch)

    def average(self, effective: float | None) -> cm.Average:
        """Over models, on the test set and, if asked for, on its corrupted images below it."""
        inputs, targets = self._standardised(self._tested)
        if self.data.classes is None:
            return cm.RegressionAverage(self._likelihood.predict, inputs, targets, effective=effective)
        classes = self.data.classes
        return cm.ClassificationAverage(self._likelihood.predict, inputs, targets, classes=classes, effective=effective)

    def init(self, key: PRNGKeyArray) -> list[dict[str, Array]]:
        """Weights of variance 2 / (inputs of the layer), but 0.01 / inputs in the last; biases 0."""
        outputs = 2 if self.data.classes is None else self.data.classes
        sizes = self.split.train.x.shape[1], *self.data.hidden, outputs
        gains = [2.0] * len(self.data.hidden) + [0.01]
        layers = zip(jax.random.split(key, len(gains)), sizes[:-1], sizes[1:], gains, strict=True)
        return [
            {"kernel": jax.random.normal(one, (inputs, units)) * (gain / inputs) ** 0.5, "bias": jnp.zeros(units)}
            for one, inputs, units, gain in layers
        ]

    def scores(self, prediction: Prediction) -> dict[str, Any]:
        """What is reported of a prediction; in the units of the data."""
        if isinstance(prediction, RegressionPrediction):
            scale = self._target_scale
            nll = prediction.nll + float(np.log(scale))
            return dict(rmse=scale * prediction.rmse, nll=nll, coverage=prediction.coverage(0.9))
        count = len(self.split.test.y)
        clean = _rows(prediction, slice(0, count))
        found: dict[str, Any] = dict(
            accuracy=clean.accuracy, nll=clean.nll, ece=clean.calibration_error(), brier=clean.brier
        )
        if self.corruption:
            found["corrupted"] = self._corrupted_scores(prediction, count)
        return found

    def _corrupted_scores(self, prediction: Prediction, start: int) -> dict[str, dict[str, list[float]]]:
        size = min(self.data.corrupted_rows, len(self.split.test.y))
        found: dict[str, dict[str, list[float]]] = {}
        for kind in KINDS:
            parts = [_rows(prediction, slice(start + i * size, start + (i + 1) * size)) for i in range(STRENGTHS)]
            found[kind] = dict(accuracy=[part.accuracy for part in parts], nll=[part.nll for part in parts])
            start += STRENGTHS * size
        return found

    @property
    def _tested(self) -> Rows:
        test = self.split.test
        if not self.corruption:
            return test
        assert self.data.image is not None
        chosen = test[slice(0, self.data.corrupted_rows)]
        worse = corrupted(chosen.x.reshape(-1, *self.data.image))
        x = [images.reshape(len(images), -1) for kind in KINDS for images in worse[kind]]
        return Rows(np.concatenate([test.x, *x]), np.concatenate([test.y, *[chosen.y] * len(x)]))

    @property
    def _likelihood(self) -> Any:
        if self.data.classes is None:
            return cm.HeteroscedasticLikelihood(mean_and_log_variance)
        return cm.CategoricalLikelihood(apply, classes=self.data.classes)

    @property
    def _target_scale(self) -> float:
        return float(self.split.train.y.std())

    def _standardised(self, rows: Rows) -> Rows:
        """By the statistics of the training rows: for each feature, or for all pixels of images together."""
        train = self.split.train
        axis = None if self.data.image else 0
        scale = train.x.std(axis=axis)
        x = (rows.x - train.x.mean(axis=axis)) / np.where(scale == 0, 1.0, scale)
        y = rows.y if self.data.classes else ((rows.y - train.y.mean()) / self._target_scale).astype(np.float32)
        return Rows(x.astype(np.float32), y)


def _rows(prediction: Prediction, which: slice) -> ClassificationPrediction:
    """The prediction of some inputs alone."""
    assert isinstance(prediction, ClassificationPrediction)
    assert prediction.truth is not None
    means = {name: values[:, which] for name, values in prediction.means.items()}
    return replace(prediction, means=means, truth=prediction.truth[which])


def joined(predictions: list[Prediction]) -> Prediction:
    """The prediction of several chains that ran apart, all of which count alike."""
    first = predictions[0]
    if len(predictions) == 1:
        return first
    means = {name: np.concatenate([one.means[name] for one in predictions]) for name in first.means}
    worth = np.concatenate([one.effective_models for one in predictions])
    points = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(one.points for one in predictions))
    shares = np.full(len(worth), 1 / len(worth))
    return replace(first, means=means, effective_models=worth, points=points, shares=shares)
