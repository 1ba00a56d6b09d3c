"""Ctrl-C in a run of several processes: all of them end after the same segment.

An exception at any moment, as in a single process, would leave the others waiting for one that has gone.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contourmc._core.processes import any_process, several

# Called after every call of the compiled program: the stage of the run, the steps done, and a note worth watching.
Report = Callable[[str, int, str], None]


@contextmanager
def interrupted_together(report: Report | None) -> Iterator[Report | None]:
    """A context in which a run is advanced, with what it is to call after every call of the program.

    That raises a `KeyboardInterrupt` in all processes if any of them has been interrupted. A single process is
    interrupted as always.
    """
    if not several():
        yield report
        return
    asked = threading.Event()

    def after_segment(stage: str, step: int, note: str) -> None:
        if report is not None:
            report(stage, step, note)
        if any_process(asked.is_set()):
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # signals reach only the main one
        yield after_segment
        return
    before = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield after_segment
    finally:
        signal.signal(signal.SIGINT, before)
