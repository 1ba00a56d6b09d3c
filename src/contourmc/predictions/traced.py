"""An average whose functions were traced when a run began (see `_core/tracing.py`)."""

from typing import Any

import jax
import jax.numpy as jnp

from contourmc._core.info import Info
from contourmc._core.pytrees import Position
from contourmc._core.tracing import Traced, trace_method, without_functions
from contourmc.predictions.average import Average


class TracedAverage(Average, arrays=("average", "addition")):
    """average: without its functions.  addition: its `add`, traced."""

    def __init__(self, average: Average, addition: Traced):
        self.average, self.addition = average, addition

    def init(self) -> Any:
        return self.average.init()

    def add(self, sums: Any, info: Info, position: Position, state: Any) -> Any:
        kind = jnp.result_type(float)  # as it was traced; energies may have the type of the position
        energy, multiplier, weight = (jnp.asarray(x, kind) for x in (info.energy, info.multiplier, info.log_weight))
        info = info._replace(energy=energy, multiplier=multiplier, log_weight=weight)
        return self.addition(self.average, sums, info, position, state)

    def finish(self, sums: Any, comparable_weights: bool = False) -> Any:
        return self.average.finish(sums, comparable_weights)


def trace_average(average: Average, position: Any, state: Any) -> TracedAverage:
    """The average as it is now, for positions and states of the target with these shapes."""
    without = without_functions(average)
    number = jnp.zeros((), jnp.result_type(float))
    info = Info(number, jnp.zeros((), jnp.int32), number, number)
    return TracedAverage(without, trace_method(average, "add", jax.eval_shape(without.init), info, position, state))
