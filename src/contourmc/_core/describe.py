"""Descriptions: what a kernel or a target is, as plain data that a file can hold."""

import math
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np


def describe(thing: Any) -> Any:
    """A dataclass becomes a dictionary with its kind and the fields that its `repr` shows.

    A function becomes its name, a JAX array its shape. Numbers and strings stay as they are, except that infinities and
    NaN, which JSON cannot hold, become strings.
    """
    if is_dataclass(thing) and not isinstance(thing, type):
        return {"kind": type(thing).__name__} | {
            entry.name: describe(getattr(thing, entry.name)) for entry in fields(thing) if entry.repr
        }
    if isinstance(thing, jax.Array):
        return str(jax.typeof(thing))
    if isinstance(thing, dict):
        return {str(name): describe(value) for name, value in thing.items()}
    if isinstance(thing, (list, tuple, np.ndarray)):
        return [describe(item) for item in thing]
    if isinstance(thing, (np.number, np.bool_)):
        return thing.item()
    if isinstance(thing, float) and not math.isfinite(thing):
        return str(thing)
    if thing is None or isinstance(thing, (str, int, float, bool)):
        return thing
    return getattr(thing, "__qualname__", None) or repr(thing)
