"""What every run in progress offers: advance it, look at the draws so far, go on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import jax

from contourmc._core.checks import require, require_count
from contourmc._core.processes import several
from contourmc._core.pytrees import Position
from contourmc.data.data_error import HostError
from contourmc.draws.samples import Samples
from contourmc.engine.together import TOGETHER, Report, ending_together, heeding_interrupts
from contourmc.engine.watching import OnBlock, Stopped, Watcher
from contourmc.targets.base import Target


class _ErrorWithSamples(Exception):  # noqa: N818
    """An error that carries the draws so far."""

    def __init__(self, message: str, samples: Samples):
        super().__init__(message, samples)
        self.samples = samples

    def __str__(self) -> str:
        return self.args[0]


class DivergenceError(_ErrorWithSamples, RuntimeError):
    """A chain met a number that is not finite.

    samples: the draws of all chains before the step at which it happened.

    >>> try:
    ...     run = cm.sample(energy, init=1.0, steps=100, burn_in=0, kernel=cm.sgld(1.0))
    ... except cm.DivergenceError as error:
    ...     print(error)
    chain 0 met a number that is not finite at step ... Try a smaller step_size; ...
    """


class OutOfMemoryError(_ErrorWithSamples, MemoryError):
    """A run ran out of memory.

    samples: the draws of all chains before that.

    >>> try:
    ...     run = cm.sample(energy, init=1.0, steps=2_000, chains=4, kernel=cm.sgld(0.002))  # many more, perhaps
    ... except cm.OutOfMemoryError as error:
    ...     run = error.samples
    """


class Keeper(ABC):
    """What writes checkpoints of a run."""

    @abstractmethod
    def leave(self) -> None:
        """Write no more: this process has failed, and the others of the run would not help to make a checkpoint."""

    @abstractmethod
    def watch(self, run: "Run", report: Report | None) -> AbstractContextManager[Report]:
        """A context in which the run is advanced, with what it is to call after every call of the program."""


class Run(ABC):
    """A run in progress, as `start` gives it.

    How it is cut into calls of `advance` does not change a single bit of the result. A run that is not advanced to
    its end may hold threads that read data: close it, or use it in a `with` statement.

    steps: how many steps each chain makes in total.
    chains: the number of chains.
    target: what is sampled, as the run evaluates it.
    stopped: whether a function given as `on_block` has ended the last call of `advance`.

    >>> with cm.start(energy, init=1.0, steps=2_000, kernel=cm.sgld(0.002)) as run:
    ...     while run.step < run.steps:
    ...         run.advance(1_000)
    ...         print(run.step, run.samples().draws.shape)
    1000 (4, 800)
    2000 (4, 1800)
    """

    target: Target

    def __init__(self, steps: int, chains: int):
        self.steps, self.chains, self.stopped = steps, chains, False
        self._resources, self._closed = ExitStack(), False
        self._reopen: Callable[[], ExitStack] | None = None
        self._keeper: Keeper | None = None
        self._ended_together = False  # by an exception that all processes raise

    def hold(self, resources: ExitStack, reopen: Callable[[], ExitStack], keeper: Keeper | None) -> None:
        """Keep open what the run needs, such as threads that read data, until the run is closed.

        reopen: opens it again, for a run that is extended.
        keeper: what writes checkpoints; None for a run without.
        """
        self._resources, self._reopen, self._keeper = resources, reopen, keeper

    @property
    @abstractmethod
    def state(self) -> Any:
        """Everything that changes during the run, as one immutable pytree, replaced as a whole."""

    @property
    @abstractmethod
    def step(self) -> int:
        """How many steps each chain has made."""

    @property
    @abstractmethod
    def positions(self) -> Position:
        """Where the chains are, as they are sampled, stacked along a leading axis."""

    @property
    @abstractmethod
    def target_states(self) -> Any:
        """What the target carries along with each position, such as batch-norm statistics; None for most targets."""

    @property
    @abstractmethod
    def failure(self) -> str:
        """What ended the run early, in words; empty if nothing did."""

    @abstractmethod
    def samples(self, *, on_disk: bool = True) -> Samples:
        """What has been drawn so far; without draws that are on disk if not `on_disk`."""

    @property
    @abstractmethod
    def draws(self) -> int:
        """How many draws of each chain have been kept so far, in memory and on disk."""

    @abstractmethod
    def figures(self) -> dict[str, float]:
        """What is worth watching: means over the chains at the last step of the energy, the gradient multiplier, and on
        data the loss, the energy by the number of observations. Nothing during a pilot.
        """

    @abstractmethod
    def average_figures(self) -> dict[str, float]:
        """How good the average over the draws so far is; nothing without one, or before the first draw."""

    @abstractmethod
    def advance_to(self, step: int, report: Report | None) -> None:
        """Advance up to a step, or until the run fails."""

    @abstractmethod
    def lengthen(self, steps: int) -> None:
        """Let the run end so many steps later."""

    @property
    @abstractmethod
    def store_name(self) -> str:
        """The name of the store of draws on disk; empty if all are in memory."""

    @abstractmethod
    def keep_in(self, folder: Path) -> None:
        """From now on, keep draws in a store on disk in this folder, and only a few in memory.

        Raises if draws are damaged that were written to it before the run was restored.
        """

    @abstractmethod
    def flush(self) -> None:
        """Write the draws in memory to the store on disk, if there is one."""

    @abstractmethod
    def saved(self) -> Any:
        """What a checkpoint holds: a pytree from which an equal run goes on as if it were this one."""

    @abstractmethod
    def restore(self, saved: Any) -> None:
        """Go on from what `saved` gave, in a run that was started in the same way."""

    def advance(
        self,
        steps: int | None = None,
        report: Report | None = None,
        *,
        on_block: OnBlock | Sequence[OnBlock] | None = None,
        block_every: float = 1.0,
    ) -> None:
        """Make this many more steps of each chain; by default all that remain.

        on_block, block_every: as for `sample`. If a function returns False, `advance` returns early, and `stopped` is
            true; an error that it raises is raised here, and the draws so far are in `samples`.

        It never goes beyond the last step. A run that tunes itself may make a few more steps than asked for during its
        pilot. Raises a `DivergenceError` if a number is not finite, a `DataError` if data cannot be read, an
        `EnergyError` if an external energy fails, and an `OutOfMemoryError`; all carry the draws so far.
        """
        remaining = self.steps - self.step
        steps = remaining if steps is None else require_count("steps", steps, 1, "advance by at least 1 step")
        watcher, self.stopped = Watcher(self, report, on_block, block_every), False
        if not self.failure:
            require(remaining > 0, "steps", steps, f"the run has made all of its {self.steps} steps")
            require(not self._closed, "steps", steps, "the run has been closed")
            try:
                with ExitStack() as contexts:
                    contexts.enter_context(heeding_interrupts())
                    watch = watcher.after_segment if watcher.needed else None
                    watched = contexts.enter_context(ending_together(watch))
                    if self._keeper is not None:
                        watched = contexts.enter_context(self._keeper.watch(self, watched))
                    self.advance_to(self.step + min(steps, remaining), watched)
            except Stopped:
                self.stopped = True
            except TOGETHER as error:
                self._ended_together = True
                if isinstance(error, HostError):
                    error.samples = self.samples()
                raise
            except (MemoryError, jax.errors.JaxRuntimeError) as error:
                full = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
                if full and not several():  # of several processes, the others would not help to collect the draws
                    message = f"the run ran out of memory after step {self.step:,}. Use fewer chains, a larger thin, or"
                    message += " store=False. The draws so far are in this error's `samples`."
                    raise OutOfMemoryError(message, self.samples()) from error
                raise
        if self.failure or self.step >= self.steps:
            self.close()
        if self.failure:
            self._ended_together = True
            raise DivergenceError(self.failure, self.samples())

    def extend(self, steps: int) -> None:
        """Let the run make this many more steps than it was to make, and go on with `advance`.

        Burn-in and thinning stay as they are, and so do the partition and θ of a run that tuned itself.
        """
        steps = require_count("steps", steps, 1, "extend the run by at least 1 step")
        require(not self.failure, "steps", steps, f"the run has failed: {self.failure}")
        longest = 2**31 - 1
        remedy = f"a chain can have at most {longest:,} steps, and the run has {self.steps:,}"
        require(self.steps + steps <= longest, "steps", steps, remedy)
        if self._closed and self._reopen is not None:
            self._resources, self._closed = self._reopen(), False
        self.lengthen(steps)

    def close(self) -> None:
        """End the threads that read data for the run, and let go of its folder; its samples remain available."""
        self._closed = True
        self._resources.close()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is not None and several() and not self._ended_together and self._keeper is not None:
            self._keeper.leave()
        self.close()
