"""The C loop of `reference.c`, compiled on the spot."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.problem import BINS, THIN

_SOURCE = Path(__file__).with_name("reference.c")
# What a careful person uses for numbers that must be right: all of the machine, but no -ffast-math.
_FLAGS = ("-std=c11", "-O3", "-march=native", "-shared", "-fPIC")


def c_loop(steps: int) -> Callable[[], float] | None:
    """A function that runs one chain and returns its weighted mean, or None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "reference.so"
        subprocess.run([compiler, *_FLAGS, str(_SOURCE), "-o", str(library), "-lm"], check=True)
        run = ctypes.CDLL(str(library)).run  # stays loaded when the file is gone
    floats, integers = (np.ctypeslib.ndpointer(kind, flags="C") for kind in (np.float32, np.int32))
    run.argtypes = (ctypes.c_int, ctypes.c_uint64, floats, integers, floats)
    run.restype = ctypes.c_float
    theta, visits = np.empty(BINS, np.float32), np.empty(BINS, np.int32)
    draws = np.empty((-(-steps // THIN), 4), np.float32)
    return lambda: run(steps, 0, theta, visits, draws)
