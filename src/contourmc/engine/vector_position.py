"""Large positions of many arrays, as one vector inside a run.

An elementwise kernel treats every number of a position alike. With sixty arrays, as in a ResNet-20, each operation
would be sixty small ones instead of one large one, which is slow on a device that waits for each to be launched.
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.gradient_terms import of_each_term
from contourmc._core.info import Info
from contourmc._core.layout import Layout
from contourmc._core.pytrees import Position
from contourmc.predictions.average import Average
from contourmc.targets.base import Target
from contourmc.targets.wrapped import WrappedTarget


@dataclass(frozen=True, eq=False)
class VectorTarget(WrappedTarget):
    """A target as a function of a vector."""

    target: Target
    layout: Layout

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        return self.target.prepare(key, self.layout.to_position(position), steps)

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> tuple[Float[Array, ""], Position, Any]:
        energy, gradient, state = self.target.evaluate_from(inputs, self.layout.to_position(position), state)
        return energy, of_each_term(self.layout.to_vector, gradient), state


@dataclass(frozen=True, eq=False)
class VectorAverage(Average, arrays=("average",)):
    """An average over vectors."""

    average: Average
    layout: Layout

    def init(self) -> Any:
        return self.average.init()

    def add(self, sums: Any, info: Info, position: Position, state: Any) -> Any:
        return self.average.add(sums, info, self.layout.to_position(position), state)

    def finish(self, sums: Any, comparable_weights: bool = False) -> Any:
        return self.average.finish(sums, comparable_weights)
