"""The error of a run whose data cannot be read."""

from typing import Any


class DataError(RuntimeError):
    """Data could not be read; what reading them raised is the error's `__cause__`.

    step: the step that needed them, 0 if it is not known.
    samples: the draws of all chains before it; None if the run had not begun.
    """

    def __init__(self, message: str, step: int = 0):
        super().__init__(message)
        self.step = step
        self.samples: Any = None
