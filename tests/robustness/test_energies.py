"""Energies of every ordinary kind run, and give the same draws on both paths of the CPU.

`python -m benchmarks.energies` samples each kind by itself. Here most of them are terms of the same energy, since every
program takes a second or two to compile.
"""

import gc
import logging
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.energies import REFUSED, SINGLE, VECTOR, difference, energy_error, sampled
from benchmarks.energy_kinds import KINDS, START, Kind
from jax.flatten_util import ravel_pytree

import contourmc as cm
from contourmc._core import compiling
from contourmc._core.compiling import compile_for
from contourmc.engine import plan
from contourmc.targets.energies import ExactEnergy

ALONE = ["a convolution", "bfloat16 inside", "64-bit floats"]  # as terms, they would make the others do as they do
SLOW = {
    "a matrix exponential", "an inverse", "a determinant", "a QR factor", "a linear system", "singular values",
    "incomplete Γ", "an associative scan",
}  # fmt: skip
TOGETHER = [name for name, kind in KINDS.items() if name not in {*ALONE, *SLOW} and not kind.x64]


def single(name):
    """Whether the steps of a run with this energy would be a single kernel."""
    position = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, KINDS[name].init))
    return plan.make_plan(ExactEnergy(KINDS[name].energy), cm.sgld(1e-2), position, 60, 10).build.fuse


def mean_of(names):
    """The mean of energies of the same vector, repeated as often as each needs; as steep as its step size allows."""

    def term(kind, x):
        flat, unravel = ravel_pytree(kind.init)
        return kind.energy(unravel(jnp.resize(x, flat.size))) * min(1, START.size / flat.size) * kind.step_size

    return Kind(lambda x: sum(term(KINDS[name], x) for name in names) / len(names) / 1e-2, START)


def test_energies_that_can_be_a_single_kernel_give_the_same_draws_as_vectors():
    names = [name for name in TOGETHER if single(name)]
    assert len(names) >= 28
    kind = mean_of(names)
    (chosen, path), (vector, other) = sampled(kind), sampled(kind, vector=True)
    assert (path, other) == (SINGLE, VECTOR)
    assert difference(chosen, vector) <= kind.tolerance


def test_all_other_energies_run_as_vectors():
    names = [name for name in TOGETHER if not single(name)]
    kind = mean_of(names)
    samples, path = sampled(kind)
    assert path == VECTOR
    assert energy_error(kind, samples) <= kind.tolerance


@pytest.mark.parametrize("name", ALONE)
def test_both_paths_give_the_same_draws(name):
    (chosen, path), (vector, _) = sampled(KINDS[name]), sampled(KINDS[name], vector=True)
    assert path == (VECTOR if name == "a convolution" else SINGLE)
    assert difference(chosen, vector) <= KINDS[name].tolerance


@pytest.mark.parametrize("word", ["key", "complex", "on the host", "4,096", "4,500", "00,000", "times matrix"])
def test_what_a_single_kernel_cannot_hold_never_reaches_it(word):
    """The compiler refuses some of these, and ends the process for others."""
    assert not any(single(name) for name in KINDS if word in name)


def test_a_compiler_that_refuses_the_single_kernel_costs_nothing_but_speed(monkeypatch, caplog):
    """Asked for a single kernel that it cannot make, it answers with an error; the chains are then a vector."""
    sums = KINDS["sums of 4,500 numbers in columns"]
    expected, _ = sampled(sums)
    monkeypatch.setattr(plan, "can_fuse", lambda *_: True)
    with caplog.at_level(logging.DEBUG, "contourmc"):
        refused, path = sampled(sums)
    assert path == REFUSED
    assert "refuses a single kernel" in caplog.text
    np.testing.assert_array_equal(refused.draws, expected.draws)


@jax.jit
def add_one(x):
    return x + 1


def test_a_program_that_is_not_needed_any_more_is_given_back():
    """The compiler ends the process when the system has no room for more programs, which was after some hundred."""
    program = compile_for(add_one, "full", jnp.zeros(3))
    kept = weakref.ref(program._executable)
    assert kept() is not None
    del program
    compiling._compile.cache_clear()
    gc.collect()
    assert kept() is None
