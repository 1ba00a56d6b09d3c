"""Checkpoints of the state of a run, written by Orbax: in the background, and as a whole or not at all."""

import importlib
import logging
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contourmc._core.checks import require
from contourmc._core.processes import from_first, process
from contourmc.checkpoints.packing import Arrays, pack, unpack

KEPT = 2  # the newest, and the one before in case that it is damaged


class States:
    """The checkpoints in a folder, numbered from 1."""

    def __init__(self, folder: Path):
        self._folder, self._manager = folder, None
        self._number = max(self._numbers(), default=0)

    @property
    def last(self) -> int:
        """The number of the last one."""
        return self._number

    def save(self, tree: Any, structures: Sequence[Any]) -> None:
        """Write a checkpoint in the background; raises if the one before could not be written."""
        manager = self._open()
        self._number += 1
        try:
            manager.save(self._number, args=_orbax().args.PyTreeSave(pack(tree, structures)), force=True)
        except BaseException:
            self._manager = None
            raise

    def wait(self) -> None:
        """Until the last checkpoint is complete; raises if it could not be written."""
        if self._manager is not None:
            try:
                self._manager.wait_until_finished()
                self._manager.check_for_errors()
            except BaseException:
                self._manager = None
                raise

    def close(self) -> None:
        """End the threads that write."""
        manager, self._manager = self._manager, None
        if manager is not None:
            manager.close()

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
        numbers = sorted(self._numbers(), reverse=True)
        for number in numbers:
            try:
                tree = unpack(self._read(number), structures)
            except Exception as error:
                reason = f"{type(error).__name__}: {str(error)[:200]}"
                message = (
                    f"checkpoint {number} in {self._folder} is damaged ({reason}), and the run goes on from the one"
                )
                warnings.warn(f"{message} before", stacklevel=2)
                continue
            for damaged in numbers[: numbers.index(number)]:  # aside: they must not count as the newest
                aside = self._folder.with_name(f"damaged-{damaged}")
                shutil.rmtree(aside, ignore_errors=True)
                (self._folder / str(damaged)).rename(aside)
            return number, tree
        remedy = "all its checkpoints are damaged; its draws can still be read (Samples.open). Choose another folder"
        require(not numbers, "checkpoint", str(self._folder.parent), remedy)
        return None, None

    def _numbers(self) -> list[int]:
        names = [path.name for path in self._folder.iterdir()] if self._folder.is_dir() else []
        return [int(name) for name in names if name.isdecimal()]

    def _read(self, number: int) -> Arrays:
        checkpointer, alone = _orbax(), _alone()
        handler = checkpointer.PyTreeCheckpointHandler(multiprocessing_options=alone)
        with checkpointer.Checkpointer(handler, multiprocessing_options=alone) as reader:
            path = self._folder / str(number) / "default"
            names = reader.metadata(path).item_metadata.tree
            read = {name: checkpointer.RestoreArgs(restore_type=np.ndarray) for name in names}
            return reader.restore(path, args=checkpointer.args.PyTreeRestore(restore_args=read))

    def _open(self) -> Any:
        if self._manager is None:
            orbax = _orbax()
            self._folder.mkdir(parents=True, exist_ok=True)
            options = orbax.CheckpointManagerOptions(
                max_to_keep=KEPT, create=False, cleanup_tmp_directories=True, multiprocessing_options=_alone()
            )
            self._manager = orbax.CheckpointManager(self._folder.resolve(), options=options)
        return self._manager


def _alone() -> Any:
    """For a process that reads or writes without waiting for others."""
    number, _ = process()
    prefix = f"contourmc-{number}"
    options = _orbax().options.MultiprocessingOptions
    return options(primary_host=number, active_processes={number}, barrier_sync_key_prefix=prefix)


def import_writers() -> None:
    """Import what writes checkpoints, which takes a while."""
    _orbax()
    for name in ("h5netcdf", "xarray", "zarr"):
        importlib.import_module(name)


def _orbax() -> Any:
    import orbax.checkpoint

    logging.getLogger("absl").addFilter(_not_of_orbax)
    return orbax.checkpoint


def _not_of_orbax(record: logging.LogRecord) -> bool:
    """False for all that Orbax logs: every checkpoint, and the traceback of each thread that fails, whose error it
    raises as well.
    """
    import orbax.checkpoint

    return not Path(record.pathname).is_relative_to(Path(orbax.checkpoint.__file__).parent)
