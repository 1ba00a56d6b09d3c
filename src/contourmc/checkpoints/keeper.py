"""When checkpoints of a run are written, and what happens if they cannot be."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from contourmc._core.checks import require
from contourmc._core.progress import COMPILING
from contourmc._core.pytrees import Position
from contourmc.checkpoints.folder import RunFolder
from contourmc.checkpoints.states import States
from contourmc.checkpoints.termination import STATUS, Termination, heeding_termination
from contourmc.draws.run_files import write_summary
from contourmc.engine.run import Keeper, Run
from contourmc.engine.together import Report

MOST_TIME = 0.02  # of a run, for its checkpoints


class Checkpoint(NamedTuple):
    """run: what `Run.saved` gave.
    data: what `Target.data_state` gave.
    probe: the energies where the chains are, by which another energy is noticed; None for data from a loader.
    """

    run: Any
    data: Any
    probe: np.ndarray | None


class FolderKeeper(Keeper):
    """Writes checkpoints of a run to its folder.

    every: the least seconds between two of them; more if they would take too much of the time.
    structures: of the pytrees of the user's that are part of the run's state.
    probe: the energies at stacked positions; None for a target that cannot be asked at any time.
    """

    def __init__(
        self,
        folder: RunFolder,
        every: float,
        structures: Sequence[Any],
        probe: Callable[[Position], np.ndarray] | None,
    ):
        self._folder, self._every, self._structures, self._probe = folder, every, structures, probe
        self._states = States(folder.states)
        self._next, self._stage, self._step = time.monotonic() + every, "", -1

    def restore(self, run: Run) -> Any:
        """Let the run go on from the newest checkpoint; returns the state of its data, and does nothing without one."""
        run.keep_in(self._folder.path)
        checkpoint: Checkpoint | None = self._states.newest(self._structures)
        if checkpoint is None:
            return None
        run.restore(checkpoint.run)
        self._step = run.step
        if self._probe is not None and checkpoint.probe is not None:
            now = self._probe(run.positions)
            same = np.allclose(now, checkpoint.probe, rtol=1e-4, atol=1e-4, equal_nan=True)
            remedy = "the energy is not that of the run in it: where chain 0 is, it was"
            remedy += f" {checkpoint.probe[0]:.6g} and is {now[0]:.6g} now. Give the same target, or another folder"
            require(same, "checkpoint", str(self._folder.path), remedy)
        return checkpoint.data

    @contextmanager
    def watch(self, run: Run, report: Report | None) -> Iterator[Report]:
        with heeding_termination() as termination:
            try:
                yield lambda stage, step, note: self._after_segment(run, report, termination, stage, step, note)
            finally:
                self._save(run, wait=True)
                self._states.close()
        if termination.asked:
            raise SystemExit(STATUS)

    def _after_segment(
        self, run: Run, report: Report | None, termination: Termination, stage: str, step: int, note: str
    ) -> None:
        if report is not None:
            report(stage, step, note)
        if termination.asked:
            raise SystemExit(STATUS)  # the last checkpoint is written on the way out
        changed = self._stage not in ("", stage)
        self._stage = stage
        if note != COMPILING and (changed or time.monotonic() >= self._next):
            self._save(run, wait=False)

    def _save(self, run: Run, *, wait: bool) -> None:
        """Write a checkpoint; if that fails, warn and go on: the last good one stays."""
        began = time.monotonic()
        try:
            if run.step != self._step:
                run.flush()
                probe = None if self._probe is None else self._probe(run.positions)
                self._states.save(Checkpoint(run.saved(), run.target.data_state(run.step), probe), self._structures)
                write_summary(run.samples(on_disk=False), self._folder.path, run.store_name, run.draws)
                self._step = run.step
            if wait:
                self._states.wait()
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200] if str(error) else ''}"
            message = f"no checkpoint could be written to {self._folder.path} ({reason}). The run goes on, and the last"
            warnings.warn(f"{message} good checkpoint is as it was", stacklevel=3)
            self._step = -1
        now = time.monotonic()
        self._next = now + max(self._every, (now - began) / MOST_TIME)
