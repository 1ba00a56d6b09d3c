"""Functions of the user that ask for a random key, as a model with dropout does."""

import inspect
from collections.abc import Callable
from typing import Any


def takes_key(function: Callable[..., Any]) -> bool:
    """Whether a likelihood or a model takes a random key: its last parameter is called `key`, or it says so itself by
    an attribute `takes_key`.
    """
    said = getattr(function, "takes_key", None)
    if isinstance(said, bool):
        return said
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some functions that are not of Python do not tell
        return False
    return names[-1:] == ["key"]
