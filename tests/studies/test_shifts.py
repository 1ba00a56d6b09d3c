"""What networks are tested on besides their test set: spoilt images, and those of another data set."""

import numpy as np
import pytest

from contourmc.predictions.classification import ClassificationPrediction
from contourmc.predictions.prediction import Points
from contourmc.studies.cifar.shifts import CORRUPTIONS, area_under_roc, plain_test, shifted_test

RANDOM = np.random.default_rng(0)
TEST = RANDOM.integers(0, 256, (30, 32, 32, 3)).astype(np.uint8), RANDOM.integers(0, 10, 30)
OTHER = RANDOM.integers(0, 256, (20, 32, 32, 3)).astype(np.uint8), RANDOM.integers(0, 100, 20)


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_images_are_spoilt_more_and_more(kind):
    spoil, strengths = CORRUPTIONS[kind]
    away = [np.abs(spoil(TEST[0], strength) - TEST[0].astype(float)).mean() for strength in strengths]
    assert away == sorted(away)
    assert away[0] > 1
    assert spoil(TEST[0], strengths[0]).dtype == np.uint8


def test_figures_are_of_their_parts():
    """A network that is certain and right on the test set, uncertain on the other, and wrong under contrast."""
    shown = shifted_test(TEST, OTHER)
    few = shown.spoilt
    assert shown.images.shape[0] == 30 + 15 * few + 20
    right = np.full((shown.images.shape[0], 10), 0.01)
    right[np.arange(len(right)), shown.labels] = 0.91
    contrast = slice(30 + 10 * few, 30 + 15 * few)
    right[contrast] = np.roll(right[contrast], 1, axis=1)
    right[-20:] = 0.1
    zero = np.zeros(1)
    found = ClassificationPrediction(
        means={"probabilities": right[None], "entropy": np.zeros((1, len(right)))}, truth=shown.labels,
        effective_models=np.ones(1), models=1, points=Points(zero, zero, zero, zero), shares=np.ones(1),
    )  # fmt: skip
    assert shown.of_test(found).accuracy == 1.0
    assert len(shown.of_test(found).known_truth) == 30
    shift = shown.under_shift(found)
    assert shift["out_of_distribution_auroc"] == 1.0
    assert [entry["accuracy"] for entry in shift["corrupted"]["blur"]] == [1.0] * 5
    assert [entry["accuracy"] for entry in shift["corrupted"]["contrast"]] == [0.0] * 5
    assert plain_test(TEST).under_shift(found) == {}


def test_the_area_under_the_curve():
    assert area_under_roc(np.array([3.0, 4.0]), np.array([1.0, 2.0])) == 1.0
    assert area_under_roc(np.array([1.0, 4.0]), np.array([2.0, 3.0])) == 0.5
    assert area_under_roc(np.array([1.0, 1.0]), np.array([1.0])) == 0.5
