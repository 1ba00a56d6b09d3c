"""Workers that evaluate an external energy side by side: processes, or threads of this one."""

import math
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np

from contourmc.data import worker_process
from contourmc.data.worker_process import Work, serve

_PAUSE = 0.05  # seconds between two looks at whether somebody still waits
_WORTH = 2e-4  # seconds of work that are worth handing over
_PARTING = 1.0  # seconds in which processes may end by themselves
# How many threads libraries start that have threads of their own.
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


class WorkerError(Exception):
    """The function failed, or a worker died.

    number: of the position at which it failed; −1 if it was none.
    traceback: of the worker; empty if it died.
    """

    def __init__(self, message: str, number: int, traceback: str = ""):
        super().__init__(message)
        self.number, self.traceback = number, traceback


@dataclass(frozen=True, eq=False)
class _Worker:
    """connection: to it.  process: None for a thread."""

    connection: Any
    process: Any


class WorkerPool:
    """Up to `most` workers, which are started when there is work for them.

    work: what they do.
    pickled: the same for processes; None for threads.

    After an error or an interruption all of them are ended, whatever they are doing, and new ones are started when
    there is work again. A thread that hangs is left behind, and ends with this process.
    """

    def __init__(self, most: int, work: Work, pickled: bytes | None):
        self._most, self._work, self._pickled = most, work, pickled
        self._workers: list[_Worker] = []
        self._seconds = 1.0  # that a position takes, as last seen
        weakref.finalize(self, _end, self._workers, 0.0)  # at the latest when the interpreter exits

    def evaluate(self, positions: np.ndarray, seeds: np.ndarray | None, stopped: Callable[[], bool]) -> np.ndarray:
        """The energy of each position, with the gradient if the function gives it.

        Raises a `WorkerError`, or an `InterruptedError` if waiting for it is `stopped`.
        """
        try:
            return self._evaluated(positions, seeds, stopped)
        except BaseException:
            _end(self._workers, 0.0)
            raise

    def close(self) -> None:
        _end(self._workers, _PARTING)

    def _evaluated(self, positions: np.ndarray, seeds: np.ndarray | None, stopped: Callable[[], bool]) -> np.ndarray:
        """Parts are dealt to workers that wait for one, and become smaller towards the end, so that all end together;
        but not so small that to hand one over takes longer than to evaluate it.
        """
        from multiprocessing.connection import wait  # not above: most runs need no workers

        count, begin = len(positions), 0
        least = math.ceil(_WORTH / self._seconds)
        while len(self._workers) < min(self._most, count):
            self._workers.append(_process(self._pickled) if self._pickled is not None else _thread(self._work))
        idle, answers = self._workers[:count], {}
        busy: dict[Any, tuple[_Worker, int]] = {}
        while begin < count or busy:
            while idle and begin < count:
                end = min(count, begin + max(least, -(-(count - begin) // (len(self._workers) + 1))))
                worker, part = idle.pop(), slice(begin, end)
                busy[worker.connection] = worker, begin
                _talk(worker, lambda to, part=part: to.send((positions[part], None if seeds is None else seeds[part])))
                begin = end
            for connection in wait(list(busy), _PAUSE):
                worker, first = busy.pop(connection)
                idle.append(worker)
                answer, told = _talk(worker, lambda to: to.recv())
                if isinstance(told, str):
                    number = answer if answer < 0 else first + answer
                    raise WorkerError(told.strip().rpartition("\n")[2], number, told)
                answers[first] = answer
                self._seconds = max(told / len(answer), 1e-7)
            if stopped():
                raise InterruptedError("the run was interrupted")
        return np.concatenate([answers[first] for first in sorted(answers)])


def _talk(worker: _Worker, say: Callable[[Any], Any]) -> Any:
    """Send to a worker or receive from it; raises a `WorkerError` if it has died."""
    try:
        return say(worker.connection)
    except (EOFError, OSError) as error:
        status = None if worker.process is None else _status(worker.process)
        message = f"the worker process died ({status}) while it evaluated the energy"
        raise WorkerError(message, -1) from error


def _status(process: Any) -> str:
    try:
        status = process.wait(_PARTING)
    except subprocess.TimeoutExpired:
        return "it closed its connection"
    if status >= 0:
        return f"exit status {status}"
    return f"signal {-status}, {signal.strsignal(-status) or 'unknown'}"


def _process(pickled: bytes) -> _Worker:
    """A process of its own session: Ctrl-C in a terminal does not reach it, and what it starts ends with it."""
    ours, theirs = _pipe()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", worker_process.__file__, str(theirs.fileno())], stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()], start_new_session=True, env=_environment(),
        )  # fmt: skip
    worker = _Worker(ours, process)
    _talk(worker, lambda to: to.send((sys.path, pickled)))
    return worker


def _environment() -> dict[str, str]:
    """One thread for each worker, unless the user has decided otherwise; accelerators belong to the run."""
    return dict.fromkeys(_THREADS, "1") | dict(os.environ) | {"JAX_PLATFORMS": "cpu"}


def _thread(work: Work) -> _Worker:
    ours, theirs = _pipe()
    Thread(target=serve, args=(theirs, work), name="contourmc energy", daemon=True).start()
    return _Worker(ours, None)


def _pipe() -> tuple[Any, Any]:
    from multiprocessing import Pipe

    return Pipe()


def _end(workers: list[_Worker], seconds: float) -> None:
    """End all workers; processes that have not ended by themselves after so many seconds are killed."""
    ending, workers[:] = workers[:], []
    for worker in ending:
        worker.connection.close()
    until = time.monotonic() + seconds
    for process in (worker.process for worker in ending if worker.process is not None):
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # also what it has started
            process.wait()
