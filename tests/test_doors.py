"""Doors to other libraries are closed until somebody asks."""

import subprocess
import sys

OTHERS = ("numpyro", "pymc", "pytensor", "arviz", "xarray", "zarr", "matplotlib", "torch", "blackjax")


def loaded_after(code):
    """Which of the other libraries a new process has imported after some code."""
    report = f"; import sys; print([name for name in {OTHERS} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_sampling_imports_none_of_them():
    call = "cm.sample(lambda x: x**2, init=0.0, steps=200, kernel=cm.sgld(0.1))"
    constraints = "cm.positive, cm.simplex, cm.ordered, cm.interval(0, 1), cm.periodic(1.0)"
    assert loaded_after(f"import contourmc as cm; run = {call}; run.mean(); {constraints}") == "[]"


def test_angles_need_none_of_them():
    call = "cm.sample(cm.transformed(lambda x: 0 * x, cm.periodic(1.0)), init=0.0, steps=200, kernel=cm.sgld(0.1))"
    assert loaded_after(f"import contourmc as cm; {call}") == "[]"


def test_transformed_targets_import_numpyro_alone():
    call = "cm.transformed(lambda x: x, cm.positive)"
    assert loaded_after(f"import contourmc as cm; {call}") == "['numpyro']"


def test_an_unknown_name_is_none_of_ours():
    done = subprocess.run(
        [sys.executable, "-c", "import contourmc as cm; cm.from_stan"], capture_output=True, text=True
    )
    assert "has no attribute 'from_stan'" in done.stderr
