"""Data sets from small folders of our own; the real ones where CONTOURMC_TEST_DATA names a folder."""

import io
import os
import pickle
import sys

import numpy as np
import pytest

from contourmc.studies import datasets
from contourmc.studies.datasets import DatasetError


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("CONTOURMC_DATA", raising=False)


@pytest.fixture
def yacht(tmp_path):
    table = np.random.default_rng(0).normal(size=(308, 7)).round(3)
    (tmp_path / "uci" / "yacht").mkdir(parents=True)
    np.savetxt(tmp_path / "uci" / "yacht" / "data.txt", table)
    return tmp_path, table


def write_batch(file, count, seed, key="labels", classes=10, protocol=2, **changes):
    random = np.random.default_rng(seed)
    labels = [i % classes for i in range(count)]
    content = {b"data": random.integers(0, 256, (count, 3072), np.uint8), key.encode(): labels}
    content |= {key.encode(): value for key, value in changes.items()}
    file.write_bytes(pickle.dumps(content, protocol=protocol))
    return content


@pytest.fixture
def cifar(tmp_path):
    home = tmp_path / "cifar-10-batches-py"
    home.mkdir()
    batches = [write_batch(home / f"data_batch_{i}", 12, i) for i in range(1, 6)]
    write_batch(home / "test_batch", 11, 6)
    return tmp_path, batches


@pytest.fixture
def cifar100(tmp_path):
    home = tmp_path / "cifar-100-python"
    home.mkdir()
    train = write_batch(home / "train", 120, 1, "fine_labels", 100)
    write_batch(home / "test", 101, 2, "fine_labels", 100)
    return tmp_path, train


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


def test_cifar100_from_a_folder(cifar100):
    folder, train = cifar100
    for root in (folder, folder / "cifar-100-python"):
        (images, labels), (test_images, test_labels) = datasets.cifar100(root)
        assert images.shape == (120, 32, 32, 3)
        assert test_images.shape == (101, 32, 32, 3)
        assert images[15, 2, 5, 1] == train[b"data"][15][1024 + 2 * 32 + 5]
        assert list(labels) == [i % 100 for i in range(120)]
        assert list(test_labels) == [*range(100), 0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_batches_of_every_protocol(cifar100, protocol):
    folder, _ = cifar100
    content = write_batch(folder / "cifar-100-python" / "train", 7, 3, "fine_labels", 100, protocol)
    (images, _), _ = datasets.cifar100(folder)
    np.testing.assert_array_equal(images[..., 0].reshape(7, 1024), content[b"data"][:, :1024])


def test_a_batch_as_python_2_wrote_it(cifar100):
    """The official files: strings are bytes, and arrays are made by the names that NumPy had then."""
    row = bytes(i % 256 for i in range(3072))
    head = b"\x80\x02}(U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    kind = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    data = b"(K\x01K\x01M\x00\x0c\x86" + kind + b"\x89T\x00\x0c\x00\x00" + row + b"tb"
    folder, _ = cifar100
    (folder / "cifar-100-python" / "train").write_bytes(head + data + b"U\x0bfine_labels]K\x07au.")
    (images, labels), _ = datasets.cifar100(folder)
    assert images[0].transpose(2, 0, 1).tobytes() == row
    assert list(labels) == [7]


def test_an_unknown_set_is_named():
    with pytest.raises(ValueError, match=r"^name='boston'.*yacht"):
        datasets.uci("boston")


def test_missing_folders_and_files(tmp_path):
    with pytest.raises(DatasetError, match=r"no folder .*nowhere.*CONTOURMC_DATA"):
        datasets.uci("yacht", tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"no file .*uci/yacht/data.txt nor .*CONTOURMC_DATA"):
        datasets.uci("yacht", tmp_path)
    with pytest.raises(DatasetError, match=r"no file .*cifar-10-batches-py/test_batch"):
        datasets.cifar10(tmp_path)
    with pytest.raises(DatasetError, match=r"no file .*cifar-100-python/test nor .*CONTOURMC_DATA"):
        datasets.cifar100(tmp_path)


def test_a_wrong_layout_is_named(cifar, cifar100):
    """CIFAR-10 in the place of CIFAR-100, a file that is missing, and a pickle of something else."""
    folder, _ = cifar100
    with pytest.raises(DatasetError, match=r"no file .*cifar-10-batches-py/cifar-100-python/test"):
        datasets.cifar100(cifar[0] / "cifar-10-batches-py")
    train = folder / "cifar-100-python" / "train"
    write_batch(train, 12, 3)
    with pytest.raises(DatasetError, match=r"train is not of CIFAR-100 in its official layout.*fine_labels.*b'labels'"):
        datasets.cifar100(folder)
    write_batch(train, 12, 3, "fine_labels", 101, fine_labels=[100] * 12)
    with pytest.raises(DatasetError, match=r"train is no CIFAR-100 batch: .*0 … 99"):
        datasets.cifar100(folder)
    for content in (7, [b"data", b"fine_labels"], {b"data": [[1, 2], [3]], b"fine_labels": [1, 2]}):
        train.write_bytes(pickle.dumps(content))
        with pytest.raises(DatasetError, match=r"train is damaged or no CIFAR-100 batch"):
            datasets.cifar100(folder)
    train.unlink()
    with pytest.raises(DatasetError, match=r"no file .*cifar-100-python/train"):
        datasets.cifar100(folder)


class Calls:
    """A pickle of it calls a function when it is read."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


@pytest.mark.parametrize("read", [datasets.cifar10, datasets.cifar100])
def test_a_pickle_that_calls_something_is_refused(cifar, cifar100, tmp_path, read):
    mark = tmp_path / "called"
    ten, hundred = tmp_path / "cifar-10-batches-py" / "data_batch_1", tmp_path / "cifar-100-python" / "train"
    for thing, words in (
        (Calls(os.system, f"touch {mark}"), "names .*system"),
        (Calls(eval, f"open({str(mark)!r}, 'w')"), "names builtins.eval"),
        (Calls(np.load, io.BytesIO()), "names"),
        (Calls(getattr, np.ndarray, "tofile"), "names builtins.getattr"),
        (np.array([Calls(os.getcwd)], object), "names|hold numbers"),
        (np.random.default_rng(0), "names numpy.random"),
    ):
        for file in (ten, hundred):
            file.write_bytes(pickle.dumps({b"data": thing, b"labels": [1], b"fine_labels": [1]}))
        with pytest.raises(DatasetError, match=f"damaged or no CIFAR.*({words})"):
            read(tmp_path)
        assert not mark.exists()


@pytest.mark.parametrize("content", ["1 2 3\n4 5 6\n", "one two\n", "1 2\n3\n", "nan " * 7 + "\n"])
def test_a_damaged_table(yacht, content):
    folder, _ = yacht
    (folder / "uci" / "yacht" / "data.txt").write_text(content)
    with pytest.raises(DatasetError, match=r"data.txt is damaged"):
        datasets.uci("yacht", folder)


def test_damaged_batches(cifar):
    folder, _ = cifar
    file = folder / "cifar-10-batches-py" / "data_batch_3"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(DatasetError, match=r"data_batch_3 is damaged"):
        datasets.cifar10(folder)
    for changes in (dict(labels=[10] * 12), dict(labels=[1]), dict(data=np.zeros((12, 10), np.uint8))):
        write_batch(file, 12, 3, **changes)
        with pytest.raises(DatasetError, match=r"data_batch_3 is no CIFAR-10 batch"):
            datasets.cifar10(folder)
    file.unlink()
    with pytest.raises(DatasetError, match=r"no file .*data_batch_3"):
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
    with pytest.raises(DatasetError, match=words):
        datasets.uci("yacht")


def test_archives_are_checked_by_their_published_hashes(monkeypatch, cifar, cifar100):
    """What is asked of the download; the files are ours."""
    pooch, asked = pytest.importorskip("pooch"), []
    folder, _ = cifar100

    def retrieve(url, known_hash, **_):
        asked.append((url.rpartition("/")[2], known_hash))
        return [str(file) for file in folder.glob("*/*")]

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    assert len(datasets.cifar10()[0][1]) == 60
    assert len(datasets.cifar100()[0][1]) == 120
    assert asked == [
        ("cifar-10-python.tar.gz", "md5:c58f30108f718f92721af3b95e74349a"),
        ("cifar-100-python.tar.gz", "md5:eb9058c3a382ffc7106e4002c42a8d85"),
    ]


def test_without_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DatasetError, match=r"contourmc\[data\].*CONTOURMC_DATA"):
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
