"""When checkpoints of a run are written, and what happens if they cannot be.

Of several processes the first decides and writes them; all make what they hold together.
"""

import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

from contourmc._core.checks import require
from contourmc._core.processes import any_process, from_first, in_all, several
from contourmc._core.progress import COMPILING
from contourmc._core.pytrees import Position
from contourmc.checkpoints.folder import RunFolder
from contourmc.checkpoints.identity import tolerance
from contourmc.checkpoints.states import States
from contourmc.checkpoints.termination import STATUS, Termination, heeding_termination
from contourmc.draws.run_files import write_summary
from contourmc.engine.run import Keeper, Run
from contourmc.engine.together import TOGETHER, Report

MOST_TIME = 0.02  # of a run, for its checkpoints
MOST_BYTES = 2**26  # of draws in memory, before they are written to disk without a checkpoint


class Checkpoint(NamedTuple):
    """run: what `Run.saved` gave.
    data: what `Target.data_state` gave, pickled, since it is the user's; None for most targets.
    probe: the energies where the chains are, by which another energy is noticed; None if it could not be had.
    """

    run: Any
    data: np.ndarray | None
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
        self._flushed = self._most_draws = 0  # draws of each chain on disk; and how many more may be in memory
        self._left = False  # by the other processes, if this one has failed and they have not

    def restore(self, run: Run) -> Any:
        """Let the run go on from the newest checkpoint; returns the state of its data, and does nothing without one."""
        from_first(self._folder.tidy)
        self._most_draws = MOST_BYTES // (16 * run.chains + sum(leaf.nbytes for leaf in jax.tree.leaves(run.positions)))
        checkpoint: Checkpoint | None = self._states.newest(self._structures)
        if checkpoint is None:
            run.keep_in(self._folder.path)
            return None
        run.restore(checkpoint.run)
        self._step, self._flushed = run.step, run.draws
        if self._probe is not None and checkpoint.probe is not None:
            now = self._probe(run.positions)
            same = np.allclose(now, checkpoint.probe, rtol=tolerance(), atol=tolerance(), equal_nan=True)
            remedy = "the energy is not that of the run in it: where chain 0 is, it was"
            remedy += f" {checkpoint.probe[0]:.6g} and is {now[0]:.6g} now. Give the same target, or another folder"
            require(same, "checkpoint", str(self._folder.path), remedy)
        run.keep_in(self._folder.path)  # reads all draws on disk, and raises if some are damaged
        # Only what a loader of the user's gave: for any other run, nothing in a folder is unpickled.
        return None if self._probe is not None or checkpoint.data is None else pickle.loads(checkpoint.data.tobytes())

    def require_newest(self) -> None:
        """Raise if the folder has a checkpoint that is not of this run."""
        remedy = "another process has gone on with the run since: `resume` it"
        newest = from_first(lambda: States(self._folder.states).last <= self._states.last)
        require(newest, "checkpoint", str(self._folder.path), remedy)

    @contextmanager
    def watch(self, run: Run, report: Report | None) -> Iterator[Report]:
        with heeding_termination() as termination:
            try:
                yield lambda stage, step, note: self._after_segment(run, report, termination, stage, step, note)
                if any_process(termination.asked):
                    raise SystemExit(STATUS)
            except BaseException as error:
                self._left = several() and not isinstance(error, TOGETHER)
                # A target on the host that failed or hung where the chains are would do so again.
                self._save(run, wait=True, probed=not run.target.calls_host)
                raise

    def leave(self) -> None:
        self._left = True

    def close(self, run: Run) -> None:
        """Write the last checkpoint, and end the thread that writes."""
        try:
            self._save(run, wait=True)
        finally:
            self._states.close()

    def _after_segment(
        self, run: Run, report: Report | None, termination: Termination, stage: str, step: int, note: str
    ) -> None:
        if report is not None:
            report(stage, step, note)
        if any_process(termination.asked):
            raise SystemExit(STATUS)  # the last checkpoint is written on the way out
        changed = self._stage not in ("", stage)
        self._stage = stage
        if changed or (note != COMPILING and from_first(lambda: time.monotonic() >= self._next)):
            self._save(run, wait=False)
        elif run.draws - self._flushed > self._most_draws:
            self._attempt(run.flush)
            self._flushed = run.draws  # also if it could not be written: not again after every segment

    def _save(self, run: Run, *, wait: bool, probed: bool = True) -> None:
        """Write a checkpoint, if the run has gone on since the last one; with a probe unless that is unwise."""
        if self._left:  # nobody would help to make it
            return
        began = time.monotonic()

        def complete() -> None:
            from_first(self._states.wait)

        def save() -> None:
            run.flush()
            self._flushed = run.draws
            probe = self._probe(run.positions) if probed and self._probe is not None else None
            checkpoint = Checkpoint(run.saved(), _pickled(run.target.data_state(run.step)), probe)
            samples, store, draws, steps = run.samples(on_disk=False), run.store_name, run.draws, run.steps

            def afterwards() -> None:
                self._folder.require_there()
                write_summary(samples, self._folder.path, store, draws)
                self._folder.note_steps(steps)

            from_first(lambda: self._states.save(checkpoint, self._structures, afterwards))
            self._step = run.step
            if wait:
                complete()

        self._attempt(complete, ending=wait)  # the one before: if it failed, this one may not
        if run.step != self._step:
            self._attempt(save, ending=wait)
        now = time.monotonic()
        self._next = now + max(self._every, (now - began) / MOST_TIME)

    def _attempt(self, write: Callable[[], None], *, ending: bool = False) -> None:
        """Write to the folder; if that fails, warn and go on: the last good checkpoint stays. Without a folder, stop:
        the draws in it are lost.

        ending: whether the run ends or is cut here, so that its draws may be nowhere but in memory.
        """
        try:
            in_all(self._folder.require_there)
            write()
        except Exception as error:
            self._step = -1
            in_all(self._folder.require_there)
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200] if str(error) else ''}"
            message = f"no checkpoint could be written to {self._folder.path} ({reason}). "
            message += "Later draws are only in the samples of this run" if ending else "The run goes on"
            warnings.warn(f"{message}, and the last good checkpoint is as it was", stacklevel=3)


def _pickled(state: Any) -> np.ndarray | None:
    return None if state is None else np.frombuffer(pickle.dumps(state), np.uint8)
