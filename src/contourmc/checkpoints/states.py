"""Checkpoints of the state of a run, written in the background, each as a whole or not at all.

Each is a file of NumPy's, such as `states/3.npz`, in which nothing is pickled: the arrays of the state, an outline that
says where they belong, and a digest of all of it.
"""

import warnings
from collections.abc import Callable, Sequence
from concurrent import futures
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from contourmc._core.checks import require
from contourmc._core.processes import from_first
from contourmc._core.whole_file import write_whole
from contourmc.checkpoints.packing import Arrays, pack, sealed, unpack

KEPT = 2  # the newest, and the one before in case that it is damaged


class States:
    """The checkpoints in a folder, numbered from 1."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._number = max(self._numbers(), default=0)
        self._thread: futures.ThreadPoolExecutor | None = None
        self._writing: futures.Future[None] | None = None

    @property
    def last(self) -> int:
        """The number of the last one."""
        return self._number

    def save(self, tree: Any, structures: Sequence[Any], afterwards: Callable[[], None]) -> None:
        """Write a checkpoint in the background, and then what belongs to it; raises if the one before was not written.

        The arrays are copied to the host now, so that the run can go on meanwhile.
        """
        self.wait()
        arrays = pack(tree, structures)
        self._number += 1
        self._thread = self._thread or futures.ThreadPoolExecutor(1, "contourmc-checkpoints")
        self._writing = self._thread.submit(self._write, self._number, arrays, afterwards)

    def wait(self) -> None:
        """Until the last checkpoint is complete; raises if it could not be written."""
        if self._writing is None:
            return
        futures.wait([self._writing])  # Ctrl-C may end the waiting, and must not lose the error
        writing, self._writing = self._writing, None
        writing.result()

    def close(self) -> None:
        """End the thread that writes, after what it is writing."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    def newest(self, structures: Sequence[Any]) -> Any:
        """What the newest checkpoint holds, or the one before if it is damaged; None if there is none."""
        found: list[Any] = []

        def find() -> int | None:
            number, tree = self._newest(structures)
            found.append(tree)
            return number

        number = from_first(find)
        if not found:  # by another process
            found.append(None if number is None else unpack(self._read(number), structures))
            self._number = max(self._numbers(), default=0)
        return found[0]

    def _newest(self, structures: Sequence[Any]) -> tuple[int | None, Any]:
        """The number of the newest that is not damaged, and what it holds."""
        damaged: dict[int, str] = {}
        for number in sorted(self._numbers(), reverse=True):
            try:
                tree = unpack(self._read(number), structures)
            except Exception as error:
                damaged[number] = f"{self._file(number)} is damaged ({type(error).__name__}: {str(error)[:200]})"
                continue
            for other, reason in damaged.items():
                warnings.warn(f"{reason}, and the run goes on from the checkpoint before it", stacklevel=2)
                # Aside: it must not count as the newest.
                self._file(other).replace(self._folder.with_name(f"damaged-{self._file(other).name}"))
            return number, tree
        remedy = f"{'; '.join(damaged.values())}: no checkpoint is left to go on from, and its draws can still be read"
        require(not damaged, "checkpoint", str(self._folder.parent), f"{remedy} (Samples.open). Choose another folder")
        return None, None

    def _numbers(self) -> list[int]:
        files = self._folder.glob("*.npz") if self._folder.is_dir() else ()
        return [int(file.stem) for file in files if file.stem.isdecimal()]

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}.npz"

    def _write(self, number: int, arrays: Arrays, afterwards: Callable[[], None]) -> None:
        if not self._folder.parent.exists():  # or it would be made again
            raise FileNotFoundError(f"the folder {self._folder.parent} is gone")
        whole: Any = sealed(arrays)
        write_whole(self._file(number), lambda opened: np.savez(opened, **whole))
        for older in sorted(self._numbers())[:-KEPT]:
            with suppress(OSError):
                self._file(older).unlink()
        afterwards()

    def _read(self, number: int) -> Arrays:
        with self._file(number).open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
