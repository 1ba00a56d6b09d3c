"""A traced computation as straight-line code: no calls, no branches, nothing computed twice or in vain.

JAX traces a function into a *jaxpr*. Here its calls are inlined, both branches of a condition are computed and one is
selected, what depends on no argument is computed at once, and equal expressions become one. What remains is a list of
operations on numbers and small arrays that any array library can follow, one line each (`_core/generated.py`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from contourmc._core.operations import HOST, TEMPLATES, template_of

# Operations that hold a computation of their own, by the name of the parameter that it is.
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "checkpoint": "jaxpr",
}
# Operations that leave a number as it is.
_SAME = {"stop_gradient", "copy", "copy_p", "optimization_barrier", "reduce_precision"}


class UnknownOperationError(NotImplementedError):
    """A computation has an operation that cannot be translated."""

    def __init__(self, operation: str, why: str = "it has no translation"):
        known = ", ".join(sorted(TEMPLATES))
        super().__init__(f"the operation {operation!r} of a kernel cannot be used here: {why}; known are {known}")


@dataclass(frozen=True, eq=False)
class Symbol:
    """A value that is known only when the code runs.

    stage: what it depends on, as the union of the stages of the arguments: a set of bits whose meaning the caller
        chooses.
    least: a number that it is never below.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    stage: int = 0
    least: float = -math.inf


class Constant:
    """A number or an array that is known when the code is made; equal to others with the same content."""

    def __init__(self, value: Any):
        self.value = np.asarray(value)
        self._key = (str(self.value.dtype), self.value.shape, self.value.tobytes())

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Instruction(NamedTuple):
    """output = operation(inputs), with settings such as the axes of a sum."""

    operation: str
    settings: tuple[tuple[str, Any], ...]
    inputs: tuple[Any, ...]
    output: Symbol


class StraightLine:
    """The code so far; `inline` adds a computation to it and gives its results."""

    def __init__(self):
        self.instructions: list[Instruction] = []
        self._known: dict[Any, Any] = {}
        self._truths: dict[Any, Any] = {}  # the truth value of which a number was made, as that of a condition is

    def trace(self, function: Callable[..., Any], shapes: Sequence[Any], arguments: Sequence[Any]) -> tuple[Any, Any]:
        """Trace a function of arguments with these shapes, and add it: its results, and their shapes.

        Nothing is computed by JAX, and no device is touched.
        """
        closed, result = jax.make_jaxpr(lambda *given: function(*given), return_shape=True)(*shapes)
        results = self.inline(closed.jaxpr, closed.consts, arguments)
        return jax.tree.unflatten(jax.tree.structure(result), results), result

    def inline(self, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Add a computation; arguments and results are symbols and constants."""
        values = dict(zip(jaxpr.constvars, map(Constant, constants), strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))
        needed = _needed(jaxpr)

        def value(atom: Any) -> Any:
            return Constant(atom.val) if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            if not any(output in needed for output in equation.outvars):
                continue
            given = [value(atom) for atom in equation.invars]
            values.update(zip(equation.outvars, self._equation(equation, given), strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, inputs: list[Any]) -> list[Any]:
        name, settings = equation.primitive.name, equation.params
        if name in _CALLS:
            inner = settings[_CALLS[name]]
            return self.inline(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), inputs)
        if name == "cond":
            return self._select_branch(settings["branches"], inputs)
        if name == "split":
            return self._split(settings, inputs[0], equation.outvars)
        if len(equation.outvars) != 1:
            raise UnknownOperationError(name, "it has several results")
        result = equation.outvars[0].aval
        return [self.emit(name, settings, inputs, result.shape, np.dtype(result.dtype))]

    def _select_branch(self, branches: Sequence[Any], inputs: list[Any]) -> list[Any]:
        """Both branches, and a choice of each result: what they share is computed once."""
        if len(branches) != 2:
            raise UnknownOperationError("switch", "it has more than two branches")
        results = [self.inline(branch.jaxpr, branch.consts, inputs[1:]) for branch in branches]
        index = self._truths.get(inputs[0], inputs[0])
        second = self.emit("ne", {}, [index, Constant(np.int32(0))], (), np.dtype(bool))
        return [
            first if first == other else self.emit("select_n", {}, [second, first, other], first.shape, _type(first))
            for first, other in zip(*results, strict=True)
        ]

    def _split(self, settings: Any, whole: Any, outputs: Sequence[Any]) -> list[Any]:
        ends = np.cumsum(settings["sizes"])
        if len(whole.shape) != 1:
            raise UnknownOperationError("split", "it splits an array of several dimensions")
        return [
            self.emit(
                "slice",
                dict(start_indices=(int(end - size),), limit_indices=(int(end),), strides=None),
                [whole],
                output.aval.shape,
                _type(whole),
            )
            for end, size, output in zip(ends, settings["sizes"], outputs, strict=True)
        ]

    def emit(self, name: str, settings: Any, inputs: list[Any], shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """The result of an operation: known already, simpler than it looks, or a new instruction."""
        if name in _SAME or (name == "convert_element_type" and _type(inputs[0]) == dtype):
            return inputs[0]
        if name in ("dynamic_slice", "dynamic_update_slice"):
            inputs = self._bounded(name, inputs, shape)
        simpler = _simplified(name, inputs)
        if simpler is not None:
            return simpler
        template, kept = template_of(name, settings)
        if template is None:
            raise UnknownOperationError(name)
        if all(isinstance(each, Constant) for each in inputs):
            with np.errstate(all="ignore"):
                computed = HOST.compute(template, kept, [each.value[()] for each in inputs], shape)
            return Constant(np.broadcast_to(np.asarray(computed, dtype), shape))
        key = name, kept, tuple(inputs), shape, dtype
        if key not in self._known:
            stage = 0
            for each in inputs:
                stage |= getattr(each, "stage", 0)
            output = Symbol(shape, dtype, stage, _least(name, inputs))
            self.instructions.append(Instruction(name, kept, tuple(inputs), output))
            self._known[key] = output
            if name == "convert_element_type" and _type(inputs[0]) == np.dtype(bool):
                self._truths[output] = inputs[0]
        return self._known[key]

    def _bounded(self, name: str, inputs: list[Any], shape: tuple[int, ...]) -> list[Any]:
        """The index brought into its range, as JAX does it: an index that is not a number would read out of bounds."""
        arrays, (index, *more) = (inputs[:1], inputs[1:]) if name == "dynamic_slice" else (inputs[:2], inputs[2:])
        if more:
            raise UnknownOperationError(name, "it has several indices")
        size = shape[0] if name == "dynamic_slice" else arrays[1].shape[0]
        high = arrays[0].shape[0] - size
        return [*arrays, self.emit("bounded", dict(high=high), [index], (), np.dtype(np.int32))]


def _needed(jaxpr: Any) -> set[Any]:
    """The variables of a computation on which its results depend."""
    needed = {atom for atom in jaxpr.outvars if not hasattr(atom, "val")}
    for equation in reversed(jaxpr.eqns):
        if any(output in needed for output in equation.outvars):
            needed.update(atom for atom in equation.invars if not hasattr(atom, "val"))
    return needed


def _type(atom: Any) -> np.dtype:
    return atom.value.dtype if isinstance(atom, Constant) else atom.dtype


def _is(atom: Any, number: float) -> bool:
    return isinstance(atom, Constant) and atom.value.size > 0 and bool(np.all(atom.value == number))


def _simplified(name: str, inputs: list[Any]) -> Any:
    """What an operation gives without computing anything, or None."""
    first: Any = inputs[0] if inputs else None
    second: Any = inputs[1] if len(inputs) > 1 else None
    if name == "select_n" and isinstance(first, Constant) and first.shape == ():
        return inputs[1 + int(first.value)]
    if name == "select_n" and len(inputs) == 3 and inputs[1] == inputs[2]:
        return inputs[1]
    if name == "lt" and isinstance(second, Constant) and second.shape == () and _least_of(first) >= second.value:
        return Constant(np.zeros(first.shape, bool))
    if name == "ne" and _is(second, 0) and _type(first) == np.dtype(bool):
        return first
    if second is not None and getattr(first, "shape", None) == second.shape:
        if (name in ("mul", "div") and _is(second, 1)) or (name in ("add", "sub") and _is(second, 0)):
            return first
        if (name == "mul" and _is(first, 1)) or (name == "add" and _is(first, 0)):
            return second
    return None


def _least_of(atom: Any) -> float:
    if isinstance(atom, Constant):
        return float(atom.value.min()) if atom.value.size else math.inf
    return getattr(atom, "least", -math.inf)


def _least(name: str, inputs: list[Any]) -> float:
    """A number that the result is never below, as far as this matters to indices."""
    bounds = list(map(_least_of, inputs))
    if name == "max":
        return max(bounds)
    if name == "min":
        return min(bounds)
    if name == "add":
        return sum(bounds)
    if name == "sub" and isinstance(inputs[1], Constant):
        return bounds[0] - float(inputs[1].value.max())
    if name in ("ceil", "floor", "convert_element_type") and math.isfinite(bounds[0]):
        return math.floor(bounds[0])
    return 0.0 if name in ("bounded", "exp", "abs") else -math.inf
