"""Functions of the user, traced when a run begins.

A function may read variables outside of it, as in a notebook, and they may have changed since it was last compiled. So
it is traced anew for every run. What it computes is then known as a program: arrays that it captured are arguments of
the program, and programs that compute the same are equal, whatever functions they came from. Compiled code is looked up
by the program: it never computes with old numbers, is used again for new ones, and does not keep arrays alive.
"""

import copy
import hashlib
import itertools
from collections.abc import Callable, Hashable, Iterator
from contextlib import nullcontext
from types import MethodType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc._core.pytrees import HoldsArrays, is_key

Kind = TypeVar("Kind")
_NUMBERS = itertools.count()
_context: Callable[[int], Any] = jax.make_user_context() if hasattr(jax, "make_user_context") else nullcontext
# Operations with a rule for their derivatives. Those of a traced gradient that still have one are not differentiated.
_WITH_RULES = {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}


class Program:
    """A traced computation, without the arrays that it captured; equal to others that compute the same.

    jaxpr: the computation.
    result: the structure of its result.
    """

    def __init__(self, jaxpr: Any, result: Any):
        self.jaxpr, self.result = jaxpr, result
        self._content = (result, tuple(_operations(jaxpr)))
        self._hash = hash(self._content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Program) and self._hash == other._hash and self._content == other._content
        )


class Traced(HoldsArrays, arrays=("captured",)):
    """A function as it was when it was traced, of arguments with the same shapes.

    captured: the arrays that it read from outside.
    program: what it computes from them and its arguments.
    """

    captured: list[Array]
    program: Program

    def __init__(self, function: Callable[..., Any], *arguments: Any):
        """Trace a function of arguments like these, of which only shapes and types matter."""
        # A new function in a new context: JAX would remember how it traced an old one, and jitted functions inside it.
        with _context(next(_NUMBERS)):
            closed, shapes = jax.make_jaxpr(lambda *given: function(*given), return_shape=True)(*arguments)
        self.captured = [jnp.asarray(value) for value in closed.consts]
        # From JAX 0.12 a computation holds what it captured, unless its variables for that are given anew.
        computation = closed.jaxpr.replace(constvars=closed.jaxpr.constvars)
        self.program = Program(computation, jax.tree.structure(shapes))

    def same_as(self, other: "Traced") -> bool:
        """Whether both compute the same, with captured arrays of the same numbers."""
        return self.program == other.program and [*map(_content, self.captured)] == [*map(_content, other.captured)]

    def __call__(self, *arguments: Any) -> Any:
        # Not above: it slows down `import contourmc`.
        from jax.extend.core import ClosedJaxpr, jaxpr_as_fun  # pyright: ignore[reportPrivateImportUsage]

        compute = jaxpr_as_fun(ClosedJaxpr(self.program.jaxpr, self.captured))
        return self.program.result.unflatten(map(jnp.asarray, compute(*jax.tree.leaves(arguments))))


def trace_method(thing: HoldsArrays, name: str, *arguments: Any) -> Traced:
    """A method of an object with functions, traced; its first argument is the object `without_functions`."""
    fresh = with_plain_functions(thing)

    def method(leaves: list[Any], *arguments: Any) -> Any:
        return getattr(jax.tree.structure(fresh).unflatten(leaves), name)(*arguments)

    return Traced(method, jax.tree.leaves(fresh), *arguments)


def with_plain_functions(thing: Kind) -> Kind:
    """A copy without `jax.jit` around its functions, which would remember what they once captured."""

    def plain(function: Any) -> Any:
        if isinstance(function, MethodType):
            return MethodType(plain(function.__func__), function.__self__)
        return getattr(function, "__wrapped__", function) if isinstance(function, jax.stages.Wrapped) else function

    return _with_functions(thing, plain)


def without_functions(thing: Kind) -> Kind:
    """A copy whose functions cannot be called, equal to those of objects that differ in their functions only."""
    return _with_functions(thing, lambda _: _taken_out)


def _with_functions(thing: Kind, change: Callable[[Any], Any]) -> Kind:
    """A copy with its functions changed, and those of the objects that it wraps; those that are None stay so."""
    new = copy.copy(thing)
    for name in getattr(thing, "functions", ()):
        value = getattr(thing, name)
        if isinstance(value, HoldsArrays):
            vars(new)[name] = _with_functions(value, change)
        elif value is not None:
            vars(new)[name] = change(value)
    return new


def _taken_out(*_: Any) -> Any:
    raise RuntimeError("this function was traced, and must not be called any more")


def _operations(jaxpr: Any) -> Iterator[Hashable]:
    """Everything that a computation depends on, with its variables numbered in the order in which they appear."""
    from jax.extend.core import ClosedJaxpr, Jaxpr, Literal  # pyright: ignore[reportPrivateImportUsage]

    numbers: dict[Any, int] = {}

    def number(atom: Any) -> Hashable:
        if isinstance(atom, Literal):
            return _content(atom.val), bool(getattr(atom.aval, "weak_type", False))
        return numbers.setdefault(atom, len(numbers)), str(atom.aval)

    yield tuple(number(variable) for variable in (*jaxpr.constvars, *jaxpr.invars))
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        settings = tuple(
            (setting, _setting(value))
            for setting, value in sorted(equation.params.items())
            if name not in _WITH_RULES or isinstance(value, (ClosedJaxpr, Jaxpr))
        )
        context = equation.ctx
        made = context.threefry_partitionable, str(context.compute_type), repr(context.xla_metadata)
        yield name, made, tuple(map(number, equation.invars)), tuple(map(number, equation.outvars)), settings
    yield tuple(number(variable) for variable in jaxpr.outvars)


def _setting(value: Any) -> Any:
    """A parameter of an operation, as something that can be compared."""
    from jax.extend.core import ClosedJaxpr, Jaxpr  # pyright: ignore[reportPrivateImportUsage]

    if isinstance(value, ClosedJaxpr):
        return (*_operations(value.jaxpr), *map(_content, value.consts))
    if isinstance(value, Jaxpr):
        return tuple(_operations(value))
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return tuple(map(_setting, value))
    if isinstance(value, (np.ndarray, jax.Array)):
        return _content(value)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _content(value: Any) -> Hashable:
    """A number or an array that is a constant of a computation: its type, shape, and a digest of its bytes."""
    if is_key(value):
        return str(value.dtype), _content(jax.random.key_data(value))
    array = np.asarray(value)
    return str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).digest()
