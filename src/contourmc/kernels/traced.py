"""Kernels whose schedules were traced when a run began (see `_core/tracing.py`)."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from contourmc._core.tracing import Traced
from contourmc.kernels.base import Kernel

Part = TypeVar("Part")


class TracedSchedule:
    """A schedule as it was when it was traced, with the arrays that it captured as constants."""

    def __init__(self, schedule: Any):
        self.traced = Traced(schedule, jnp.ones(1, jnp.int32))

    def __call__(self, step: Array) -> Array:
        steps = jnp.reshape(jnp.asarray(step, jnp.int32), (-1, 1))
        return jax.vmap(self.traced)(steps).reshape(jnp.shape(step))

    def __hash__(self) -> int:
        return hash(self.traced.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedSchedule) and self.traced.same_as(other.traced)


def trace_schedules(part: Part) -> Part:
    """A kernel, or several, with their schedules as they are now; those that are values remain as they are."""
    if isinstance(part, tuple):
        return type(part)(map(trace_schedules, part))
    if not isinstance(part, Kernel) or not is_dataclass(part):
        return part
    given = {entry.name: getattr(part, entry.name) for entry in fields(part) if entry.init}
    changed = {
        name: TracedSchedule(value) if name in part.schedules and _is_function(value) else trace_schedules(value)
        for name, value in given.items()
    }
    return replace(part, **{name: value for name, value in changed.items() if value is not given[name]})


def _is_function(value: Any) -> bool:
    return callable(value) and not is_dataclass(value)
