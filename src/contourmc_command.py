"""The `contourmc` command, up to the import of its package.

That takes a second, in which Ctrl-C must end the command as it does later. So this module stands beside the package.
"""

import os
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

STATUS = 130  # of a command that Ctrl-C ended, as shells have it


def main() -> None:
    """The entry point of the command."""
    _fill_standard_streams()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # in the background of a shell it is ignored
        signal.signal(signal.SIGINT, _end)
    from contourmc.cli import main as run

    try:
        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        _end()


def _end(*_: Any) -> NoReturn:
    """End the process, at any point of an import, some of which would turn a KeyboardInterrupt into another error."""
    with suppress(OSError):
        os.write(2, b"interrupted: nothing was done\n")
    os._exit(STATUS)


def _fill_standard_streams() -> None:
    """Open those that are closed, as in a daemon: else the next file takes their place, and gets what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None and os.open(os.devnull, os.O_RDWR) == number:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
