"""What a run can average while it goes on: a function of every kept draw, summed inside the compiled loop."""

from abc import ABC, abstractmethod
from typing import Any

from contourmc.arrays import HoldsArrays
from contourmc.kernels.base import Info, Position


class Average(HoldsArrays, ABC):
    """Sums over the kept draws of a chain, and what follows from them.

    Arrays that it holds are arguments of the compiled program if its class names them, as those of a `Target`.
    """

    @abstractmethod
    def init(self) -> Any:
        """Sums over no draws, a pytree of arrays."""

    @abstractmethod
    def add(self, sums: Any, info: Info, position: Position, state: Any) -> Any:
        """The sums with one draw more: its info (energy and log weight), position, and the target's state."""

    @abstractmethod
    def finish(self, sums: Any) -> Any:
        """The result, from sums stacked along a leading chain axis."""
