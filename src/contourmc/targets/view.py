"""How a position that is sampled looks to its user: in other coordinates, by name, and with what follows from it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contourmc._core.pytrees import Position
from contourmc._core.rows import OverRows


@dataclass(frozen=True)
class Labels:
    """dims: the names of an array's axes, by its name, such as {"theta": ("school",)}.
    coords: the labels along such an axis, such as {"school": ["A", "B"]}.
    """

    dims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    coords: dict[str, list[Any]] = field(default_factory=dict)


class View(ABC):
    """Samplers know a position that is free of constraints; users see and give another."""

    @abstractmethod
    def constrain(self, position: Position) -> Any:
        """What the user sees of a sampled position, as JAX can trace it."""

    @abstractmethod
    def unconstrain(self, position: Any) -> Position:
        """The sampled position of one that the user gives as a start, as JAX can trace it."""

    @abstractmethod
    def check_starts(self, positions: Any) -> None:
        """Raise unless the user's starts, stacked along a leading axis, have the right names and are possible."""

    @property
    def labels(self) -> Labels:
        """The names of axes, and the labels along them."""
        return Labels()

    def arviz_groups(self, draws: dict[str, np.ndarray], *, log_likelihood: bool) -> dict[str, dict[str, np.ndarray]]:
        """More groups for ArviZ: `observed_data`, and `log_likelihood` if asked for, at draws as the user sees them, by
        name; these have leading axes (chain, draw).
        """
        return {}


class TracedView:
    """A view as it was when a run began (see `_core/tracing.py`).

    view: as it was given.
    shapes: of what the user sees of a position.
    """

    def __init__(self, view: View, position: Any):
        """For positions of these shapes."""
        self.view = view
        self._constrained = OverRows(view.constrain, position)
        self.shapes = self._constrained.shapes

    def of(self, positions: Position, axes: int) -> Any:
        """What the user sees of positions that are stacked along some leading axes."""
        return self._constrained.of(positions, axes)
