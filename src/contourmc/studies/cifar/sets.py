"""The two data sets of the paper's Table 2: all that the study has to know of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from contourmc._core.checks import require
from contourmc.studies import datasets
from contourmc.studies.datasets import Images

Colour = tuple[float, float, float]


class Figure(NamedTuple):
    """The paper's mean over ten runs and their standard deviation, in percent."""

    mean: float
    deviation: float


@dataclass(frozen=True, eq=False)
class ImageSet:
    """A data set, and how the paper treats it.

    name: on the command line, and of the folder of its records.
    title: in tables and pictures.
    load: training and test set from a local folder, or downloaded.
    classes: how many there are.
    mean, deviation: of the pixels of the training set, by channel.
    width: Δu, of the energy bins.
    zeta: ζ, how far energies are flattened.
    paper: BPE and BMA by algorithm.
    """

    name: str
    title: str
    load: Callable[[Path | None], tuple[Images, Images]]
    classes: int
    mean: Colour
    deviation: Colour
    width: float
    zeta: float
    paper: Mapping[str, tuple[Figure, Figure]]


CIFAR10 = ImageSet(
    "cifar10",
    "CIFAR-10",
    datasets.cifar10,
    classes=10,
    mean=(125.3, 123.0, 113.9),
    deviation=(63.0, 62.1, 66.7),
    width=1000.0,
    zeta=1e6,
    paper={
        "m-sgd": (Figure(90.02, 0.06), Figure(92.03, 0.08)),
        "sghmc": (Figure(90.01, 0.07), Figure(91.98, 0.05)),
        "csghmc": (Figure(90.87, 0.04), Figure(92.85, 0.05)),
        "sam-sgd": (Figure(93.83, 0.07), Figure(94.25, 0.04)),
        "sasghmc": (Figure(93.80, 0.06), Figure(94.24, 0.06)),
        "sacsghmc": (Figure(94.06, 0.07), Figure(94.33, 0.07)),
    },
)
CIFAR100 = ImageSet(
    "cifar100",
    "CIFAR-100",
    datasets.cifar100,
    classes=100,
    mean=(129.3, 124.1, 112.4),
    deviation=(68.2, 65.4, 70.4),
    width=5000.0,
    zeta=3e6,
    paper={
        "m-sgd": (Figure(61.41, 0.15), Figure(67.04, 0.12)),
        "sghmc": (Figure(61.46, 0.14), Figure(66.43, 0.11)),
        "csghmc": (Figure(63.97, 0.21), Figure(68.94, 0.23)),
        "sam-sgd": (Figure(69.18, 0.13), Figure(71.83, 0.12)),
        "sasghmc": (Figure(69.24, 0.11), Figure(71.98, 0.10)),
        "sacsghmc": (Figure(70.18, 0.15), Figure(72.67, 0.15)),
    },
)
SETS = {each.name: each for each in (CIFAR10, CIFAR100)}


def find_set(name: str) -> ImageSet:
    """The data set of a name."""
    require(name in SETS, "dataset", name, f"choose one of {', '.join(SETS)}")
    return SETS[name]
