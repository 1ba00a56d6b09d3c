"""Ctrl-C: the first ends the work with what there is, the second ends the process."""

import os
import signal
import socket
import sys
from contextlib import suppress
from threading import Thread, main_thread
from threading import enumerate as enumerate_threads
from typing import NoReturn

STATUS = 130  # of a command that Ctrl-C ended, as shells have it


def end_at_second_interrupt() -> None:
    """From now on a second Ctrl-C ends the process at once.

    Python raises a KeyboardInterrupt between two of its own instructions, so never while the compiler is at work. But
    its signal handler writes a byte into a socket at once, which a thread can wait for.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno())
    Thread(target=_watch, args=(reader, writer), daemon=True).start()


def end_at_once(status: int) -> NoReturn:
    """End the process without Python's shutdown, which can crash while the compiler is at work in another thread, and
    waits for all threads.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # there is none, or nobody reads it
            stream.flush()
    os._exit(status)


def threads_remain() -> bool:
    """Whether there are threads, as of the user's file, for which Python would wait at the end, perhaps for ever."""
    return any(not thread.daemon and thread is not main_thread() for thread in enumerate_threads())


def _watch(reader: socket.socket, writer: socket.socket) -> None:
    """Wait for two interrupts; holds both ends, which would be closed otherwise."""
    for _ in range(2):
        while reader.recv(1)[0] != signal.SIGINT:
            pass
    os._exit(STATUS)
