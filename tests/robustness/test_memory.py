"""A run that cannot fit is refused, one that runs out of memory keeps its draws, and none leaves programs behind."""

import gc
import pickle
import re
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core import cores
from contourmc._core.compiling import _compile, compile_for
from contourmc.engine.kernel_run import KernelRun

RUN = dict(init=jnp.zeros(2), steps=4000, kernel=cm.sgld(0.1))


def energy(x):
    return jnp.sum(x**2) / 2


def test_draws_larger_than_the_memory_are_refused_with_their_size():
    with pytest.raises(ValueError, match=r"^thin=1 .*GiB.*store=False"):
        cm.sample(energy, init=jnp.zeros(2**16), steps=2_000_000_000, kernel=cm.sgld(0.1), thin=1)


@pytest.fixture
def memory(monkeypatch):
    """8 GiB, whatever the machine has."""
    monkeypatch.setattr(cores, "_free", lambda: 8.0 * 2**30)
    monkeypatch.setattr(cores, "_limits", lambda: iter(()))


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("kernel", [cm.sgld(0.1), None])
@pytest.mark.parametrize(
    ("chains", "words"), [(10**9, r"59\.6 GiB"), (100_000, r"bytes for each chain.*GiB.*would fit")]
)
def test_chains_larger_than_the_memory_are_refused_with_their_size(chains, words, kernel):
    with pytest.raises(ValueError, match=rf"^chains={chains} .*{words}"):
        cm.sample(energy, init=jnp.zeros(2), steps=4000, kernel=kernel, chains=chains)


@pytest.mark.usefixtures("memory")
def test_the_size_is_that_of_the_buffers():
    """17,409 rows of two coordinates and four numbers more, in float32, and some 60 numbers of a state."""
    with cm.start(energy, **RUN) as run:
        rows = run.plan.build.capacity
    with pytest.raises(ValueError, match="free") as caught:
        cm.start(energy, **RUN, chains=100_000)
    each = int(re.search(r"([\d,]+) bytes for each", str(caught.value))[1].replace(",", ""))
    assert 0 <= each - rows * 6 * 4 < 300


@pytest.mark.usefixtures("memory")
def test_the_memory_of_a_gpu_counts(monkeypatch):
    class Device:
        def memory_stats(self):
            return {"bytes_limit": 3 * 2**30, "bytes_in_use": 2**31}

    monkeypatch.setattr(jax, "local_devices", lambda: [Device()])
    with pytest.raises(ValueError, match=r"^chains=5000 .* 1\.0 GiB are free"):
        cm.start(energy, **RUN, chains=5000)


def test_the_limit_of_a_container_counts(monkeypatch):
    files = {
        "/proc/meminfo": ["MemTotal: 9000 kB", "MemAvailable: 8000 kB"],
        "/proc/self/cgroup": ["4:memory:/job/7", "1:cpu:/job", "0::/slice"],
        "/sys/fs/cgroup/memory/job/7/memory.limit_in_bytes": ["9223372036854771712"],
        "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": ["5000000"],
        "/sys/fs/cgroup/slice/memory.max": ["max"],
    }
    monkeypatch.setattr(cores, "_lines", lambda path: files.get(str(path), []))
    assert cores.available_memory() == 5_000_000
    files["/sys/fs/cgroup/memory.max"] = ["4000000"]
    assert cores.available_memory() == 4_000_000
    del files["/proc/self/cgroup"]
    assert cores.available_memory() == 8000 * 1024


@pytest.mark.parametrize(
    "error", [MemoryError(), jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.")]
)
def test_a_run_out_of_memory_keeps_its_draws(error, monkeypatch):
    whole = cm.sample(energy, **RUN)
    advanced, calls = KernelRun._advanced, []

    def fails_later(self, *arguments):
        calls.append(1)
        if len(calls) > 2:
            raise error
        return advanced(self, *arguments)

    monkeypatch.setattr(KernelRun, "_advanced", fails_later)
    with pytest.raises(cm.OutOfMemoryError, match=r"ran out of memory after step.*store=False") as caught:
        cm.sample(energy, **RUN)
    assert isinstance(caught.value, MemoryError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    draws = caught.value.samples.draws
    assert 0 < draws.shape[1] < whole.draws.shape[1]
    np.testing.assert_array_equal(draws, whole.draws[:, : draws.shape[1]])


def test_other_errors_of_the_compiler_are_not_taken_for_it(monkeypatch):
    def fails(self, *arguments):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    monkeypatch.setattr(KernelRun, "_advanced", fails)
    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        cm.sample(energy, **RUN)


def programs():
    """How many compiled programs the process holds."""
    gc.collect()
    return sum(type(thing).__name__ in ("MeshExecutable", "Compiled") for thing in gc.get_objects())


def test_runs_that_tune_themselves_leave_no_programs_behind():
    """Not even runs of other sizes: JAX keeps all programs that it compiles by itself. Ours, which are few, are removed
    before the rest is counted.
    """
    _compile.cache_clear()
    before = None
    for seed in range(2):
        cm.sample(energy, init=jnp.zeros(2), steps=2000 + 400 * seed, chains=2, seed=seed).summary()
        _compile.cache_clear()
        before, after = programs() if before is None else before, programs()
    assert after <= before + 2


def test_only_the_latest_programs_are_kept():
    functions = [lambda x, i=i: x + i for i in range(20)]
    compiled = [weakref.ref(compile_for(function, "short", jnp.zeros(2))) for function in functions]
    dead, kept = compiled[0], compiled[-1]
    del functions
    gc.collect()
    assert dead() is None
    assert kept() is not None
    assert sum(program() is not None for program in compiled) <= 16
