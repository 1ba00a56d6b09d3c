"""How a run of several processes ends: an interruption or an error in one of them ends all after the same segment.

An exception at any moment, as in a single process, would leave the others waiting for one that has gone.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from contourmc._core.processes import largest, several
from contourmc.data.data_error import HostError

# Called after every call of the compiled program: the stage of the run, the steps done, and a note worth watching.
Report = Callable[[str, int, str], None]

# What all processes raise together; of other errors the others know nothing.
TOGETHER = (KeyboardInterrupt, SystemExit, HostError)
_INTERRUPTED, _TERMINATED, _FAILED = 1, 2, 3


@contextmanager
def ending_together(report: Report | None) -> Iterator[Report | None]:
    """A context in which a run is advanced, with what it is to call after every call of the program.

    If any process is interrupted or told to end, or its report raises, that raises in all of them. A single process is
    interrupted as always.
    """
    if not several():
        yield report
        return
    asked = 0

    def ask(number: int, _: Any) -> None:
        nonlocal asked
        asked = max(asked, _INTERRUPTED if number == signal.SIGINT else _TERMINATED)

    def agree(failure: BaseException | None) -> None:
        stopping = isinstance(failure, (KeyboardInterrupt, SystemExit))
        why = largest(asked if failure is None else _INTERRUPTED if stopping else _FAILED)
        if why == _FAILED:
            raise failure or RuntimeError("another process of the run has failed; its own message says why")
        if why == _TERMINATED:
            raise SystemExit(128 + signal.SIGTERM)
        if why == _INTERRUPTED:
            raise failure or KeyboardInterrupt

    def after_segment(stage: str, step: int, note: str) -> None:
        failure = None
        try:
            if report is not None:
                report(stage, step, note)
        except BaseException as error:
            failure = error
        agree(failure)

    with _signals(ask):
        yield after_segment
        agree(None)  # what came after the last segment


@contextmanager
def _signals(handle: Callable[[int, Any], None]) -> Iterator[None]:
    """A context in which Ctrl-C and SIGTERM are handled by a function; they reach the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
