"""A target whose functions were traced when a run began (see `_core/tracing.py`)."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contourmc._core.pytrees import Position
from contourmc._core.tracing import Traced, trace_method, with_plain_functions, without_functions
from contourmc.targets.base import Target, first_step
from contourmc.targets.parts import sum_over_parts
from contourmc.targets.wrapped import WrappedTarget


class TracedTarget(WrappedTarget, arrays=("evaluation",)):
    """target: without its functions.
    evaluation: its `evaluate_from`, or with several `batch_parts` its `evaluate_part`, traced.
    """

    def __init__(self, target: Target, evaluation: Traced):
        self.target, self.evaluation = target, evaluation

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> tuple[Float[Array, ""], Position, Any]:
        if self.batch_parts == 1:
            return self.evaluation(self.target, inputs, position, state)
        return sum_over_parts(
            self.batch_parts, lambda part: self.evaluation(self.target, inputs, part, position, state)
        )


def trace_target(target: Target, position: Any) -> TracedTarget:
    """The target as it is now, for positions of these shapes; raises if it does not give one float there."""
    with_plain_functions(target).check(position)
    without = without_functions(target)
    inputs, state = jax.eval_shape(first_step, without, position)
    if target.batch_parts == 1:
        return TracedTarget(without, trace_method(target, "evaluate_from", inputs, position, state))
    part = jax.ShapeDtypeStruct((), jnp.int32)
    return TracedTarget(without, trace_method(target, "evaluate_part", inputs, part, position, state))
