"""What a step does to the parameters, as few passes over them as possible.

Nearly all that a kernel does to parameters, gradients, velocities and noise is linear: a sum of vectors times numbers.
While a kernel is translated, such a sum stays a formula; it is computed only where it must be, at the end of the step.
So SGHMC, v ← βv − ε·m·∇U + √(…)·w, becomes three passes over the velocity, with the three numbers worked out first.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from contourmc._core.operations import template_of
from contourmc._core.straight_line import Constant, StraightLine, Symbol, UnknownOperationError

# The length of the vector that stands for all parameters while a kernel is traced: no array of a kernel has it.
LENGTH = 1_000_003
_ONE = Constant(np.float32(1))


def precision() -> np.dtype:
    """The type of θ and of all numbers of a step, as JAX is configured: float32, or float64 with jax_enable_x64."""
    return np.dtype(jnp.result_type(float))


@dataclass(frozen=True)
class Vector:
    """A sum of vectors, each times a number: pairs of the vector and its number."""

    terms: tuple[tuple[Symbol, Any], ...]
    shape = (LENGTH,)

    @property
    def dtype(self) -> np.dtype:
        return precision()

    @classmethod
    def of(cls, symbol: Symbol) -> "Vector":
        return cls(((symbol, _ONE),))

    @classmethod
    def new(cls) -> "Vector":
        """A vector that is given."""
        return cls.of(Symbol(cls.shape, precision()))


class Sum(NamedTuple):
    """A vector is computed from the sum that it stands for."""

    output: Symbol
    vector: Vector


class Apply(NamedTuple):
    """A vector is computed by a function that is not linear, from other vectors and numbers."""

    output: Symbol
    template: str
    settings: tuple[tuple[str, Any], ...]
    inputs: tuple[Any, ...]


class VectorCode(StraightLine):
    """Straight-line code in which vectors are kept apart: `vector_steps` has what is not linear in them."""

    def __init__(self):
        super().__init__()
        self.vector_steps: list[Sum | Apply] = []

    def emit(self, name: str, settings: Any, inputs: list[Any], shape: tuple[int, ...], dtype: np.dtype) -> Any:
        inputs = [_uniform(each) for each in inputs]
        if any(isinstance(each, Vector) for each in inputs):
            return self._vector(name, settings, inputs, shape, dtype)
        if name == "broadcast_in_dim" and shape[-1:] == (LENGTH,):
            return inputs[0]  # a number broadcasts by itself where a vector meets it
        return super().emit(name, settings, inputs, () if shape == (LENGTH,) else shape, dtype)

    def _number(self, name: str, *inputs: Any) -> Any:
        return super().emit(name, {}, list(inputs), (), precision())

    def _vector(self, name: str, settings: Any, inputs: list[Any], shape: tuple[int, ...], dtype: np.dtype) -> Any:
        if shape != (LENGTH,):
            raise UnknownOperationError(name, "it mixes the parameters with one another")
        first: Any = inputs[0]
        second: Any = inputs[1] if len(inputs) > 1 else None
        if name in ("convert_element_type", "stop_gradient", "copy", "reshape") and dtype.kind == "f":
            return first
        if name == "neg":
            return self._scaled(first, lambda number: self._number("neg", number))
        if name == "mul" and not isinstance(second, Vector):
            return self._scaled(first, lambda number: self._number("mul", number, second))
        if name == "mul" and not isinstance(first, Vector):
            return self._scaled(second, lambda number: self._number("mul", first, number))
        if name == "div" and not isinstance(second, Vector):
            return self._scaled(first, lambda number: self._number("div", number, second))
        if name in ("add", "sub", "add_any") and isinstance(first, Vector) and isinstance(second, Vector):
            if name == "sub":
                second = self._scaled(second, lambda number: self._number("neg", number))
            return self._added(first, second)
        template, kept = template_of(name, settings)
        if template is None:
            raise UnknownOperationError(name)
        output = Symbol(shape, dtype)
        given = tuple(self._computed(each) if isinstance(each, Vector) else each for each in inputs)
        self.vector_steps.append(Apply(output, template, kept, given))
        return Vector.of(output)

    def _scaled(self, vector: Vector, change: Any) -> Vector:
        return Vector(tuple((symbol, change(number)) for symbol, number in vector.terms))

    def _added(self, first: Vector, second: Vector) -> Vector:
        numbers = dict(first.terms)
        for symbol, number in second.terms:
            numbers[symbol] = self._number("add", numbers[symbol], number) if symbol in numbers else number
        return Vector(tuple(numbers.items()))

    def _computed(self, vector: Vector) -> Symbol:
        """The vector as one that is there, and not a formula."""
        if len(vector.terms) == 1 and vector.terms[0][1] == _ONE:
            return vector.terms[0][0]
        for step in self.vector_steps:
            if isinstance(step, Sum) and step.vector == vector:
                return step.output
        output = Symbol(vector.shape, vector.dtype)
        self.vector_steps.append(Sum(output, vector))
        return output


def _uniform(atom: Any) -> Any:
    """A vector of equal constants as the number that it holds."""
    if isinstance(atom, Constant) and atom.shape == (LENGTH,):
        if np.ptp(atom.value):
            raise UnknownOperationError("constant", "it treats parameters differently by their place")
        return Constant(atom.value[0])
    return atom
