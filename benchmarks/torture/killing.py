"""Kill a run at a random time, resume it, and again, until it ends."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MOST_SAVED = 3  # checkpoints that a process begins to write before it is killed
MOST_SECONDS = 0.3  # after that


@dataclass(frozen=True)
class Trial:
    """digest: of the result.  kills: how often the run was killed on the way."""

    digest: str
    kills: int


def tortured(
    kind: str, folder: Path | None, kills: int, random: np.random.Generator, share: float = 1.0, broken: str = "-"
) -> Trial:
    """A run that is killed so many times, unless it ends before; without a folder it cannot go on, so never.

    Each process is killed a random time after it began to write a random one of its first checkpoints, or to run.
    """
    for done in range(kills):
        with _worker(kind, folder, share, broken) as worker:
            ended = _ended_before(worker, int(random.integers(0, MOST_SAVED, endpoint=True)))
            if not ended:
                time.sleep(random.uniform(0, MOST_SECONDS))
            if ended or worker.poll() is not None:
                return Trial(ended or _result(worker), done)
            worker.kill()
    with _worker(kind, folder, share, broken) as worker:
        return Trial(_result(worker), kills)


def _worker(kind: str, folder: Path | None, share: float, broken: str) -> "subprocess.Popen[str]":
    place = "-" if folder is None else str(folder)
    command = [sys.executable, "-m", "benchmarks.torture.worker", kind, place, str(share), broken]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended_before(worker: "subprocess.Popen[str]", checkpoints: int) -> str:
    """Wait until the run has begun to write so many checkpoints; returns the result if it ends before, else nothing."""
    assert worker.stdout is not None
    for line in worker.stdout:
        if line.strip() not in ("begun", "saving"):
            return line.strip()
        checkpoints -= line.strip() == "saving"
        if checkpoints <= 0:
            return ""
    return _result(worker)


def _result(worker: "subprocess.Popen[str]") -> str:
    out, errors = worker.communicate()
    if worker.returncode:
        raise RuntimeError(errors[-2000:])
    return out.split()[-1]
