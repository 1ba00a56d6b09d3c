"""The data sets: where their rows come from, and how they are split, by a seed or once and for all."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from contourmc.studies import datasets


class Rows(NamedTuple):
    """x: inputs.  y: labels, or numbers to predict."""

    x: Float[np.ndarray, "n features"]
    y: Shaped[np.ndarray, " n"]

    def __getitem__(self, which: np.ndarray | slice) -> "Rows":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Rows(self.x[which], self.y[which])


class Split(NamedTuple):
    """train: to learn from.  test: what is predicted in the end, or held out in a search."""

    train: Rows
    test: Rows


@dataclass(frozen=True)
class Sources:
    """data: the folder of the UCI sets; None: downloaded.  fashion: of the idx files of Fashion-MNIST."""

    data: Path | None = None
    fashion: Path | None = None


class MissingDataError(OSError):
    """The files of a data set are not there."""


def digits(sources: Sources, seed: int) -> Split:
    """scikit-learn's 1,797 digits of 8 × 8 pixels from 0 to 1; half of them to test on."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return _random_split(Rows(np.asarray(x) / 16, np.asarray(y, np.int32)), seed, 0.5)


def uci(name: str, sources: Sources, seed: int) -> Split:
    """A regression set of the UCI repository; a tenth of it to test on."""
    return _random_split(Rows(*datasets.uci(name, sources.data)), seed, 0.1)


def fashion(sources: Sources, seed: int) -> Split:
    """Fashion-MNIST's own split; pixels from 0 to 1. The seed makes no difference."""
    if sources.fashion is None or not sources.fashion.is_dir():
        raise MissingDataError("give the folder of its idx files by --fashion")
    return _fashion(sources.fashion)


@cache
def _fashion(folder: Path) -> Split:
    """One copy for all seeds."""
    return Split(_idx_rows(folder, "train"), _idx_rows(folder, "t10k"))


def inner_split(train: Rows, index: int) -> Split:
    """A fifth of some training rows held out, for a search; each index gives another fifth."""
    return _random_split(train, index, 0.2)


def _random_split(rows: Rows, seed: int, share: float) -> Split:
    order = np.random.default_rng(seed).permutation(len(rows.y))
    test, train = np.split(order, [round(share * len(rows.y))])
    return Split(rows[train], rows[test])


def _idx_rows(folder: Path, part: str) -> Rows:
    images = _read_idx(folder / f"{part}-images-idx3-ubyte")
    return Rows(images.reshape(len(images), -1) / np.float32(255), _read_idx(folder / f"{part}-labels-idx1-ubyte"))


def _read_idx(file: Path) -> np.ndarray:
    """An array of bytes in MNIST's format, compressed or not: two bytes 0, type 8, dimensions, sizes, content."""
    packed = file.with_name(file.name + ".gz")
    if not (file.exists() or packed.exists()):
        raise MissingDataError(f"there is neither {file} nor {packed.name}")
    content = file.read_bytes() if file.exists() else gzip.decompress(packed.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise MissingDataError(f"{file} is no idx file of bytes")
    dimensions = content[3]
    shape = np.frombuffer(content, ">i4", dimensions, offset=4)
    labels = dimensions == 1
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
    return values.astype(np.int32) if labels else values


@dataclass(frozen=True)
class DataSet:
    """split: of (sources, seed).
    classes: None for a regression.
    hidden: units of the hidden layers.
    batch, epochs: of every method; a method with several members or replicas shares the epochs out.
    weight_decay: λ, on the mean loss; the prior's precision is N·λ.
    rates: learning rates η on the mean loss to choose from, the largest first.
    image: height and width of inputs that are images, which are also tested under corruption.
    corrupted_rows: how many test rows are corrupted.
    together: whether all seeds are one run, as chains with their own data; else one after another, for large data.
    search_splits: on how many splits of training rows settings are tried; one is enough if it holds out many rows.
    """

    name: str
    split: Callable[[Sources, int], Split]
    classes: int | None
    hidden: tuple[int, ...]
    batch: int
    epochs: int
    weight_decay: float
    rates: tuple[float, ...]
    image: tuple[int, int] | None = None
    corrupted_rows: int = 1000
    together: bool = True
    search_splits: int = 2


DATA_SETS = {
    one.name: one
    for one in (
        DataSet("digits", digits, 10, (64,), 100, 1000, 1e-3, (0.8, 0.5, 0.25, 0.1), image=(8, 8)),
        DataSet("energy", partial(uci, "energy"), None, (50,), 50, 2000, 3e-3, (0.01, 0.004, 0.0015, 0.0005)),
        DataSet("concrete", partial(uci, "concrete"), None, (50,), 50, 2000, 3e-3, (0.02, 0.007, 0.002, 0.0007)),
        DataSet(
            "fashion",
            fashion,
            10,
            (128, 128),
            500,
            12,
            5e-5,
            (0.3, 0.1, 0.03, 0.01),
            image=(28, 28),
            together=False,
            search_splits=1,
        ),
    )
}
