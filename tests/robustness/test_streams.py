"""What comes from outside: loaders that hang or shuffle, random keys in a state, noise of mini-batches, forks."""

import signal
import subprocess
import sys
from threading import Timer

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

HANGING = """
import itertools, signal, threading
import numpy as np
import contourmc as cm

signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run in the background

def hang():
    print("hanging", flush=True)
    threading.Event().wait()

def run(batches):
    target = cm.StreamedPosterior(lambda x, y: -((y - x) ** 2), lambda x: -(x**2), batches, size=4)
    return cm.sample(target, init=0.0, steps=1000, kernel=cm.sgld(1e-3), chains=1, burn_in=0, thin=1)

def late():
    yield from itertools.repeat(np.zeros(4, np.float32), 300)
    hang()

first = iter([[np.zeros(4, np.float32)]])
try:
    run(lambda: next(first, None) or hang())
except KeyboardInterrupt:
    print("nothing", flush=True)
samples = run(late)
print(samples.interrupted, 0 < samples.energies.size <= 300, flush=True)
hang()
"""
# Children in turn: one before JAX is used and one after that. JAX's own warning is of no use: the child hangs.
FORKS = """
import os, sys
import contourmc as cm
import jax

def child():
    if os.fork() == 0:
        try:
            run = cm.sample(lambda x: x**2 / 2, init=0.0, steps=200, kernel=cm.sgld(0.1), chains=2)
            print(run.draws.shape[0], flush=True)
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
        os._exit(0)
    os.wait()

child()
jax.devices()
child()
"""
Y = np.random.default_rng(0).normal(size=40).astype(np.float32)
RUN = dict(init=0.0, steps=30, kernel=cm.sgld(1e-3), chains=2, burn_in=0, thin=10)


def log_likelihood(x, y):
    return -((y - x) ** 2) / 2


def log_prior(x):
    return -(x**2) / 2


def test_ctrl_c_ends_a_run_whose_loader_hangs_and_the_next_one_ends_the_process():
    """Before the first step and in the middle. If Ctrl-C had no effect, the process would be killed after 2 minutes."""
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True) as process:
        limit = Timer(120, process.kill)
        limit.start()
        try:
            assert process.stdout is not None
            for answer in ("nothing", "True True", ""):
                assert process.stdout.readline().strip() == "hanging"
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline().strip() == answer
            assert process.wait() == -signal.SIGINT
        finally:
            limit.cancel()
            process.kill()


class Shuffling:
    """A loader that goes on shuffling where it stopped."""

    def __init__(self):
        self.random = np.random.default_rng(0)

    def __iter__(self):
        return iter(self.random.permutation(Y).reshape(4, 10))


def seeded():
    return iter(Shuffling())


def test_a_loader_that_goes_on_shuffling_is_told_about():
    target = cm.StreamedPosterior(log_likelihood, log_prior, Shuffling(), size=40)
    before = cm.sample(target, **RUN)
    with pytest.warns(UserWarning, match="same seed does not give the same draws.*function"):
        after = cm.sample(target, **RUN)
    assert not np.array_equal(before.draws, after.draws)


def test_a_function_that_makes_a_seeded_loader_gives_the_same_draws_again():
    target = cm.StreamedPosterior(log_likelihood, log_prior, seeded, size=40)
    np.testing.assert_array_equal(cm.sample(target, **RUN).draws, cm.sample(target, **RUN).draws)


@pytest.mark.parametrize("store", [True, False])
def test_random_keys_in_a_state_are_kept_with_the_draws_and_in_files(store, tmp_path):
    def noisy(x, state, y):
        key, now = jax.random.split(state["key"])
        return log_likelihood(x, y) + jax.random.normal(now, y.shape), {"key": key, "count": state["count"] + 1}

    state = {"key": jax.random.key(3), "count": jnp.int32(0)}
    target = cm.Posterior(noisy, log_prior, Y, batch_size=10, state=state)
    run = cm.start(target, **RUN, store=store)
    run.advance()
    expected = state["key"]
    for _ in range(30):
        expected, _ = jax.random.split(expected)
    assert run.target_states["key"][1] == expected
    if store:
        drawn = cm.Samples.load(run.samples().save(tmp_path / "run.nc")).target_states
        np.testing.assert_array_equal(drawn["count"], [[10, 20, 30]] * 2)
        assert drawn["key"][1, 2] == expected


def test_random_keys_that_only_pass_through_a_state_do_not_reach_the_single_kernel():
    target = cm.Posterior(lambda x, key, y: (log_likelihood(x, y), key), log_prior, Y, 40, state=jax.random.key(3))
    assert cm.sample(target, **RUN).target_states[1, 2] == jax.random.key(3)


@pytest.mark.parametrize(
    "target",
    [
        cm.Posterior(log_likelihood, log_prior, Y, batch_size=10),
        cm.Posterior(log_likelihood, log_prior, Y, batch_size=40, replace=True),
        cm.Posterior(log_likelihood, log_prior, Y, batch_size=40, augment=lambda key, y: y),
        cm.StreamedPosterior(log_likelihood, log_prior, [Y], size=40),
    ],
    ids=["batches", "replace", "augment", "stream"],
)
@pytest.mark.parametrize("step_size", ["auto", 0.01])
def test_a_run_on_mini_batches_cannot_tune_itself(target, step_size):
    with pytest.raises(ValueError, match=r"^learning_rate=None .*sgld\(0\.0025\).*networks\.md.*one batch"):
        cm.sample(target, init=0.0, steps=2000, step_size=step_size)


def test_a_run_on_all_data_at_once_tunes_itself():
    """The posterior is normal, with mean Σy/41 and variance 1/41; the errors are a few standard errors at most."""
    run = cm.sample(cm.Posterior(log_likelihood, log_prior, Y, batch_size=40), init=0.0, steps=10_000, chains=2)
    assert run.mean() == pytest.approx(Y.sum() / 41, abs=0.02)
    assert run.variance() == pytest.approx(1 / 41, rel=0.2)


def test_a_child_samples_or_says_why_it_cannot():
    """Where it hung, the test would end after two minutes."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, check=True)
    first, second = done.stdout.splitlines()
    assert first == "2"
    assert second.startswith("RuntimeError JAX cannot be used in this process, which was forked")
    assert 'get_context("spawn")' in second
