"""The writer of all files: as a whole or not at all, with the mode of an ordinary file, and through what is no file."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import contourmc as cm
from contourmc._core.whole_file import remove_unfinished, write_whole
from contourmc.draws.trajectory import Trajectory


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


@pytest.fixture
def samples():
    x = np.random.default_rng(0).normal(size=(2, 40, 3))
    trajectory = Trajectory(np.arange(1), np.zeros((2, 1)), None, None, None, None, None)
    return cm.Samples(x, *x.transpose(2, 0, 1), np.arange(40), trajectory, {}, 1.0)


def test_devices_are_written_to_and_stay_devices(samples, tmp_path):
    link = tmp_path / "run.nc"
    link.symlink_to("/dev/null")
    samples.save(link)
    write_whole(link, "text")
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert os.listdir(tmp_path) == ["run.nc"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_device_that_is_full_is_an_error_that_names_it(samples):
    for write in (lambda: samples.save("/dev/full"), lambda: write_whole(Path("/dev/full"), "text")):
        with pytest.raises(OSError, match=r"the file was not written: No space left on device: '/dev/full'"):
            write()
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_pipe_gets_the_whole_file(samples, tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    samples.save(pipe)
    reader.join()
    (tmp_path / "run.nc").write_bytes(got[0])
    np.testing.assert_array_equal(cm.Samples.load(tmp_path / "run.nc").draws, samples.draws)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


PRINTING = """
from pathlib import Path
from contourmc._core.whole_file import write_whole
print("before")
write_whole(Path("/dev/stdout"), "in the midst\\n")
print("after")
"""


@pytest.mark.parametrize("to", ["a file", "a pipe"])
def test_standard_output_is_written_to_in_order(tmp_path, to):
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", PRINTING], stdout=out if to == "a file" else subprocess.PIPE, check=True
        )
    found = (tmp_path / "out").read_bytes() if to == "a file" else done.stdout
    assert found == b"before\nin the midst\nafter\n"


def test_files_have_the_mode_that_an_ordinary_open_gives(tmp_path):
    new, older = tmp_path / "new", tmp_path / "older"
    older.touch()
    older.chmod(0o604)
    before = os.umask(0o027)
    try:
        write_whole(new, "text")
        write_whole(older, "text")
    finally:
        os.umask(before)
    assert (mode(new), mode(older)) == (0o640, 0o604)
    assert older.read_text() == "text"


def test_a_file_that_must_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    """Simulated, since tests may run as root, who can write everywhere."""
    file = tmp_path / "file"
    file.write_text("mine")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="the file was not written: Permission denied"):
        write_whole(file, "text")
    assert file.read_text() == "mine"
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_killed_process_leaves_can_be_told_and_removed(tmp_path):
    killed = "import os; from contourmc._core.whole_file import write_whole; from pathlib import Path\n"
    killed += f"write_whole(Path({str(tmp_path / 'file')!r}), lambda opened: os._exit(1))"
    subprocess.run([sys.executable, "-c", killed], check=False)
    (tmp_path / ".profile").touch()
    assert len(os.listdir(tmp_path)) == 2
    remove_unfinished(tmp_path)
    assert os.listdir(tmp_path) == [".profile"]
