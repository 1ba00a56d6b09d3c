"""`contourmc sample`, `resume` and `show`: runs that are cut, extended, and looked at."""

import signal
import subprocess
import sys

import pytest
from benchmarks.torture.digest import digest
from typer.testing import CliRunner

import contourmc as cm
from contourmc._core.progress import Progress
from contourmc.checkpoints.folder import RunFolder
from contourmc.cli.main import app

MINE = """
def energy(x):
    return 8 * (x**2 - 1) ** 2
"""
TIMEOUT = 120  # seconds; of a process that does not end


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "mine.py").write_text(MINE)
    return f"{tmp_path / 'mine.py'}:energy"


def call(*words):
    result = CliRunner().invoke(app, [*map(str, words)])
    return result.exit_code, " ".join(result.output.split())


def sample(mine, out, *words):
    return call("sample", mine, "--init", "1.0", "--chains", 2, "--steps", 4000, "--out", out, *words)


@pytest.fixture
def cut(monkeypatch):
    """Ctrl-C at a report of a stage; afterwards, none."""

    def during(stage, number=2):
        seen = []

        def update(self, name, step, note=""):
            seen.append(name)
            if seen.count(stage) == number:
                raise KeyboardInterrupt

        monkeypatch.setattr(Progress, "update", update)

    return during


def draws(out):
    return digest(cm.Samples.load(out / "draws.nc"))


@pytest.mark.parametrize("stage", ["pilot", "sampling"])
def test_the_same_command_or_resume_goes_on_where_a_run_was_cut(mine, cut, tmp_path, stage):
    whole, again, resumed = (tmp_path / name for name in ("whole", "again", "resumed"))
    assert sample(mine, whole)[0] == 0
    for out in (again, resumed):
        cut(stage)
        code, output = sample(mine, out)
        assert code == 130
        assert f"To go on: contourmc resume {out}" in output
    cut("none")
    assert sample(mine, again)[0] == 0
    assert call("resume", resumed)[0] == 0
    assert draws(again) == draws(resumed) == draws(whole)


def test_more_steps_extend_a_run_and_fewer_are_refused(mine, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for out in (one, two):
        assert sample(mine, out)[0] == 0
    code, output = sample(mine, one, "--steps", 6000)
    assert code == 0, output
    assert call("resume", two, "--steps", 6000)[0] == 0
    assert draws(one) == draws(two)
    assert cm.Samples.load(one / "draws.nc").settings["steps"] == 6000
    code, output = sample(mine, one)
    assert code == 2
    assert "is to make 6,000: give as many, or more to extend it" in output
    code, output = sample(mine, one, "--force")
    assert code == 0
    assert cm.Samples.load(one / "draws.nc").settings["steps"] == 4000


def test_show_tells_where_a_run_stands(mine, cut, tmp_path):
    out = tmp_path / "out"
    cut("pilot")
    sample(mine, out)
    code, output = call("show", out)
    assert code == 0
    assert "The run is not running; at its last checkpoint it had made" in output
    assert "of 4,000 steps of 2 chains (pilot)" in output
    assert "It has no draws yet." in output
    cut("none")
    sample(mine, out)
    with RunFolder(out / "run").lock():  # as if another process ran it
        code, output = call("show", out)
        assert code == 0
        assert "The run is running; at its last checkpoint it had made 4,000 of 4,000 steps" in output
        assert "mean" in output
        code, output = call("resume", out)
        assert code == 2
        assert "another process is running it" in output
        code, output = sample(mine, out, "--force")
        assert code == 2
        assert "another process is running it" in output
    assert call("show", out / "run")[0] == 0


@pytest.mark.parametrize("command", ["show", "resume"])
def test_a_folder_without_a_run_is_named(command, tmp_path):
    code, output = call(command, tmp_path)
    assert code == 2
    assert "holds no run" in output
    code, output = call(command, tmp_path / "none")
    assert code == 2
    assert not (tmp_path / "none").exists()


def test_sigterm_ends_the_command_with_a_checkpoint(mine, tmp_path):
    """A run of a minute or more is told to end when it has begun to sample."""
    out = tmp_path / "out"
    words = ["sample", mine, "--init", "1.0", "--chains", "1", "--steps", "50000000", "--out", str(out)]
    program = "from contourmc.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        while not (out / "run" / "states").exists():  # it is made for the first change of stage
            assert process.poll() is None, process.stderr.read()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.1)
        process.send_signal(signal.SIGTERM)
        printed, errors = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 143, errors
    assert b"Terminated; a checkpoint was written. To go on: contourmc resume" in printed
    assert call("show", out)[0] == 0
