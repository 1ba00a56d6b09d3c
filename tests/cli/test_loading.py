"""Energy functions and starting positions from a user's file."""

import sys

import jax.numpy as jnp
import pytest

from contourmc.cli.loading import load_function

MINE = """
import jax.numpy as jnp

start = jnp.array([1.0, 0.0])

def energy(x):
    return 8 * (x[0] ** 2 - 1) ** 2 + x[1] ** 2 / 2

def named(x):
    return jnp.sum(x["a"] ** 2) + x["b"] ** 2
"""


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def test_a_file_imports_its_neighbours(tmp_path, monkeypatch):
    """When it is loaded, and later, when its function is called."""
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "neighbour_at_once.py").write_text("scale = 2.0")
    (tmp_path / "neighbour_later.py").write_text("shift = 1.0")
    lines = "from neighbour_at_once import scale", "def energy(x):", " from neighbour_later import shift"
    (tmp_path / "mine.py").write_text("\n".join([*lines, " return scale * x + shift"]))
    energy, start = load_function(f"{tmp_path / 'mine.py'}:energy", "3.0")
    assert float(energy(start)) == 7


def test_positions_are_numbers_or_names(mine):
    energy, start = load_function(f"{mine}:energy", "start")
    assert float(energy(start)) == 0
    assert load_function(f"{mine}:energy", "0.5")[1] == jnp.float32(0.5)
    _, nested = load_function(f"{mine}:named", '{"a": [1.0, 2.0], "b": 0.0}')
    assert nested["a"].shape == (2,)


@pytest.mark.parametrize(
    ("target", "init", "words"),
    [
        ("energy", "0.0", "write FILE.py:NAME"),
        ("nowhere.py:energy", "0.0", "there is no file"),
        ("{mine}:other", "0.0", "it has energy, named"),
        ("{mine}:energy", "[1.0", "write numbers"),
    ],
)
def test_bad_input_is_named(mine, target, init, words):
    with pytest.raises(ValueError, match=words):
        load_function(target.format(mine=mine), init)
