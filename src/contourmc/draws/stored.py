"""Results that a file of draws can hold besides the draws, such as predictions."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from contourmc._core.checks import require
from contourmc.draws.exhibits.chart import Chart
from contourmc.draws.exhibits.table import Table


class Stored(ABC):
    """A result made of arrays. Files name its class, which can be restored once its module has been imported."""

    _kinds: ClassVar[dict[str, type["Stored"]]] = {}

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        Stored._kinds[cls.__name__] = cls

    @abstractmethod
    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything in it, as arrays by name."""

    def exhibits(self) -> list[Table | Chart]:
        """What a report shows of it."""
        return []

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Stored":
        """The result, restored from what `to_arrays` gave."""


def restore(kind: str, arrays: dict[str, np.ndarray]) -> Stored:
    """A result of the class with this name."""
    remedy = "the file holds a result of this class: import the module that defines it, and load the file again"
    require(kind in Stored._kinds, "class", kind, remedy)
    return Stored._kinds[kind].from_arrays(arrays)
