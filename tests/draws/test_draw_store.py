"""Draws in a store on disk: added chunk by chunk, written again after a kill, and read when they are used."""

import re
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from contourmc.draws import draw_store
from contourmc.draws.draw_store import DrawStore, StoredArray, digest_of, read_store

RANDOM = np.random.default_rng(0)
ENERGIES = RANDOM.normal(size=(2, 20)).astype(np.float32)
ENERGIES[:, 8:16] = 0.0  # a whole chunk, which Zarr would leave out
X = jnp.asarray(RANDOM.normal(size=(2, 20, 3)), jnp.bfloat16)


def columns(part):
    return {"/": {"energies": ENERGIES[:, part]}, "draws": {"x": np.asarray(X[:, part])}, "target_states": None}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_store, "MOST_DRAWS", 8)
    return DrawStore(tmp_path / "draws", columns(slice(0, 0)), np.arange(0))


def read(store, count):
    """The first draws, with the digest that a checkpoint had when there were so many."""
    rest = slice(count - count % store.chunk, count)
    digest = digest_of(store.path, count, columns(rest), np.arange(20)[rest])
    return read_store(store.path, count, digest)


def test_draws_come_back_as_they_were_and_positions_later(store):
    """Positions of bfloat16, too, which Zarr does not have."""
    store.write(0, columns(slice(0, 13)), np.arange(13))
    back = read(store, 10)
    np.testing.assert_array_equal(back["/"]["energies"], ENERGIES[:, :10])
    assert isinstance(back["draws"]["x"], StoredArray)
    assert back["draws"]["x"].shape == (2, 10, 3)
    assert back["draws"]["x"].dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(back["draws"]["x"]), np.asarray(X[:, :10]))
    np.testing.assert_array_equal(back["draw"], np.arange(10))


def test_draws_that_a_killed_process_left_are_written_again(store):
    """The process had come to draw 19; the next one goes on from the whole chunk before its last checkpoint."""
    store.write(0, columns(slice(0, 19)), np.arange(19))
    again = DrawStore(store.path, columns(slice(0, 0)), np.arange(0))
    assert again.chunk == 8
    again.write(8, columns(slice(8, 12)), np.arange(8, 12))
    again.write(8, columns(slice(8, 20)), np.arange(8, 20))
    np.testing.assert_array_equal(read(store, 20)["/"]["energies"], ENERGIES)


def test_draws_on_disk_and_in_memory_are_one(store):
    store.write(0, columns(slice(0, 8)), np.arange(8))
    joined = store.with_rest(8, columns(slice(8, 20)))
    np.testing.assert_array_equal(joined["/"]["energies"], ENERGIES)
    np.testing.assert_array_equal(np.asarray(joined["draws"]["x"]), np.asarray(X))
    assert joined["target_states"] is None


def test_a_store_that_is_gone_is_not_made_again(store):
    """Its earlier draws would come back as zeros."""
    store.write(0, columns(slice(0, 8)), np.arange(8))
    shutil.rmtree(store.path)
    with pytest.raises(FileNotFoundError, match="somebody has removed"):
        store.write(8, columns(slice(8, 16)), np.arange(8, 16))
    with pytest.raises(FileNotFoundError, match="somebody has removed"):
        store.with_rest(8, columns(slice(8, 16)))
    assert not store.path.exists()


# --- Damaged files --------------------------------------------------------------------------------------------


@pytest.fixture
def files(store):
    """The content of every file of a store of 20 draws: two chunks that are complete, and a half of one."""
    store.write(0, columns(slice(0, 13)), np.arange(13))
    store.write(8, columns(slice(8, 20)), np.arange(8, 20))
    return {file: file.read_bytes() for file in sorted(store.path.rglob("*")) if file.is_file()}


def damages(files, file):
    """What may become of a file: it is gone, is cut off, has another bit, or is a chunk from another place."""
    content, (array, chunk, _) = files[file], str(file).partition("/c/")
    yield None
    yield content[:-1]
    bit = int(np.random.default_rng(len(content)).integers(8 * len(content)))
    yield content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]
    yield from (files[other] for other in files if chunk and other != file and str(other).startswith(f"{array}/c/0"))


def restore(path, files):
    shutil.rmtree(path)
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def assert_whole(found):
    np.testing.assert_array_equal(found["/"]["energies"], ENERGIES)
    np.testing.assert_array_equal(np.asarray(found["draws"]["x"]), np.asarray(X))


@pytest.mark.parametrize("way", ["a reader", "a run that goes on"])
def test_whatever_happens_to_a_file_is_noticed_or_harmless(store, files, way):
    rest, last = columns(slice(16, 20)), {file for file in files if re.search(r"/c/(0/)?2(/0)?$", str(file))}
    digest = digest_of(store.path, 20, rest, np.arange(16, 20))
    assert len(files) == 16  # zarr.json of the root, of a group and of 4 arrays; 3 chunks of 3 arrays, 1 of checksums
    harmless = set()
    for file in files:
        for content in damages(files, file):
            file.unlink() if content is None else file.write_bytes(content)
            try:
                if way == "a run that goes on":
                    again = DrawStore(store.path, columns(slice(0, 0)), np.arange(0), 16)
                    again.write(16, rest, np.arange(16, 20))
                    assert_whole(again.with_rest(16, rest))
                assert_whole(read_store(store.path, 20, digest))
                harmless.add(file)
            except ValueError as error:
                named = store.path if file in last and content in files.values() else file
                assert re.search(f"file='{named}' is not possible: it is (missing|damaged).*Restore it", str(error))  # noqa: PT017
            restore(store.path, files)
    assert harmless == (last if way == "a run that goes on" else set())  # which are written again
