"""External energies that go wrong: named errors, draws that are kept, no hanging, no process left behind."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import jax
import numpy as np
import pytest

import contourmc as cm

RUN = dict(init={"a": np.zeros(2), "b": 0.5}, steps=400, kernel=cm.sgld(0.01), chains=2, burn_in=0, thin=1)
WORKERS = [2, "threads"]


def quadratic(fail=None, above=0.0):
    """½a² + ½b², for worker processes by value; above some b, it fails."""

    def energy(x):
        if fail is not None and x["b"] > above:
            return fail(x)
        return np.sum(x["a"] ** 2) / 2 + x["b"] ** 2 / 2, x

    return energy


def failing_later(fail, workers):
    """A run whose function fails in the middle, and the error."""
    clean = cm.sample(cm.external(quadratic(), workers="threads"), **RUN)
    highest = np.maximum.accumulate(clean.draws["b"].max(axis=0))
    above = float(highest[150]) + 1e-6  # some step after the 150th is the first beyond it
    with pytest.raises(cm.EnergyError) as caught:
        cm.sample(cm.external(quadratic(fail, above), workers=workers), **RUN)
    first = int(np.argmax(highest > above))
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[:, :first]), caught.value.samples.draws, clean.draws)
    assert caught.value.step == first + 1
    return str(caught.value)


@pytest.mark.parametrize("workers", WORKERS)
def test_an_exception_ends_the_run_with_its_traceback_and_keeps_the_draws(workers):
    def explode(x):
        raise ZeroDivisionError("the mesh is tangled")

    message = failing_later(explode, workers)
    assert message.startswith("the external energy `energy` failed at a position with the numbers [")
    assert "ZeroDivisionError: the mesh is tangled" in message.splitlines()[0]
    assert ", in explode" in message


@pytest.mark.parametrize(
    ("die", "status"),
    [(lambda x: os._exit(3), "exit status 3"), (lambda x: os.kill(os.getpid(), signal.SIGSEGV), "signal 11")],
)
def test_a_worker_that_dies_ends_the_run_and_keeps_the_draws(die, status):
    assert f"the worker process died ({status}" in failing_later(die, 2)


def test_sys_exit_is_an_error_like_any_other():
    assert "SystemExit: 7" in failing_later(lambda x: sys.exit(7), 1)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (1.0, r"must return \(energy, gradient\), and it returned 1\.0"),
        ((1.0, 2.0, 3.0), r"must return \(energy, gradient\)"),
        ((np.ones(2), {"a": np.zeros(2), "b": 0.0}), r"an energy must be one float.*array"),
        ((1.0, {"a": np.zeros(3), "b": 0.0}), r"gradient\['a'\] has the shape \(3,\), and the position there \(2,\)"),
        ((1.0, {"a": np.zeros(2)}), r"gradient must be made like the position there, and it is \{'a'"),
        ((1.0, [np.zeros(2), 0.0]), r"gradient must be made like the position"),
        ((1.0, {"a": "north", "b": 0.0}), r"could not convert string to float"),
        (None, r"must return \(energy, gradient\), and it returned None"),
    ],
)
def test_what_a_function_must_return_is_said(returned, words, workers):
    with pytest.raises(cm.EnergyError, match=f"(?s)^the external energy `energy` failed.*{words}"):
        cm.sample(cm.external(quadratic(lambda x: returned), workers=workers), **RUN)


def test_energies_that_are_not_finite_are_what_they_are_for_any_target():
    with pytest.raises(ValueError, match=r"^init='a start of chain 0 with energy nan'"):
        cm.sample(cm.external(quadratic(lambda x: (np.nan, x)), workers="threads"), **RUN)
    bad = {"a": np.full(2, np.nan), "b": 0.0}
    with pytest.raises(ValueError, match=r"^init='a start of chain 0 where the gradient is not finite'"):
        cm.sample(cm.external(quadratic(lambda x: (1.0, bad)), workers="threads"), **RUN)
    with pytest.raises(cm.DivergenceError) as caught:
        cm.sample(cm.external(quadratic(lambda x: (np.nan, x), above=0.6), workers="threads"), **RUN)
    assert 0 < caught.value.samples.energies.shape[1] < 400


class Odd:
    def __init__(self, value):
        self.value = value


class Pair(NamedTuple):
    left: object
    right: object


jax.tree_util.register_pytree_node(Odd, lambda odd: ([odd.value], None), lambda _, leaves: Odd(*leaves))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(workers=0), r"^workers=0 .*1 or more.*\"threads\""),
        (dict(workers=-2), r"^workers=-2 "),
        (dict(workers=1.5), r"^workers=1.5 "),
        (dict(workers="processes"), r"^workers='processes' "),
        (dict(gradient="numeric"), r"^gradient='numeric' .*differences"),
        (dict(difference_step=0.0), r"^difference_step=0.0 "),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_settings_that_are_not_possible(settings, words):
    with pytest.raises(ValueError, match=words):
        cm.external(quadratic(), **settings)


@pytest.mark.usefixtures("untyped")
def test_what_is_not_a_function():
    with pytest.raises(ValueError, match=r"^function=3.0 .*give a function"):
        cm.external(3.0)


def test_positions_that_are_not_possible():
    target = cm.external(lambda x: x @ x, gradient="differences", workers="threads")
    with pytest.raises(ValueError, match=r"^gradient='differences' .*51 numbers.*above 50, give a gradient"):
        cm.sample(target, init=np.zeros(51), steps=10, kernel=cm.sgld(0.1))
    with pytest.raises(ValueError, match=r"^init='Odd' .*dictionaries, lists and tuples"):
        cm.sample(cm.external(quadratic()), init=[Odd(1.0)], steps=10, kernel=cm.sgld(0.1))
    named = cm.external(lambda x: (x.left**2 + x.right[0] ** 2, (2 * x.left, (2 * x.right[0],))), workers="threads")
    run = cm.sample(named, init=Pair(1.0, (0.5,)), steps=10, kernel=cm.sgd(0.25), chains=1, burn_in=0)
    np.testing.assert_allclose(run.draws.left[0], 0.5 ** np.arange(10), rtol=1e-6)


def test_each_chain_cannot_have_its_own():
    with pytest.raises(ValueError, match=r"^target='a list of targets with data or energies on the host'"):
        cm.sample([cm.external(quadratic()), cm.external(quadratic())], init=RUN["init"], steps=9, kernel=cm.sgld(0.1))


def test_what_cannot_be_pickled_says_so_and_works_in_threads():
    lock = threading.Lock()

    def energy(x):
        with lock:
            return x**2 / 2, x

    run = dict(init=0.5, steps=20, kernel=cm.sgld(0.1), chains=2)
    with pytest.raises(ValueError, match=r"^function=.*energy.*cannot be pickled.*\"threads\".*lock"):
        cm.sample(cm.external(energy, workers=2), **run)
    assert np.isfinite(cm.sample(cm.external(energy, workers="threads"), **run).draws).all()


def children():
    """The worker processes that this one has started and not yet waited for; those that have ended have no command."""
    lists = Path("/proc/self/task").glob("*/children")
    numbers = [number for file in lists for number in file.read_text().split()]
    commands = [Path(f"/proc/{number}/cmdline").read_text() for number in numbers]
    return [command for command in commands if not command or "worker_process" in command]


def test_no_process_and_no_thread_is_left_behind():
    target = cm.external(quadratic(), workers=2)
    with cm.start(target, **RUN) as run:
        run.advance(10)
        assert len(children()) == 2
    assert not children()
    cm.sample(target, **RUN)
    assert not children()
    with pytest.raises(cm.EnergyError):
        cm.sample(cm.external(quadratic(lambda x: 1 / 0), workers=2), **RUN)
    assert not children()
    cm.sample(cm.external(quadratic(), workers="threads"), **RUN)
    until = time.monotonic() + 5
    while time.monotonic() < until and [t for t in threading.enumerate() if t.name == "contourmc energy"]:
        time.sleep(0.01)
    assert not [t for t in threading.enumerate() if t.name == "contourmc energy"]


def test_a_run_that_is_extended_starts_its_workers_again():
    run = cm.start(cm.external(quadratic(), workers=1), **RUN)
    run.advance()
    assert not children()
    run.extend(50)
    run.advance()
    whole = cm.sample(cm.external(quadratic(), workers="threads"), **(RUN | dict(steps=450)))
    np.testing.assert_array_equal(run.samples().draws["b"], whole.draws["b"])


SCRIPT = r"""
import os, signal, sys, time
import contourmc as cm

signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run in the background

def hanging_after(count, workers):
    seen = []
    def energy(x):
        seen.append(x)
        if len(seen) > count:
            os.write(1, f"hanging {count} {workers}\n".encode())
            time.sleep(1000)
        return x**2 / 2, x
    return energy

def run(count, workers, **settings):
    began = time.time()
    try:
        samples = cm.sample(cm.external(hanging_after(count, workers), workers=workers), init=0.0, thin=1, **settings)
        print("interrupted" if samples.interrupted else "done", samples.energies.shape[1] > 0, flush=True)
    except KeyboardInterrupt:
        print("nothing", flush=True)

for workers in (1, "threads"):
    run(0, workers, steps=1000, kernel=cm.sgld(0.1))
    run(100, workers, steps=4000)
    run(300, workers, steps=100_000, kernel=cm.sgld(0.1), burn_in=0)
kept = cm.start(cm.external(hanging_after(10**9, 1), workers=1), init=0.0, steps=1000, kernel=cm.sgld(0.1))
kept.advance(10)
worker = kept.target.target.host.side._pool[1]._workers[0].process.pid
print(worker, flush=True)  # and the interpreter exits with the run open
"""


def test_ctrl_c_ends_a_function_that_hangs_within_two_seconds(tmp_path):
    """At the start, in the pilot, in the middle; by processes and by threads. A script needs no guard, and a worker of
    a run that was never closed ends with the interpreter.
    """
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        limit = Timer(120, process.kill)
        limit.start()
        try:
            assert process.stdout is not None
            answers = {0: "nothing", 100: "interrupted False", 300: "interrupted True"}
            for workers, (count, answer) in itertools.product((1, "threads"), answers.items()):
                # Another chain of the run before may say only now that it hung, too.
                while (line := process.stdout.readline().strip()) != f"hanging {count} {workers}":
                    assert not line or line.startswith("hanging")
                began = time.monotonic()
                process.send_signal(signal.SIGINT)
                while (line := process.stdout.readline().strip()).startswith("hanging"):
                    pass
                assert line == answer
                assert time.monotonic() - began < 2
            worker = int(process.stdout.readline())
            assert process.wait() == 0
            with pytest.raises(ProcessLookupError):
                os.kill(worker, 0)
        finally:
            limit.cancel()
            process.kill()


def test_a_run_that_is_killed_goes_on_and_gives_the_same_draws(tmp_path):
    """By the same call, and by `resume`, which finds the function in the folder."""
    whole = cm.sample(cm.external(quadratic(), workers="threads"), **RUN)
    for number, workers in enumerate(WORKERS):
        call = RUN | dict(checkpoint=tmp_path / str(number), checkpoint_every=0)
        with cm.start(cm.external(quadratic(), workers=workers), **call) as run:
            run.advance(150)
        again = cm.resume(call["checkpoint"]) if number else cm.sample(cm.external(quadratic(), workers=1), **call)
        np.testing.assert_array_equal(again.draws["b"], whole.draws["b"])
    other = cm.external(lambda x: (x["b"] ** 2, x), workers=1)
    with pytest.raises(ValueError, match="was"):
        cm.sample(other, **call)


def test_a_run_that_failed_goes_on_with_a_better_function(tmp_path):
    """Its last checkpoint is written although the function fails where the chains are."""
    whole = cm.sample(cm.external(quadratic(), workers="threads"), **RUN)
    above = float(np.max(whole.draws["b"][:, :200])) + 1e-6
    call = RUN | dict(checkpoint=tmp_path, checkpoint_every=100)
    with pytest.raises(cm.EnergyError) as caught:
        cm.sample(cm.external(quadratic(lambda x: 1 / 0, above), workers="threads"), **call)
    made = caught.value.samples.energies.shape[1]
    assert 200 <= made < 400
    with cm.start(cm.external(quadratic(), workers="threads"), **call) as run:
        assert run.step == made
    again = cm.sample(cm.external(quadratic(), workers="threads"), **call)
    np.testing.assert_array_equal(again.draws["b"], whole.draws["b"])


def test_nothing_is_imported_or_started_before_it_is_asked_for():
    code = "import sys, contourmc; print({m.split('.')[0] for m in sys.modules} & {'multiprocessing', 'blackjax'})"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "set()"
