"""Draws in a store on disk: added chunk by chunk, written again after a kill, and read when they are used."""

import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from contourmc.draws import draw_store
from contourmc.draws.draw_store import DrawStore, StoredArray, read_store

RANDOM = np.random.default_rng(0)
ENERGIES = RANDOM.normal(size=(2, 20)).astype(np.float32)
X = jnp.asarray(RANDOM.normal(size=(2, 20, 3)), jnp.bfloat16)


def columns(part):
    return {"/": {"energies": ENERGIES[:, part]}, "draws": {"x": np.asarray(X[:, part])}, "target_states": None}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_store, "MOST_DRAWS", 8)
    return DrawStore(tmp_path / "draws", columns(slice(0, 0)), np.arange(0))


def test_draws_come_back_as_they_were_and_positions_later(store):
    """Positions of bfloat16, too, which Zarr does not have."""
    store.write(0, columns(slice(0, 13)), np.arange(13))
    back = read_store(store.path, 10)
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
    np.testing.assert_array_equal(read_store(store.path, 20)["/"]["energies"], ENERGIES)


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
