"""The one way in which the library writes a file: as a whole or not at all."""

import errno
import os
import re
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO, FileIO
from pathlib import Path
from secrets import token_hex
from typing import Any

# Writes to an opened binary file that can be read, sought and cut, such as HDF5 needs.
Writer = Callable[[Any], Any]

_ASIDE = re.compile(r"\..+\.[0-9a-f]{8}")  # the names of files that are being written


class _ShieldedFile(FileIO):
    """A file whose failures HDF5 does not see, since they would bring the process down: the first is kept instead."""

    failure: BaseException | None = None

    def write(self, data: Any, /) -> int:
        if self.failure is None:
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[super().write(rest) :]
            except BaseException as error:
                self.failure = error
        return len(data)

    def truncate(self, size: int | None = None, /) -> int:
        try:
            return super().truncate(size)
        except BaseException as error:
            self.failure = self.failure or error
            return 0 if size is None else size


def write_whole(file: Path, content: str | bytes | Writer) -> None:
    """Write a file; if that fails, an older file of the same name stays as it was.

    The new file is written aside, and takes the name when it is complete and on the disk, so that also a machine that
    loses power leaves the one or the other. It has the mode that an ordinary `open` would give it: that of the older
    file, or what the umask leaves. Links are followed. What is not an ordinary file, such as a pipe, `/dev/null` or
    `/dev/stdout`, is written to, and stays what it is.

    content: text, bytes, or a function that writes to an opened file.
    """
    try:
        stream = _stream(file)
        if stream is None:
            _replace(Path(os.path.realpath(file)), content)
        else:
            with FileIO(stream, "w") as opened:
                if callable(content):  # which may want to go back in the file
                    _write(buffer := BytesIO(), content)
                    content = buffer.getvalue()
                _write(opened, content)
    except OSError as error:
        raise OSError(error.errno, f"the file was not written: {error.strerror or error}", str(file)) from None


def is_unfinished(name: str) -> bool:
    """Whether a file of this name is one that `write_whole` has not completed."""
    return _ASIDE.fullmatch(name) is not None


def remove_unfinished(folder: Path) -> None:
    """Remove what processes that were killed have left in a folder; no other process may be writing to it now."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if is_unfinished(entry.name):
            with suppress(OSError):
                entry.unlink()


def _replace(file: Path, content: str | bytes | Writer) -> None:
    aside = file.with_name(f".{file.name}.{token_hex(4)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _ShieldedFile(aside, "x+") as opened:
            _keep_mode(file, aside)
            try:
                _write(opened, content)
            finally:
                if opened.failure is not None:
                    raise opened.failure
            os.fsync(opened.fileno())  # some file systems notice only now that they are full
        os.replace(aside, file)
    finally:
        with suppress(OSError):
            aside.unlink()
    _sync_folder(file.parent)


def _write(opened: Any, content: str | bytes | Writer) -> None:
    if callable(content) and threading.current_thread() is not threading.main_thread():
        content(opened)
    elif callable(content):
        # In a thread of its own: Ctrl-C interrupts the main thread alone, and so never a call from HDF5.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(content, opened).result()
    else:
        rest = memoryview(content.encode() if isinstance(content, str) else content)
        while rest:
            rest = rest[opened.write(rest) :]


def _keep_mode(file: Path, aside: Path) -> None:
    """Give the new file the mode and the owner of the older one; raise if that must not be written."""
    try:
        older = file.stat()
    except FileNotFoundError:
        return
    if not os.access(file, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    new = aside.stat()
    if (older.st_uid, older.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):  # only some may give files away
            os.chown(aside, older.st_uid, older.st_gid)
    aside.chmod(stat.S_IMODE(older.st_mode))


def _stream(file: Path) -> int | None:
    """A descriptor of what must be written to and not replaced; None for an ordinary file, or none."""
    try:
        found = file.stat()
    except OSError:
        return None
    for descriptor, output in ((1, sys.stdout), (2, sys.stderr)):
        # Through it, and not by its name: then what is printed before, perhaps to an ordinary file, stays before it.
        with suppress(OSError):  # it may be closed
            if os.path.samestat(os.fstat(descriptor), found):
                if output is not None:
                    output.flush()
                return os.dup(descriptor)
    return None if stat.S_ISREG(found.st_mode) else os.open(file, os.O_WRONLY)


def _sync_folder(folder: Path) -> None:
    """Let the file's name be on the disk too, where a system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
