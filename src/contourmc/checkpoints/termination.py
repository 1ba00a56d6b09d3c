"""SIGTERM, by which schedulers announce the end: the run writes a checkpoint before it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STATUS = 128 + signal.SIGTERM


class Termination:
    """asked: whether the process has been told to end."""

    def __init__(self) -> None:
        self.asked = False

    def _ask(self, *_: Any) -> None:
        self.asked = True


@contextmanager
def heeding_termination() -> Iterator[Termination]:
    """A context in which SIGTERM does not end the process but is noted; only the main thread can do this."""
    termination = Termination()
    if threading.current_thread() is not threading.main_thread():
        yield termination
        return
    before = signal.signal(signal.SIGTERM, termination._ask)
    try:
        yield termination
    finally:
        signal.signal(signal.SIGTERM, before)
