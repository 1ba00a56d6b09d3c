"""The files of checkpoints: every type of number comes back, in the background, and nothing is unpickled."""

import errno
import json
import os
import threading
from typing import NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from contourmc.checkpoints import states as module
from contourmc.checkpoints.packing import DamagedError, pack, sealed, structures_of, unpack
from contourmc.checkpoints.states import States


class Point(NamedTuple):
    place: object
    scale: object = None


class Own:
    """A pytree that only the user's code knows."""

    def __init__(self, *parts):
        self.parts = parts


jax.tree_util.register_pytree_node(Own, lambda own: (own.parts, None), lambda _, parts: Own(*parts))

TREE = {
    "numbers": [1, 0.1, float("inf"), True, None, "text", np.float32(0.1), np.bool_(True)],
    "named": (Point(np.arange(3), ()), Point(jnp.ones((2, 2)), [])),
    "inside": {
        7: {"nothing": np.zeros((0, 3), np.float32), "a number": jnp.asarray(2.0), "big": np.arange(3, dtype=">f8")}
    },
}
LOST_BY_NUMPY = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4]


def again(tree, *structures):
    return unpack(sealed(pack(tree, structures)), structures)


def same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)
        if hasattr(a, "dtype"):
            assert a.dtype == b.dtype


def test_trees_of_plain_data_and_named_tuples_come_back():
    same(again(TREE), TREE)


@pytest.mark.parametrize("kind", LOST_BY_NUMPY, ids=lambda kind: np.dtype(kind).name)
def test_types_that_numpys_files_lose_come_back(kind, tmp_path):
    tree = (np.array([[1, 0], [3, 2]]).astype(kind), jnp.asarray(np.array(3).astype(kind)))
    with (tmp_path / "file.npz").open("wb") as opened:
        np.savez(opened, **sealed(pack(tree, ())))
    with np.load(tmp_path / "file.npz", allow_pickle=False) as stored:
        same(unpack(dict(stored), ()), tree)


@pytest.mark.parametrize("kind", ["threefry2x32", "rbg"])
def test_random_keys_come_back(kind):
    keys = jax.random.split(jax.random.key(3, impl=kind), 2)
    back = again((keys,))[0]
    assert back.dtype == keys.dtype
    np.testing.assert_array_equal(jax.random.key_data(back), jax.random.key_data(keys))


def test_pytrees_of_the_users_come_back_by_their_structure():
    own = Own(np.arange(2.0), {"a": jnp.ones(1)})
    back = again((own, 1), *structures_of(own))
    assert type(back[0]) is Own
    same(back[0].parts, own.parts)


@pytest.mark.parametrize("leaf", [object(), np.array([object()]), {1, 2}])
def test_what_no_file_can_hold_is_refused_by_name(leaf):
    with pytest.raises(TypeError, match=r"a checkpoint cannot hold .*(object|set)"):
        pack((leaf,), ())


def test_classes_are_only_looked_up():
    outline = {"class": "os:system", "fields": {"command": "exit 1"}}
    arrays = sealed({"outline": np.frombuffer(json.dumps(outline).encode(), np.uint8)})
    with pytest.raises(TypeError, match="there is no os:system with the fields command here"):
        unpack(arrays, ())


def test_arrays_that_have_changed_are_noticed():
    arrays = sealed(pack(TREE, ()))
    for change in ({"2": arrays["2"] + 1}, {"more": np.ones(1)}, {"outline": arrays["outline"][:-1]}):
        with pytest.raises(DamagedError):
            unpack(arrays | change, ())


def test_the_run_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    """And what is written is what was there then; the next one waits for it."""
    states, open_gate, write = States(tmp_path / "states"), threading.Event(), module.write_whole
    monkeypatch.setattr(module, "write_whole", lambda *given: open_gate.wait() and write(*given))
    done, row = [], np.arange(4.0)
    states.save((row, 1), (), lambda: done.append(1))
    assert not (tmp_path / "states").exists()
    open_gate.set()
    states.save((row, 2), (), lambda: done.append(2))
    assert done[0] == 1
    states.wait()
    states.close()
    assert done == [1, 2]
    assert States(tmp_path / "states").newest(())[1] == 2


def test_a_checkpoint_that_cannot_be_written_is_an_error_at_the_next_one(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    states = States(tmp_path / "states")
    states.save((1,), (), lambda: None)
    states.wait()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        states.save((2,), (), lambda: None)
        with pytest.raises(OSError, match=r"not written: No space left on device.*2\.npz"):
            states.wait()
    assert os.listdir(tmp_path / "states") == ["1.npz"]
    states.save((3,), (), lambda: None)
    states.wait()
    states.close()
    assert sorted(os.listdir(tmp_path / "states")) == ["1.npz", "3.npz"]
    assert States(tmp_path / "states").newest(()) == (3,)
