"""What networks are tested on: the test set; the same images spoilt, more and more; and images of the other data set.

The strengths are those of CIFAR-10-C (Hendrycks & Dietterich 2019). Images of the other data set show none of the
classes, and a network that knows what it does not know is less certain of them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8
from scipy.ndimage import gaussian_filter
from scipy.stats import rankdata

from contourmc.predictions.classification import ClassificationPrediction
from contourmc.studies.datasets import Images

NOISE = (0.04, 0.06, 0.08, 0.09, 0.10)  # the standard deviation, of a range of 1
BLUR = (0.4, 0.6, 0.7, 0.8, 1.0)  # the standard deviation of a Gaussian, in pixels
CONTRAST = (0.75, 0.5, 0.4, 0.3, 0.15)  # the share that remains
SPOILT = 2000  # of the test images, the first ones


def noisy(images: UInt8[np.ndarray, "n h w 3"], strength: float) -> UInt8[np.ndarray, "n h w 3"]:
    random = np.random.default_rng(0)
    return _bytes(images + 255 * strength * random.normal(size=images.shape))


def blurred(images: UInt8[np.ndarray, "n h w 3"], strength: float) -> UInt8[np.ndarray, "n h w 3"]:
    return _bytes(gaussian_filter(images.astype(float), (0, strength, strength, 0)))


def faded(images: UInt8[np.ndarray, "n h w 3"], strength: float) -> UInt8[np.ndarray, "n h w 3"]:
    mean = images.mean(axis=(1, 2), keepdims=True)
    return _bytes(mean + strength * (images - mean))


CORRUPTIONS = {"noise": (noisy, NOISE), "blur": (blurred, BLUR), "contrast": (faded, CONTRAST)}


def _bytes(images: np.ndarray) -> UInt8[np.ndarray, "n h w 3"]:
    return np.clip(np.round(images), 0, 255).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class TestImages:
    """images, labels: everything that is predicted; the test set comes first.
    count: how many the test set has.
    spoilt: how many there are of each kind and strength; 0 for none.
    """

    __test__ = False  # not for pytest
    images: UInt8[np.ndarray, "n h w 3"]
    labels: Int[np.ndarray, " n"]
    count: int
    spoilt: int = 0

    def of_test(self, prediction: ClassificationPrediction) -> ClassificationPrediction:
        """That of the test set alone."""
        return _part(prediction, slice(0, self.count))

    def under_shift(self, prediction: ClassificationPrediction) -> dict[str, Any]:
        """Figures for every kind and strength, and how well the other data set is told from this one."""
        if not self.spoilt:
            return {}
        found: dict[str, Any] = {}
        begin = self.count
        for kind, (_, strengths) in CORRUPTIONS.items():
            found[kind] = []
            for strength in strengths:
                part = _part(prediction, slice(begin, begin + self.spoilt))
                found[kind].append({"strength": strength} | part.figures())
                begin += self.spoilt
        uncertain = prediction.entropy
        known, other = uncertain[: self.count], uncertain[begin:]
        return {"corrupted": found, "out_of_distribution_auroc": area_under_roc(other, known)}


def plain_test(test: Images) -> TestImages:
    """The test set alone."""
    images, labels = test
    return TestImages(images, labels, len(labels))


def shifted_test(test: Images, other: Images) -> TestImages:
    """The test set, spoilt images of it, and those of another data set."""
    images, labels = test
    few = min(SPOILT, len(labels))
    spoilt = [make(images[:few], strength) for make, strengths in CORRUPTIONS.values() for strength in strengths]
    everything = np.concatenate([images, *spoilt, other[0]])
    nothing = np.zeros(len(other[0]), labels.dtype)  # no figure needs the labels of the other data set
    return TestImages(
        everything, np.concatenate([labels, *[labels[:few]] * len(spoilt), nothing]), len(labels), few
    )  # fmt: skip


def area_under_roc(positive: np.ndarray, negative: np.ndarray) -> float:
    """The probability that one of the first is larger than one of the second; a tie counts half."""
    ranks = rankdata(np.concatenate([positive, negative]))[: len(positive)]
    return float((ranks.sum() - len(positive) * (len(positive) + 1) / 2) / (len(positive) * len(negative)))


def _part(prediction: ClassificationPrediction, part: slice) -> ClassificationPrediction:
    means = {name: values[:, part] for name, values in prediction.means.items()}
    return replace(prediction, means=means, truth=prediction.known_truth[part])
