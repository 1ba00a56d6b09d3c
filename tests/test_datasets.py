"""Data sets from small folders of our own; the real ones where CONTOURMC_TEST_DATA names a folder."""

import os
import pickle
import sys

import numpy as np
import pytest

from contourmc.studies import datasets
from contourmc.studies.datasets import DataError


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("CONTOURMC_DATA", raising=False)


@pytest.fixture
def yacht(tmp_path):
    table = np.random.default_rng(0).normal(size=(308, 7)).round(3)
    (tmp_path / "uci" / "yacht").mkdir(parents=True)
    np.savetxt(tmp_path / "uci" / "yacht" / "data.txt", table)
    return tmp_path, table


def write_batch(file, count, seed, **changes):
    random = np.random.default_rng(seed)
    content = {b"data": random.integers(0, 256, (count, 3072), np.uint8), b"labels": [i % 10 for i in range(count)]}
    content |= {key.encode(): value for key, value in changes.items()}
    file.write_bytes(pickle.dumps(content, protocol=2))
    return content


@pytest.fixture
def cifar(tmp_path):
    home = tmp_path / "cifar-10-batches-py"
    home.mkdir()
    batches = [write_batch(home / f"data_batch_{i}", 12, i) for i in range(1, 6)]
    write_batch(home / "test_batch", 11, 6)
    return tmp_path, batches


def test_uci_from_a_folder(yacht, monkeypatch):
    folder, table = yacht
    x, y = datasets.uci("yacht", folder)
    np.testing.assert_array_equal(x, table[:, :6])
    np.testing.assert_array_equal(y, table[:, 6])
    monkeypatch.setenv("CONTOURMC_DATA", str(folder))
    np.testing.assert_array_equal(datasets.uci("yacht")[1], y)


def test_cifar10_from_a_folder(cifar):
    """Official rows hold the red plane, then green, then blue, each line by line."""
    folder, batches = cifar
    for root in (folder, folder / "cifar-10-batches-py"):
        (images, labels), (test_images, test_labels) = datasets.cifar10(root)
        assert images.shape == (60, 32, 32, 3)
        assert images.dtype == np.uint8
        assert test_images.shape == (11, 32, 32, 3)
        row = batches[1][b"data"][3]
        assert images[15, 2, 5, 1] == row[1024 + 2 * 32 + 5]
        assert labels[15] == 3
        assert list(test_labels) == [*range(10), 0]


def test_an_unknown_set_is_named():
    with pytest.raises(ValueError, match=r"^name='boston'.*yacht"):
        datasets.uci("boston")


def test_missing_folders_and_files(tmp_path):
    with pytest.raises(DataError, match=r"no folder .*nowhere.*CONTOURMC_DATA"):
        datasets.uci("yacht", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"no file .*uci/yacht/data.txt nor .*CONTOURMC_DATA"):
        datasets.uci("yacht", tmp_path)
    with pytest.raises(DataError, match=r"no file .*cifar-10-batches-py/test_batch"):
        datasets.cifar10(tmp_path)


@pytest.mark.parametrize("content", ["1 2 3\n4 5 6\n", "one two\n", "1 2\n3\n", "nan " * 7 + "\n"])
def test_a_damaged_table(yacht, content):
    folder, _ = yacht
    (folder / "uci" / "yacht" / "data.txt").write_text(content)
    with pytest.raises(DataError, match=r"data.txt is damaged"):
        datasets.uci("yacht", folder)


def test_damaged_batches(cifar):
    folder, _ = cifar
    file = folder / "cifar-10-batches-py" / "data_batch_3"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(DataError, match=r"data_batch_3 is damaged"):
        datasets.cifar10(folder)
    for changes in (dict(labels=[10] * 12), dict(labels=[1]), dict(data=np.zeros((12, 10), np.uint8))):
        write_batch(file, 12, 3, **changes)
        with pytest.raises(DataError, match=r"data_batch_3 is no CIFAR-10 batch"):
            datasets.cifar10(folder)
    file.unlink()
    with pytest.raises(DataError, match=r"no file .*data_batch_3"):
        datasets.cifar10(folder)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionError("unreachable"), r"yacht.txt could not be downloaded from https.*CONTOURMC_DATA"),
        (ValueError("MD5 hash of downloaded file"), r"from https.* is damaged: its hash"),
    ],
)
def test_no_network_and_a_wrong_hash(monkeypatch, error, words):
    pooch = pytest.importorskip("pooch")

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(pooch, "retrieve", fail)
    with pytest.raises(DataError, match=words):
        datasets.uci("yacht")


def test_without_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match=r"contourmc\[data\].*CONTOURMC_DATA"):
        datasets.cifar10()


REAL = os.environ.get("CONTOURMC_TEST_DATA")


@pytest.mark.skipif(not REAL, reason="CONTOURMC_TEST_DATA names no folder")
@pytest.mark.parametrize(
    ("name", "mean"), [("energy", 22.3072), ("concrete", 35.818), ("yacht", 10.4954), ("wine", 5.636)]
)
def test_the_real_tables(name, mean):
    """The published means of the targets."""
    assert REAL is not None
    _, y = datasets.uci(name, REAL)
    np.testing.assert_allclose(y.mean(), mean, rtol=1e-4)
