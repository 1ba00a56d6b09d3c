"""Packages that are not needed unless asked for."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def import_extra(module: str, extra: str) -> Any:
    """A module of an optional package; raises an error that names the extra to install if there is none."""
    package = module.partition(".")[0]
    if package not in sys.modules and find_spec(package) is None:
        raise ImportError(f"this needs {package}, which is not installed: pip install 'contourmc[{extra}]'")
    return import_module(module)
