"""Compiled programs, kept between processes in JAX's persistent compilation cache.

A second process then compiles nothing that an earlier one has compiled. The folder is `contourmc` in the user's cache
folder, and below it one for each combination of JAX and processor: programs of another processor may not run here. The
environment variable CONTOURMC_CACHE names another folder, or turns it off if it is 0. Who has set JAX's own
`jax_compilation_cache_dir` keeps it.
"""

import hashlib
import logging
import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax

_LOG = logging.getLogger(__name__)
_SECONDS = 0.005  # programs that took less are not worth a file
_DEFAULT_SECONDS = 1.0  # JAX's own limit, which is left alone if it is another
_MOST_BYTES = 2**29


@cache
def use_compilation_cache() -> None:
    """Turn the cache on, once for this process, unless the user has decided otherwise."""
    wanted = os.environ.get("CONTOURMC_CACHE", "")
    if wanted == "0" or _setting("compilation_cache_dir") or not _setting("enable_compilation_cache"):
        return
    root = Path(wanted).expanduser() if wanted else _user_folder() / "contourmc"
    folder = root / f"jax-{jax.__version__}-{_machine()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _prune(root)
    except (OSError, RuntimeError) as error:  # a read-only file system, or no home
        _LOG.debug("no compilation cache: %s", error)
        return
    if not os.access(folder, os.W_OK):
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if _setting("persistent_cache_min_compile_time_secs") == _DEFAULT_SECONDS:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _SECONDS)


def cache_folder() -> Path | None:
    """Where compiled programs are kept; None if they are not."""
    folder = _setting("compilation_cache_dir")
    return Path(folder) if folder and _setting("enable_compilation_cache") else None


def _setting(name: str) -> Any:
    return getattr(jax.config, f"jax_{name}")


def _user_folder() -> Path:
    """Where this system keeps caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _machine() -> str:
    """A name for the processor: its kind, and a hash of the instructions that it knows."""
    known = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        known += "".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    except OSError:
        pass  # only Linux has it
    return f"{platform.machine()}-{hashlib.sha256(known.encode()).hexdigest()[:12]}"


def _prune(root: Path) -> None:
    """Remove the oldest programs if all together take more than half a gigabyte."""
    files = [(file.stat().st_mtime, file.stat().st_size, file) for file in root.glob("*/*") if file.is_file()]
    excess = sum(size for _, size, _ in files) - _MOST_BYTES
    for _, size, file in sorted(files, key=lambda entry: entry[0]):
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        excess -= size
