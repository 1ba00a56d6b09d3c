"""Runs in other processes: one with several virtual CPU devices, or several that make their runs together."""

import json
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 600  # after which a run is given up
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Layout:
    """processes: that make a run together.  devices: of each of them."""

    processes: int = 1
    devices: int = 1

    def __str__(self) -> str:
        devices = "1 device" if self.devices == 1 else f"{self.devices} devices"
        return devices if self.processes == 1 else f"{self.processes} processes of {devices}"


@dataclass(frozen=True)
class Worker:
    """One of the processes. Its output goes to files: a pipe that nobody reads would make it wait."""

    process: subprocess.Popen[bytes]
    out: Path
    errors: Path


def start(layout: Layout, runs: list[tuple[str, int]], folder: Path | None = None) -> list[Worker]:
    """The processes, which make runs of some kinds and numbers of steps, one after the other."""
    place = Path(tempfile.mkdtemp())
    task = dict(processes=layout.processes, devices=layout.devices, runs=runs, port=free_port())
    (place / "task.json").write_text(json.dumps(task | dict(folder=None if folder is None else str(folder))))
    return [_start(place, number) for number in range(layout.processes)]


def _start(place: Path, number: int) -> Worker:
    command = [sys.executable, "-m", "benchmarks.scaling.worker", str(place / "task.json"), str(number)]
    out, errors = place / f"{number}.out", place / f"{number}.err"
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        # Without closing files, Python needs no fork hook, about which JAX would warn.
        return Worker(subprocess.Popen(command, stdout=stdout, stderr=stderr, close_fds=False, cwd=ROOT), out, errors)


def finish(workers: list[Worker]) -> list[list[dict[str, Any]]]:
    """What each process found, run by run; raises if one failed."""
    try:
        for worker in workers:
            worker.process.wait(SECONDS)
    finally:
        kill(workers)
    for worker in workers:
        if worker.process.returncode:
            raise RuntimeError(worker.errors.read_text()[-3000:])
    return [[json.loads(line) for line in _lines(worker) if line.startswith("{")] for worker in workers]


def measure(layout: Layout, runs: list[tuple[str, int]], folder: Path | None = None) -> list[list[dict[str, Any]]]:
    """What each process found, run by run."""
    return finish(start(layout, runs, folder))


def kill(workers: list[Worker]) -> None:
    """As by the system, without a chance to say goodbye."""
    for worker in workers:
        if worker.process.poll() is None:
            worker.process.send_signal(signal.SIGKILL)
    for worker in workers:
        worker.process.wait()


def _lines(worker: Worker) -> list[str]:
    return worker.out.read_text().splitlines()


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
