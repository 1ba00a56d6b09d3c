"""Compiled programs are kept between processes, unless the user decides otherwise; each in a process of its own."""

import os
import subprocess
import sys

import pytest

from contourmc._core import compilation_cache

RUN = """
import sys
{before}
import jax
import contourmc as cm
cm.sample(lambda x: x**2 / 2, init=0.0, steps=100, kernel=cm.sgld(0.1), chains=1, progress=False)
print("cache", jax.config.jax_compilation_cache_dir)
"""


def process(before="", **environment):
    """The folder of the cache that a run in a new process uses, and what it wrote to stderr."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "CONTOURMC_"))}
    code = RUN.format(before=before)
    done = subprocess.run(
        [sys.executable, "-c", code], env=mine | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.rsplit("cache ", 1)[1].strip(), done.stderr


def test_programs_are_kept_for_the_next_process(tmp_path):
    """In a folder named after JAX and the processor; the second process adds nothing and says nothing.

    All programs are kept, however quickly they were compiled: the usual limit is one of the clock.
    """
    settings = {"XDG_CACHE_HOME": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    folder, _ = process(**settings)
    assert folder.startswith(str(tmp_path / "contourmc" / "jax-"))
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    again, said = process(**settings)
    assert again == folder
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == files
    assert files
    assert said == ""


@pytest.mark.parametrize(
    ("environment", "before", "expected"),
    [
        ({"CONTOURMC_CACHE": "0"}, "", "None"),
        ({"CONTOURMC_CACHE": "{tmp}/mine"}, "", "{tmp}/mine"),
        ({}, "import jax; jax.config.update('jax_compilation_cache_dir', '{tmp}/own')", "{tmp}/own"),
        ({"XDG_CACHE_HOME": "/proc/none"}, "", "None"),  # where no folder can be made
    ],
)
def test_who_decides_otherwise_is_obeyed(tmp_path, environment, before, expected):
    given = {name: value.format(tmp=tmp_path) for name, value in environment.items()}
    folder, said = process(before.format(tmp=tmp_path), **given)
    assert folder.startswith(expected.format(tmp=tmp_path))
    assert said == ""


def test_the_oldest_programs_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_MOST_BYTES", 25)
    for age, name in enumerate(["old", "middle", "new"]):
        file = tmp_path / "jax-x" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"0123456789")
        os.utime(file, (age, age))
    compilation_cache._prune(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*/*")) == ["middle", "new"]
