"""JAX's operations on numbers and small arrays as lines of Python, and NumPy's meaning of the names in them.

A line is the same for every array library; the functions that it calls are a `Library`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# A line for each operation, with its inputs as {0}, {1}, … and its settings by name.
TEMPLATES: dict[str, str] = {
    "add": "{0} + {1}",
    "add_any": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "divide({0}, {1})",
    "rem": "remainder({0}, {1})",
    "neg": "-{0}",
    "abs": "abs({0})",
    "sign": "sign({0})",
    "max": "maximum({0}, {1})",
    "min": "minimum({0}, {1})",
    "clamp": "minimum(maximum({1}, {0}), {2})",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "exp": "exp({0})",
    "expm1": "expm1({0})",
    "log": "log({0})",
    "log1p": "log1p({0})",
    "sqrt": "sqrt({0})",
    "rsqrt": "1 / sqrt({0})",
    "square": "{0} * {0}",
    "one_minus_square": "(1 - {0}) * (1 + {0})",
    "integer_pow": "{0} ** {y}",
    "pow": "{0} ** {1}",
    "tanh": "tanh({0})",
    "logistic": "1 / (1 + exp(-{0}))",
    "cos": "cos({0})",
    "sin": "sin({0})",
    "is_finite": "isfinite({0})",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "not": "invert({0})",
    "select_n": "choose({0}, {1}, {2})",
    "convert_element_type": "convert({0}, {new_dtype})",
    "iota": "arange({shape}, {dtype})",
    "broadcast_in_dim": "broadcast({0}, {shape})",
    "reshape": "reshape({0}, {new_sizes})",
    "squeeze": "squeeze({0}, {dimensions})",
    "slice": "part({0}, {start_indices}, {limit_indices}, {strides})",
    "reduce_max": "reduce_max({0}, {axes})",
    "reduce_min": "reduce_min({0}, {axes})",
    "reduce_sum": "reduce_sum({0}, {axes})",
    "bounded": "bounded({0}, {high})",
    "dynamic_slice": "window({0}, {1}, {slice_sizes})",
    "dynamic_update_slice": "replaced({0}, {1}, {2})",
    "dynamic_update_slice_in_place": "replace({0}, {1}, {2})",
}
_SETTINGS = {"y", "new_dtype", "dtype", "shape", "new_sizes", "dimensions", "start_indices", "limit_indices", "strides"}
_SETTINGS |= {"axes", "high", "slice_sizes"}


def template_of(name: str, settings: Mapping[str, Any]) -> tuple[str | None, tuple[tuple[str, Any], ...]]:
    """The line for an operation, None if there is none; and those of its settings that the line may name."""
    kept = tuple((key, _written(value)) for key, value in sorted(settings.items()) if key in _SETTINGS)
    if name == "broadcast_in_dim":
        # Only what broadcasting does by itself: the dimensions of the input are the last ones of the result.
        wanted = tuple(settings["broadcast_dimensions"])
        if wanted != tuple(range(len(settings["shape"])))[len(settings["shape"]) - len(wanted) :]:
            return None, kept
    return TEMPLATES.get(name), kept


def _written(value: Any) -> str:
    """A setting as it stands in a line: types by their name."""
    if isinstance(value, (np.dtype, type)) or hasattr(value, "dtype"):
        return np.dtype(value).name.replace("bool", "boolean")
    return repr(tuple(int(each) for each in value) if isinstance(value, (tuple, list)) else value)


class Library:
    """An array library: what the names in the lines mean, and how a constant is written down.

    names: the functions and types.
    constant: a number or array of NumPy as the library takes it.
    """

    def __init__(self, names: Mapping[str, Any], constant: Callable[[np.ndarray], Any]):
        self.names, self.constant = dict(names), constant

    def compute(self, template: str, settings: Any, values: Sequence[Any], shape: tuple[int, ...]) -> Any:
        """The result of one line."""
        line = template.format(*(f"a{i}" for i in range(len(values))), **dict(settings))
        return eval(line, {**self.names, **{f"a{i}": value for i, value in enumerate(values)}})


def _choose(second: Any, first: Any, other: Any) -> Any:
    if isinstance(second, np.ndarray) and second.ndim:
        return np.where(second, other, first)
    return other if second else first


def _replace(array: np.ndarray, new: np.ndarray, start: Any) -> np.ndarray:
    array[start : start + len(new)] = new
    return array


def _part(array: np.ndarray, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None) -> np.ndarray:
    return array[tuple(map(slice, starts, limits, strides or [1] * len(starts)))]


def _squeeze(array: np.ndarray, dimensions: tuple[int, ...]) -> Any:
    # A single number as a scalar of NumPy, on which arithmetic is ten times as fast as on an array of one.
    return array[0] if array.shape == (1,) else np.squeeze(array, dimensions)


HOST = Library(
    {
        "boolean": np.bool_,
        **{
            name: getattr(np, name)
            for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32")
        },
        **{
            name: getattr(np, name)
            for name in ("abs", "sign", "maximum", "minimum", "floor", "ceil", "exp", "expm1", "log", "log1p", "sqrt")
        },
        **{name: getattr(np, name) for name in ("tanh", "cos", "sin", "isfinite", "invert", "reshape")},
        "divide": np.divide,
        "remainder": np.fmod,
        "choose": _choose,
        "convert": lambda value, dtype: value.astype(dtype),
        "arange": lambda shape, dtype: np.arange(shape[0], dtype=dtype),
        "broadcast": np.broadcast_to,
        "squeeze": _squeeze,
        "part": _part,
        "reduce_max": np.max,
        "reduce_min": np.min,
        "reduce_sum": np.sum,
        "bounded": lambda index, high: min(max(index, 0), high),
        "window": lambda array, start, sizes: array[start : start + sizes[0]],
        "replaced": lambda array, new, start: _replace(array.copy(), new, start),
        "replace": _replace,
    },
    lambda array: array[()],
)
