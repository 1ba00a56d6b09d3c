"""Disks, folders and files that fail: the run goes on or stops with a clear error; the last good checkpoint stays."""

import errno
import os
import re
import shutil
import subprocess
import sys

import filelock
import numpy as np
import pytest
from benchmarks.torture.digest import digest

import contourmc as cm
from contourmc.checkpoints import keeper
from contourmc.draws import draw_store
from contourmc.draws.draw_store import DrawStore
from contourmc.sampling.kept_run import stored_call


def states(folder):
    return sorted((folder / "states").iterdir(), key=lambda path: int(path.stem))


def spoil(state):
    """Overwrite the second half, as a bad disk might."""
    content = state.read_bytes()
    state.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))


def flip(state):
    """Change one bit."""
    content = bytearray(state.read_bytes())
    content[len(content) // 3] ^= 1
    state.write_bytes(content)


@pytest.fixture
def twice(begin, tmp_path):
    """A folder with two checkpoints."""
    for _ in range(2):
        with begin() as run:
            run.advance(2000)
    return tmp_path / "run"


def whole(begin):
    run = begin(checkpoint=None)
    run.advance()
    return digest(run.samples())


def half(state):
    """As if a machine had lost power before all was on disk."""
    state.write_bytes(state.read_bytes()[: state.stat().st_size // 2])


def exchange(state):
    """Another file of NumPy's, with whole arrays that are not those that were written."""
    with np.load(state) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays["0"], arrays["1"] = arrays["1"], arrays["0"]
    with state.open("wb") as opened:
        np.savez(opened, **arrays)


def harm(state):
    """A pickle that would create a file."""
    with state.open("wb") as opened:
        np.savez(opened, outline=np.array([Harmful(state.with_name("harm"))], object))


class Harmful:
    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (str(self.file), "w")


@pytest.mark.parametrize("damage", [spoil, flip, half, exchange, harm, lambda state: state.write_bytes(b"")])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(twice, begin, damage):
    damage(states(twice)[-1])
    with pytest.warns(
        UserWarning, match=r"states/2.npz is damaged \(.*, and the run goes on from the checkpoint before"
    ):
        run = begin()
    assert not (twice / "states" / "harm").exists()
    assert (twice / "damaged-2.npz").exists()
    assert run.step == 2000
    with run:
        run.advance()
    assert digest(run.samples()) == whole(begin)
    assert [state.name for state in states(twice)] == ["1.npz", "3.npz"]


def test_without_any_good_checkpoint_nothing_is_begun_anew(twice, begin):
    for state in states(twice):
        spoil(state)
    words = (
        r"2.npz is damaged .*1.npz is damaged .*no checkpoint is left to go on from, and its draws can still be read"
    )
    with pytest.raises(ValueError, match=words):
        begin()
    assert cm.Samples.open(twice).energies.shape[1] == 800
    assert len(states(twice)) == 2


def test_only_two_checkpoints_are_kept(twice, begin):
    with begin() as run:
        run.advance()
    assert [path.name for path in states(twice)] == ["2.npz", "3.npz"]


def test_a_disk_that_fails_for_a_while_costs_nothing(twice, begin, monkeypatch):
    """Every write fails, and then none: the draws stay in memory, and all are there at the end."""
    write = DrawStore.write

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(keeper, "MOST_TIME", 1e9)
    with begin(checkpoint_every=0.0) as run:
        monkeypatch.setattr(DrawStore, "write", full)
        with pytest.warns(
            UserWarning, match=r"no checkpoint could be written to .*No space left.* goes on, and the last"
        ):
            run.advance(2000)
        with begin_elsewhere(twice) as copy:
            assert copy.step == 4000  # the last good one
        monkeypatch.setattr(DrawStore, "write", write)
        run.advance()
    assert digest(run.samples()) == whole(begin)
    assert digest(cm.Samples.open(twice)) == whole(begin)


def begin_elsewhere(folder):
    """The run of a copy of a folder, which is not locked."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    return cm.start(**stored_call(copy, None))


def test_a_run_whose_last_checkpoint_failed_is_extended(begin, monkeypatch):
    """No other process has gone on with it."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    run = begin()
    with monkeypatch.context() as patch:
        patch.setattr("contourmc.checkpoints.states.pack", full)
        with pytest.warns(UserWarning, match="no checkpoint could be written"):
            run.advance()
    run.extend(1000)
    run.advance()
    assert run.step == 9000
    run.close()


def test_a_read_only_folder_is_an_error_before_the_run(begin, monkeypatch, tmp_path):
    """Simulated, since tests may run as root, who can write everywhere."""

    def refused(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(filelock.FileLock, "acquire", refused)
    with pytest.raises(ValueError, match=r"run.* is not possible: it cannot be written: Permission denied\. Choose"):
        begin()
    assert not (tmp_path / "run").exists()


def test_a_folder_below_a_file_is_an_error_before_the_run(begin, tmp_path):
    (tmp_path / "file").write_text("mine")
    for folder, words in (("file", "it is a file"), ("file/run", "it cannot be written: Not a directory")):
        with pytest.raises(ValueError, match=words):
            begin(checkpoint=tmp_path / folder)
    assert (tmp_path / "file").read_text() == "mine"


VANISHING = """
import logging, shutil, sys
from pathlib import Path
import jax.numpy as jnp
import contourmc as cm
from contourmc.checkpoints import keeper
from contourmc.checkpoints.states import States

keeper.MOST_TIME = 1e9
logging.basicConfig()
folder, automatic = Path(sys.argv[1]), sys.argv[2] == "automatic"
save = States.save

def save_and_vanish(*arguments):
    save(*arguments)  # goes on in the background
    if (folder / "samples.nc").exists():  # since the checkpoint before
        shutil.rmtree(folder, ignore_errors=True)

def gone(act):
    try:
        act()
    except FileNotFoundError as error:
        print(error, flush=True)

States.save = save_and_vanish
run = cm.start(
    lambda x: 4 * jnp.sum((x**2 - 1) ** 2), init=jnp.ones(2), steps=30_000, chains=2, thin=4,
    kernel=None if automatic else cm.csgld(0.01, cm.Partition(low=0, width=0.5, bins=20)),
    checkpoint=folder, checkpoint_every=0.0,
)
gone(run.advance)
gone(run.close)
"""


@pytest.mark.parametrize("kind", ["kernel", "automatic"])
def test_a_folder_that_vanishes_ends_the_run_with_a_clear_error(tmp_path, kind):
    """Its draws are gone; another folder in its place would hold only a part of them."""
    command = [sys.executable, "-c", VANISHING, str(tmp_path / "run"), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stdout
    assert re.search(r"the folder of the run, .*run, is gone.*Begin the run anew", lines[0])
    assert "is gone" in lines[1]
    assert not (tmp_path / "run" / "draws-0.zarr" / "draws").exists()
    assert "Traceback" not in done.stderr


FULL = """
import resource, sys, warnings
import jax.numpy as jnp
import contourmc as cm
from contourmc.checkpoints import keeper

keeper.MOST_TIME = 1e9
run = cm.start(
    lambda x: jnp.sum((x**2 - 1) ** 2), init=jnp.ones(5), steps=40_000, kernel=cm.sgld(0.01), thin=1,
    checkpoint=sys.argv[1], checkpoint_every=0.0, chains=4,
)
with run:
    run.advance(10_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        run.advance(10_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print({str(one.message)[:33] for one in caught})
    run.advance()
opened = cm.Samples.open(sys.argv[1])
assert (opened.energies == run.samples().energies).all()
print(opened.energies.shape, opened.interrupted)
"""


def test_a_full_disk_is_a_warning_and_the_run_goes_on(tmp_path):
    """Files may not grow beyond a limit here, which writes cannot tell from a full disk."""
    command = [sys.executable, "-c", FULL, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["{'no checkpoint could be written to'}", "(4, 36000) False"]


def test_a_full_disk_does_not_cost_a_run_that_tunes_itself_its_draws(begin, monkeypatch):
    """Nothing can be written from the first step on, not even an empty store of draws, and later all of it."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def make(**changes):
        return begin(kernel=None, steps=4000, **changes)

    alone = make(checkpoint=None)
    alone.advance()
    run = make()
    with monkeypatch.context() as patch:
        patch.setattr(draw_store, "_create", full)
        patch.setattr(os, "fsync", full)
        with pytest.warns(UserWarning, match="no checkpoint could be written") as caught:
            run.advance()
    assert "Later draws are only in the samples of this run" in str(caught[-1].message)
    assert digest(run.samples()) == digest(alone.samples())
    with make() as again:
        again.advance()
    assert digest(again.samples()) == digest(alone.samples())


def test_a_run_that_diverged_says_so_again(tmp_path):
    def diverge():
        cm.sample(
            lambda x: -(x**4), init=1.0, steps=5000, kernel=cm.sgld(0.01), chains=1, thin=1, checkpoint=tmp_path / "run"
        )

    with pytest.raises(cm.DivergenceError) as first:
        diverge()
    with pytest.raises(cm.DivergenceError) as again:
        diverge()
    assert str(again.value) == str(first.value)
    np.testing.assert_array_equal(again.value.samples.energies, first.value.samples.energies)
