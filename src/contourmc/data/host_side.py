"""The host's side of a compiled program that calls back to it, for data or for energies.

A callback must not use JAX, which would wait for the program that waits for the callback; and it must not raise, since
the behaviour is then undefined. It therefore uses only NumPy. When something goes wrong, the first error is kept and
the program gets numbers that mean nothing, marked as such; the run raises the error once the program has returned.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from contourmc._core.checks import require

_NUMBERS = itertools.count()
_SIDES: "WeakValueDictionary[int, HostSide]" = WeakValueDictionary()


class HostSide(ABC):
    """What a compiled program calls back to.

    number: by which the program knows it.
    error: what went wrong first, and has not been raised yet.
    stopped: whether nobody waits for an answer any more.
    """

    def __init__(self):
        self.error: BaseException | None = None
        self.stopped = False
        self.number = next(_NUMBERS)
        _SIDES[self.number] = self

    @abstractmethod
    def open(self) -> None:
        """Begin to work for a run."""

    @abstractmethod
    def close(self) -> None:
        """End all threads and processes."""

    def forget(self, step: int) -> None:
        """Drop what was kept for the steps up to this one, which will not be requested again."""
        return None

    def answer(self, compute: Callable[[], Any], nothing: Callable[[], Any]) -> Any:
        """What a callback returns: what is computed, or after an error nothing."""
        if self.error is None:
            try:
                return compute()
            except BaseException as error:
                self.error = error
        return nothing()

    @contextmanager
    def session(self) -> Iterator[None]:
        """A context around a run."""
        self.error, self.stopped = None, False
        try:
            self.open()
            yield
        finally:
            self.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context around calls of the program. If it is left by an exception, as by Ctrl-C, a program that waits gets
        no answer. One may stand in another: leaving the inner one as usual does not stop the outer one.
        """
        self.error, self.stopped = None, False
        try:
            yield
        except BaseException:
            self.stopped = True
            raise


def side_of(number: Any) -> Any:
    """The host's side with a number, which comes as an array with an entry for each chain."""
    return _SIDES[int(np.asarray(number).flat[0])]


class Handle:
    """The host's side as a target holds it: a pytree.

    A compiled program sees only its number: the program can be used again with another of the same kind, and does not
    keep it alive.
    """

    side: Any  # known to the handle that was made with it, but not to copies inside compiled programs
    number: Any
    kind: Any  # what the program is compiled for, besides the number

    def __init__(self, side: HostSide, kind: Any):
        self.side, self.number, self.kind = side, np.asarray(side.number, np.int32), kind

    def after(self, step: int) -> None:
        """After the program has run: raise the error if something went wrong, and forget the steps up to this one."""
        error, self.side.error = self.side.error, None
        if error is not None:
            raise error
        self.side.forget(step)

    def tree_flatten(self) -> tuple[tuple[Any], Any]:
        return (self.number,), self.kind

    @classmethod
    def tree_unflatten(cls, kind: Any, leaves: Any) -> "Handle":
        made = object.__new__(cls)
        (made.number,), made.kind = leaves, kind
        return made


def require_alone(thing: Any) -> None:
    """Raise for a stack of handles, as a list of targets has."""
    alone = not isinstance(thing, Handle) or hasattr(thing, "side")
    remedy = "chains with their own data need resident=True, and chains with their own energies a run for each"
    require(alone, "target", "a list of targets with data or energies on the host", remedy)
