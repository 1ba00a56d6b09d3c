"""A run is the same on one device, on eight, and in two processes that make it together.

Virtual devices of one CPU, and processes on this machine that speak over gloo. Eight chains. Those that are a kernel of
their own must be the same bit for bit. Chains of a vector are rounded as the compiler likes: with JAX 0.12, a vector of
one chain differently from one of eight, in the last digit. Energies then differ by 2e-7 after 2,000 steps. They are
compared to 1e-4; those of two chains, which have other noise and batches, differ by 0.16. Chains that share θ are
compared in the same way: their sums have parts.
"""

import signal
import time
from pathlib import Path

import numpy as np
import pytest
from benchmarks.scaling.layouts import Layout, finish, measure, start

CACHE = Path(__file__).parents[1] / ".compiled"
KERNELS = [("a kernel", 20_000), ("automatic", 20_000), ("divergence", 1_000)]
VECTORS = [("average", 2_000), ("batch in parts", 400), ("shared theta", 100)]
RUNS = KERNELS + VECTORS
TWO_PROCESSES = Layout(processes=2)


@pytest.fixture(autouse=True, scope="module")
def _cached():
    """All processes share what the tests have compiled, as a user's are: no less optimised than that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("XLA_FLAGS", raising=False)
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
        yield


@pytest.fixture(scope="module")
def one_device(_cached):
    (found,) = measure(Layout(), RUNS)
    return found


def require_same(found, expected):
    for (kind, _), one, other in zip(RUNS, found, expected, strict=True):
        if kind in dict(KERNELS):
            assert one["digest"] == other["digest"], kind
        assert one["draws"] == other["draws"]
        for figures in ("energies", "theta", "nll"):
            np.testing.assert_allclose(one[figures], other[figures], rtol=1e-4, atol=1e-4, err_msg=kind)


def test_eight_devices_equal_one(one_device):
    (found,) = measure(Layout(devices=8), RUNS)
    require_same(found, one_device)


def test_two_processes_equal_one_and_each_has_the_whole_result(one_device):
    for found in measure(TWO_PROCESSES, RUNS):
        require_same(found, one_device)


def test_data_that_one_process_cannot_read_end_both_with_the_same_draws():
    (one,), (other,) = measure(TWO_PROCESSES, [("unreadable data", 1000)])
    assert one["digest"] == other["digest"]
    assert one["draws"][1] == 400  # those before the batch that is missing, after burn-in


def killed_after_a_checkpoint(layout, folder):
    """Start a run that tunes itself, and kill all its processes as soon as it has a checkpoint."""
    workers = start(layout, [RUNS[1]], folder)
    states = folder / "automatic" / "states"
    wait_for(lambda: states.exists() and any(entry.suffix == ".npz" for entry in states.iterdir()), workers)
    for worker in workers:
        worker.process.kill()
        assert worker.process.wait() == -signal.SIGKILL


def wait_for(condition, workers):
    while not condition():
        time.sleep(0.01)
        for worker in workers:
            assert worker.process.poll() is None, worker.errors.read_text()[-2000:]


def test_two_processes_that_are_killed_are_resumed_by_two_and_by_one(one_device, tmp_path):
    expected = one_device[1]["digest"]
    killed_after_a_checkpoint(TWO_PROCESSES, tmp_path / "by two")
    assert [found[0]["digest"] for found in measure(TWO_PROCESSES, [RUNS[1]], tmp_path / "by two")] == [expected] * 2
    killed_after_a_checkpoint(TWO_PROCESSES, tmp_path / "by one")
    ((found,),) = measure(Layout(devices=4), [RUNS[1]], tmp_path / "by one")
    assert found["digest"] == expected


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 0)])
def test_a_signal_to_one_process_ends_both_with_a_checkpoint(sent, status, tmp_path):
    """Ctrl-C returns what there is so far, in both processes the same."""
    workers = start(TWO_PROCESSES, [("a kernel", 2**31 - 1)], tmp_path)
    states = tmp_path / "a-kernel" / "states"
    wait_for(lambda: states.exists() and any(states.iterdir()), workers)
    workers[1].process.send_signal(sent)
    assert [worker.process.wait(120) for worker in workers] == [status] * 2
    if status == 0:
        (one,), (other,) = finish(workers)
        assert one["digest"] == other["digest"]
