"""A target that changes how another is evaluated."""

from contextlib import AbstractContextManager
from typing import Any

from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.pytrees import Position
from contourmc.targets.base import Target
from contourmc.targets.view import View


class WrappedTarget(Target, arrays=("target",)):
    """All but the evaluation is that of the target inside."""

    target: Target

    @property
    def exact(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.target.exact

    @property
    def batch_parts(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.target.batch_parts

    @property
    def calls_host(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.target.calls_host

    @property
    def view(self) -> View | None:
        return self.target.view

    def starts(self, keys: Array) -> Position | None:
        return self.target.starts(keys)

    @property
    def observations(self) -> int | None:
        return self.target.observations

    def init(self) -> Any:
        return self.target.init()

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> Any:
        return self.target.prepare(key, position, steps)

    def evaluate(self, inputs: Any, position: Position) -> tuple[Float[Array, ""], Position]:
        energy, gradient, _ = self.evaluate_from(inputs, position, self.init())
        return energy, gradient

    def drawn(self, state: Any) -> Any:
        return self.target.drawn(state)

    def session(self) -> AbstractContextManager[None]:
        return self.target.session()

    def reading(self) -> AbstractContextManager[None]:
        return self.target.reading()

    def after(self, step: int) -> None:
        self.target.after(step)

    def data_state(self, step: int) -> Any:
        return self.target.data_state(step)

    def seek(self, step: int, state: Any) -> None:
        self.target.seek(step, state)


def innermost(target: Target) -> Target:
    """The target inside of all that wrap it."""
    while isinstance(target, WrappedTarget):
        target = target.target
    return target
