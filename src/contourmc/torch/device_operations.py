"""PyTorch's meaning of the lines that a kernel is translated into: none of them waits for the device."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from contourmc._core.operations import Library

# Indices must have 64 bits in PyTorch, and whole numbers are nothing else in a kernel.
_TYPES = {
    "boolean": torch.bool,
    "float16": torch.float16,
    "float32": torch.float32,
    "float64": torch.float64,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint32"), torch.int64),
}


def device_library(device: Any) -> Library:
    """PyTorch on this device. Constant numbers stay numbers of Python, which travel with the call."""

    def constant(array: np.ndarray) -> Any:
        if array.shape == ():
            return array.item()
        kind = torch.int64 if array.dtype.kind in "iu" else None
        return torch.tensor(array, device=device, dtype=kind)

    def arange(shape: Sequence[int], dtype: Any) -> Any:
        return torch.arange(shape[0], dtype=dtype, device=device)

    return Library({**_TYPES, **_FUNCTIONS, "arange": arange}, constant)


def _maximum(first: Any, second: Any) -> Any:
    if not isinstance(first, torch.Tensor):
        return second.clamp_min(first)
    return torch.maximum(first, second) if isinstance(second, torch.Tensor) else first.clamp_min(second)


def _minimum(first: Any, second: Any) -> Any:
    if not isinstance(first, torch.Tensor):
        return second.clamp_max(first)
    return torch.minimum(first, second) if isinstance(second, torch.Tensor) else first.clamp_max(second)


def _window(array: Any, start: Any, sizes: Sequence[int]) -> Any:
    """A piece of an array, from an index on the device: a row of the view of all such pieces."""
    if sizes[0] == 1:
        return array.index_select(0, start)
    return array.unfold(0, sizes[0], 1).index_select(0, start)[0]


def _replace(array: Any, new: Any, start: Any) -> Any:
    index = start.reshape(1) if len(new) == 1 else start + torch.arange(len(new), device=array.device)
    return array.index_copy_(0, index, new)


def _part(array: Any, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None) -> Any:
    return array[tuple(map(slice, starts, limits, strides or [1] * len(starts)))]


_FUNCTIONS = {
    **{
        name: getattr(torch, name)
        for name in ("abs", "sign", "floor", "ceil", "exp", "expm1", "log", "log1p", "sqrt", "tanh", "cos", "sin")
    },
    "isfinite": torch.isfinite,
    "invert": torch.logical_not,
    "reshape": torch.reshape,
    "divide": lambda first, second: first / second,
    "remainder": torch.fmod,
    "maximum": _maximum,
    "minimum": _minimum,
    "choose": lambda second, first, other: torch.where(second, other, first),
    "convert": lambda value, dtype: value.to(dtype),
    "broadcast": torch.broadcast_to,
    "squeeze": lambda array, dimensions: array.squeeze(dimensions),
    "part": _part,
    "reduce_max": torch.amax,
    "reduce_min": torch.amin,
    "reduce_sum": torch.sum,
    "bounded": lambda index, high: index.clamp(0, high),
    "window": _window,
    "replaced": lambda array, new, start: _replace(array.clone(), new, start),
    "replace": _replace,
}
