"""Files that HDF5 writes, as a whole or not at all."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import FileIO
from pathlib import Path
from secrets import token_hex
from typing import Any


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


def write_whole(file: Path, write: Callable[[FileIO], Any]) -> None:
    """Let a function write a file; if it fails, an older file of the same name stays as it was.

    The new file is written aside, and takes the name when it is complete.
    """
    target = Path(os.path.realpath(file))
    aside = target.with_name(f".{target.name}.{token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # In a thread of its own: Ctrl-C interrupts the main thread alone, and so never a call from HDF5.
        with _ShieldedFile(aside, "w+") as opened, ThreadPoolExecutor(1) as thread:
            try:
                thread.submit(write, opened).result()
            finally:
                if opened.failure is not None:
                    raise opened.failure
            os.fsync(opened.fileno())  # some file systems notice only now that they are full
        aside.replace(target)
    except OSError as error:
        raise OSError(error.errno, f"the file was not written: {error.strerror or error}", str(file)) from None
    finally:
        with suppress(OSError):
            aside.unlink()
