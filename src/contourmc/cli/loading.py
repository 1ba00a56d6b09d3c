"""Load an energy function and a starting position from a user's file."""

import ast
import runpy
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from contourmc._core.checks import require


def load_function(reference: str, init: str) -> tuple[Any, Any]:
    """The function named by FILE.py:NAME, and the position: `init` is a literal, or a name in the same file."""
    path, _, name = reference.rpartition(":")
    require(bool(path and name), "target", reference, "write FILE.py:NAME, such as mine.py:energy")
    file = Path(path)
    require(file.is_file(), "target", reference, f"there is no file {file}")
    sys.path.insert(0, str(file.resolve().parent))  # as Python does, for imports at any time
    try:
        names = runpy.run_path(str(file))
    except Exception as error:
        raise ValueError(f"target={reference!r} is not possible: {file} fails with {error!r}") from error
    functions = sorted(key for key, value in names.items() if callable(value) and not key.startswith("_"))
    remedy = f"{file} has no function {name!r}; it has {', '.join(functions) or 'none'}"
    require(callable(names.get(name)), "target", reference, remedy)
    return names[name], _position(init, names)


def _position(init: str, names: dict[str, Any]) -> Any:
    """The value of the name `init`, if the file has it; otherwise `init` read as a literal."""
    if init in names:
        return names[init]
    try:
        value = ast.literal_eval(init)
        return jnp.asarray(value, jnp.result_type(float)) if not isinstance(value, dict) else _arrays(value)
    except (ValueError, SyntaxError, TypeError) as error:
        remedy = 'write numbers, such as 0.0 or "[0.0, 1.5]", or a name in the file'
        raise ValueError(f"init={init!r} is not possible: {remedy}") from error


def _arrays(value: dict[str, Any]) -> dict[str, Any]:
    return {key: jnp.asarray(entry, jnp.result_type(float)) for key, entry in value.items()}
