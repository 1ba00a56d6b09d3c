"""An average over what the user sees of a position."""

from dataclasses import dataclass
from typing import Any, ClassVar

from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc.predictions.average import Average
from contourmc.targets.view import View


@dataclass(frozen=True, eq=False)
class ViewedAverage(Average, arrays=("average",)):
    """average: over positions as the user knows them.
    view: how these follow from those that are sampled.
    """

    functions: ClassVar[tuple[str, ...]] = ("average", "view")
    average: Average
    view: View

    def init(self) -> Any:
        return self.average.init()

    def add(self, sums: Any, info: Info, position: Position, state: Any) -> Any:
        return self.average.add(sums, info, self.view.constrain(position), state)

    def finish(self, sums: Any, comparable_weights: bool = False) -> Any:
        return self.average.finish(sums, comparable_weights)
