"""The errors of a run that does not get what it asks the host for: data, or an energy."""

from typing import Any


class HostError(RuntimeError):
    """The host could not give what a step needed.

    step: the step that needed it, 0 if it is not known.
    samples: the draws of all chains before it; None if the run had not begun.
    """

    def __init__(self, message: str, step: int = 0):
        super().__init__(message)
        self.step = step
        self.samples: Any = None


class DataError(HostError):
    """Data could not be read; what reading them raised is the error's `__cause__`.

    step: the step that needed them, 0 if it is not known.
    samples: the draws of all chains before it; None if the run had not begun.

    >>> likelihood, prior = cm.GaussianLikelihood(line, noise=0.1), cm.GaussianPrior(1.0)
    >>> batches = iter([(x[:50], y[:50])])  # there should be more
    >>> try:
    ...     cm.sample(cm.StreamedPosterior(likelihood, prior, batches, 100), init=0.0, steps=9, kernel=cm.sgld(1e-5))
    ... except cm.DataError as error:
    ...     print(error.step)
    2
    """


class EnergyError(HostError):
    """An energy outside of JAX could not be evaluated; the message ends with the traceback of its own process.

    step: the step that needed it, counted from the beginning of its stage.
    samples: the draws of all chains before it; None if the run had not begun.

    >>> try:
    ...     cm.sample(cm.external(lambda x: 1 / 0, workers="threads"), init=1.0, steps=9, kernel=cm.sgld(0.01))
    ... except cm.EnergyError as error:
    ...     print("ZeroDivisionError" in str(error))
    True
    """


class ElsewhereError(DataError, EnergyError):
    """Another process of the run could not get what it needed; its own error says what."""
