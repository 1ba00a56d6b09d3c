"""Versions of contourmc, of what it needs, and of the optional packages that are there."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

NEEDED = ("contourmc", "jax", "jaxlib", "numpy", "scipy", "optax")
OPTIONAL = (
    "matplotlib", "jinja2", "xarray", "arviz", "zarr", "flax", "blackjax", "numpyro", "pymc", "torch",
)  # fmt: skip


def versions() -> dict[str, str]:
    """By package, Python first; optional packages that are not installed are left out."""
    found = {name: version_of(name) for name in (*NEEDED, *OPTIONAL)}
    return {"Python": platform.python_version()} | {name: one for name, one in found.items() if one}


def version_of(package: str) -> str:
    """The version of a package; empty if it is not installed."""
    if package == "contourmc":
        return sys.modules["contourmc"].__version__  # not imported: it is above all layers
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
