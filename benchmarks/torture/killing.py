"""Kill a run at a random time, resume it, and again, until it ends; then compare."""

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Trial:
    """digest: of the result.  kills: how often the run was killed on the way.  seconds: of the last process."""

    digest: str
    kills: int
    seconds: float


def uninterrupted(kind: str, folder: Path | None = None) -> Trial:
    """A run that nobody disturbs."""
    with _worker(kind, folder) as worker:
        _begun(worker)
        began = time.monotonic()
        return Trial(_result(worker), 0, time.monotonic() - began)


def tortured(kind: str, folder: Path, kills: int, seconds: float, random: np.random.Generator) -> Trial:
    """A run that is killed so many times, each at a random time within so many seconds, unless it ends before."""
    done = 0
    while done < kills:
        with _worker(kind, folder) as worker:
            _begun(worker)
            try:
                worker.wait(random.uniform(0, seconds))
                return Trial(_result(worker), done, 0.0)
            except subprocess.TimeoutExpired:
                worker.send_signal(signal.SIGKILL)
                done += 1
    trial = uninterrupted(kind, folder)
    return Trial(trial.digest, done, trial.seconds)


def _worker(kind: str, folder: Path | None) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.torture.worker", kind, "-" if folder is None else str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _begun(worker: "subprocess.Popen[str]") -> None:
    assert worker.stdout is not None
    if worker.stdout.readline().strip() != "begun":
        raise RuntimeError(worker.communicate()[1][-2000:])


def _result(worker: "subprocess.Popen[str]") -> str:
    out, errors = worker.communicate()
    if worker.returncode:
        raise RuntimeError(errors[-2000:])
    return out.strip()
