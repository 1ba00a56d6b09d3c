"""How a run ends early: by Ctrl-C, which must not get lost; and in several processes after the same segment.

There an exception at any moment, as in a single process, would leave the others waiting for one that has gone.
"""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from contourmc._core.processes import largest, several
from contourmc.data.data_error import HostError

# Called after every call of the compiled program: the stage of the run, the steps done, and a note worth watching.
Report = Callable[[str, int, str], None]

# What all processes raise together; of other errors the others know nothing.
TOGETHER = (KeyboardInterrupt, SystemExit, HostError)
_INTERRUPTED, _TERMINATED, _FAILED = 1, 2, 3


class _Interrupts:
    """A handler of SIGINT.  asked: whether one has come that nobody has heeded."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, _: int, frame: FrameType | None) -> None:
        self.asked = True
        code = None if frame is None else frame.f_code
        if all(getattr(callback, "__code__", None) is not code for callback in gc.callbacks):
            raise KeyboardInterrupt


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """A context in which Ctrl-C raises a KeyboardInterrupt; if it gets lost, `raise_lost_interrupt` raises it again.

    It gets lost where Python ignores exceptions, as in what JAX calls at every garbage collection, where signals are
    often handled after a long compilation. The handler of asyncio gives way to this one, since it would end the
    task at its next `await`, after the run and without its draws. A handler of the user's own stays, and so does the
    one of a context around this.
    """
    before = signal.getsignal(signal.SIGINT)
    usual = before is signal.default_int_handler or _of_asyncio(before)
    if threading.current_thread() is not threading.main_thread() or not usual:
        yield
        return
    signal.signal(signal.SIGINT, _Interrupts())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def raise_lost_interrupt() -> None:
    """Called now and then inside of `heeding_interrupts`."""
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if main and isinstance(handler, _Interrupts) and handler.asked:
        handler.asked = False
        raise KeyboardInterrupt


def _of_asyncio(handler: Any) -> bool:
    """Whether a handler is the one that `asyncio.run` sets: a `partial` of a method of `asyncio.Runner`."""
    asyncio = sys.modules.get("asyncio")
    method = getattr(handler, "func", None)
    return asyncio is not None and isinstance(getattr(method, "__self__", None), asyncio.Runner)


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
