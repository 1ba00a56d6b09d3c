"""What every run in progress offers: advance it, look at the draws so far, go on."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import jax

from contourmc._core.checks import require, require_count
from contourmc._core.pytrees import Position
from contourmc.data.data_error import DataError
from contourmc.draws.samples import Samples

# Called after every call of the compiled program: the stage of the run, the steps done, and a note worth watching.
Report = Callable[[str, int, str], None]


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
    """


class OutOfMemoryError(_ErrorWithSamples, MemoryError):
    """A run ran out of memory.

    samples: the draws of all chains before that.
    """


class Run(ABC):
    """A run in progress, as `start` gives it:

        run = cm.start(energy, init=0.0, steps=100_000)
        while run.step < run.steps:
            run.advance(10_000)
            print(run.samples().mean())

    How it is cut into calls of `advance` does not change a single bit of the result. A run that is not advanced to
    its end may hold threads that read data: close it, or use it in a `with` statement.

    steps: how many steps each chain makes in total.
    chains: the number of chains.
    """

    def __init__(self, steps: int, chains: int):
        self.steps, self.chains = steps, chains
        self._resources, self._closed = ExitStack(), False

    def hold(self, resources: ExitStack) -> None:
        """Keep open what the run needs, such as threads that read data, until the run is closed."""
        self._resources = resources

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
        """Where the chains are, stacked along a leading axis."""

    @property
    @abstractmethod
    def target_states(self) -> Any:
        """The target's state of each chain, such as batch-norm statistics, stacked; None for most targets."""

    @property
    @abstractmethod
    def failure(self) -> str:
        """What ended the run early, in words; empty if nothing did."""

    @abstractmethod
    def samples(self) -> Samples:
        """What has been drawn so far."""

    @abstractmethod
    def advance_to(self, step: int, report: Report | None) -> None:
        """Advance up to a step, or until the run fails."""

    def advance(self, steps: int | None = None, report: Report | None = None) -> None:
        """Make this many more steps of each chain; by default all that remain.

        It never goes beyond the last step. A run that tunes itself may make a few more steps than asked for during its
        pilot. Raises a `DivergenceError` if a number is not finite, a `DataError` if data cannot be read, and an
        `OutOfMemoryError`; all three carry the draws so far.
        """
        remaining = self.steps - self.step
        steps = remaining if steps is None else require_count("steps", steps, 1, "advance by at least 1 step")
        if not self.failure:
            require(remaining > 0, "steps", steps, f"the run has made all of its {self.steps} steps")
            require(not self._closed, "steps", steps, "the run has been closed")
            try:
                self.advance_to(self.step + min(steps, remaining), report)
            except DataError as error:
                error.samples = self.samples()
                raise
            except (MemoryError, jax.errors.JaxRuntimeError) as error:
                if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
                    message = f"the run ran out of memory after step {self.step:,}. Use fewer chains, a larger thin, or"
                    message += " store=False. The draws so far are in this error's `samples`."
                    raise OutOfMemoryError(message, self.samples()) from error
                raise
        if self.failure or self.step >= self.steps:
            self.close()
        if self.failure:
            raise DivergenceError(self.failure, self.samples())

    def close(self) -> None:
        """End the threads that read data for the run. Do not advance it after that; its samples remain available."""
        self._closed = True
        self._resources.close()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
