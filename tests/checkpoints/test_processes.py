"""One folder and several processes: the lock, and SIGTERM."""

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from benchmarks.torture.digest import digest

import contourmc as cm
from contourmc.checkpoints.folder import RunFolder

TIMEOUT = 120  # seconds; of a process that does not end

# A run that prints a line for every report, and goes on for hours.
RUN = """
import sys
import jax.numpy as jnp
import contourmc as cm

def wells(x):
    return 4 * jnp.sum((x**2 - 1) ** 2)

run = cm.start(
    wells, init=jnp.ones(2), steps=10**9, kernel=cm.sgld(0.001), chains=2, thin=1000, checkpoint=sys.argv[1],
    checkpoint_every=0.0,
)
with run:
    run.advance(report=lambda stage, step, note: print(step, flush=True))
"""


@contextmanager
def started(folder):
    """A process that has begun to sample, and does not outlive the test."""
    words = [sys.executable, "-c", RUN, str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while process.stdout.readline().strip() in ("0", ""):
            assert process.poll() is None, process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_folder_that_runs_is_refused_until_its_process_ends_however_it_ends(tmp_path):
    folder = tmp_path / "run"
    with started(folder) as process:
        with pytest.raises(ValueError, match="another process is running it: wait for it or end it"):
            cm.resume(folder)
        assert RunFolder(folder).is_locked()
        process.kill()
        process.wait(TIMEOUT)
    assert not RunFolder(folder).is_locked()
    with RunFolder(folder).lock():
        pass


def test_two_runs_in_one_process_are_refused_too(begin):
    with begin(), pytest.raises(ValueError, match="another process is running it"):
        begin()
    begin().close()


def test_sigterm_writes_a_checkpoint_and_ends_with_the_code_of_schedulers(tmp_path):
    with started(tmp_path / "run") as process:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 128 + 15, errors
    assert "Traceback" not in errors
    assert cm.Samples.open(tmp_path / "run").interrupted
    assert list((tmp_path / "run" / "states").iterdir())


def test_a_terminated_run_goes_on_bit_for_bit(begin):
    """Here the signal comes with the third report."""
    seen = []

    def terminate(*_):
        seen.append(0)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    run = begin(steps=20_000)
    with run, pytest.raises(SystemExit) as ended:
        run.advance(report=terminate)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
    assert 0 < run.step < run.steps
    with begin(steps=20_000) as resumed:
        assert resumed.step == run.step
        resumed.advance()
    whole = begin(steps=20_000, checkpoint=None)
    whole.advance()
    assert digest(resumed.samples()) == digest(whole.samples())
