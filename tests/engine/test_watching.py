"""Functions that watch a run: what they get, that they change nothing, and that they may end it."""

import asyncio
import gc
import signal
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core import progress
from contourmc.engine import pace

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 2))
LABELS = (X.sum(axis=1) > 0).astype(int)
LIKELIHOOD = cm.CategoricalLikelihood(lambda w, x: x @ w, classes=2)
POSTERIOR = cm.Posterior(LIKELIHOOD, cm.GaussianPrior(1.0), (X, LABELS), batch_size=20)
AVERAGE = cm.ClassificationAverage(LIKELIHOOD.predict, X, LABELS, classes=2)
START = jnp.zeros((2, 2))
SETTINGS = dict(init=START, steps=500, kernel=cm.sgld(1e-3), chains=2, thin=10, burn_in=100)


@pytest.fixture(autouse=True)
def short_segments(monkeypatch):
    """Calls of the compiled program of few steps, on however fast a machine."""
    monkeypatch.setattr(pace, "SEGMENT_SECONDS", 1e-9)


class Seen(list):
    """Keeps what it gets, and returns False from a step on."""

    def __init__(self, last=10**9):
        self.last = last

    def __call__(self, step, figures):
        self.append((step, figures))
        return step < self.last


def test_it_gets_plain_figures_and_changes_nothing():
    seen = Seen()
    run = cm.sample(POSTERIOR, **SETTINGS, average=AVERAGE, on_block=seen, block_every=0)
    np.testing.assert_array_equal(run.draws, cm.sample(POSTERIOR, **SETTINGS).draws)
    steps = [step for step, _ in seen]
    assert steps == sorted(set(steps))
    assert len(steps) > 2
    assert steps[-1] == 500
    assert all(type(value) is float for _, figures in seen for value in figures.values())
    _, last = seen[-1]
    assert last["multiplier"] == 1
    assert last["energy"] == pytest.approx(np.mean(run.energies[:, -1]), rel=1e-5)
    assert last["loss"] == pytest.approx(last["energy"] / 60)
    assert last["steps_per_second"] > 0
    assert last["accuracy"] == run.average.accuracy
    assert last["nll"] == run.average.nll
    assert not run.interrupted


def test_it_is_called_once_a_second_and_after_the_last_step():
    seen = Seen()
    cm.sample(POSTERIOR, **SETTINGS, on_block=[seen], block_every=1e6)
    assert [step for step, _ in seen] == [500]


def test_false_ends_the_run_with_the_draws_so_far():
    whole = cm.sample(POSTERIOR, **SETTINGS)
    run = cm.sample(POSTERIOR, **SETTINGS, on_block=[Seen(), Seen(200)], block_every=0)
    assert run.interrupted
    count = run.energies.shape[1]
    assert 0 < count < whole.energies.shape[1]
    np.testing.assert_array_equal(run.energies, whole.energies[:, :count])


def test_a_run_that_was_ended_goes_on():
    whole = cm.sample(POSTERIOR, **SETTINGS)
    with cm.start(POSTERIOR, **SETTINGS) as run:
        run.advance(on_block=Seen(50), block_every=0)
        assert run.stopped
        assert 50 <= run.step < 500
        run.advance(on_block=Seen(), block_every=0)
        assert not run.stopped
    np.testing.assert_array_equal(run.samples().draws, whole.draws)


def fails_at(last):
    def function(step, figures):
        if step >= last:
            raise OSError("no more room")

    return function


def test_an_error_in_it_loses_no_draws():
    whole = cm.sample(POSTERIOR, **SETTINGS)
    with cm.start(POSTERIOR, **SETTINGS) as run:
        with pytest.raises(OSError, match="no more room"):
            run.advance(on_block=fails_at(200), block_every=0)
        assert run.samples().energies.shape[1] > 0
        run.advance()
    np.testing.assert_array_equal(run.samples().draws, whole.draws)


def test_an_error_in_it_loses_no_checkpoint(tmp_path):
    pytest.importorskip("zarr")
    pytest.importorskip("zarr")
    whole = cm.sample(POSTERIOR, **SETTINGS)
    with pytest.raises(OSError, match="no more room"):
        cm.sample(POSTERIOR, **SETTINGS, checkpoint=tmp_path / "run", on_block=fails_at(200), block_every=0)
    seen = Seen()
    again = cm.sample(POSTERIOR, **SETTINGS, checkpoint=tmp_path / "run", on_block=seen, block_every=0)
    assert seen[0][0] > 200
    np.testing.assert_array_equal(again.draws, whole.draws)


def test_it_watches_a_run_that_tunes_itself():
    seen = Seen()
    run = cm.sample(lambda x: 0.5 * x**2, init=0.0, steps=3000, chains=2, on_block=seen, block_every=0)
    assert seen[-1][0] == 3000
    assert "loss" not in seen[-1][1]
    assert np.isfinite(seen[-1][1]["energy"])
    assert not run.interrupted


def test_the_progress_line_shows_the_loss_and_the_average(monkeypatch, capsys):
    """Where there is no terminal: a line a minute, here at once."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    cm.sample(POSTERIOR, **SETTINGS, average=AVERAGE)
    lines = capsys.readouterr().err.splitlines()
    assert "500 of 500 steps, 100% · 0 min left" in lines[-1]
    for words in ("steps/s", "loss 0.", "accuracy ", "NLL 0."):
        assert words in lines[-1]
    cm.sample(POSTERIOR, **SETTINGS, progress=False)
    assert not capsys.readouterr().err


@pytest.fixture
def ctrl_c():
    """A function that presses Ctrl-C, which does nothing where tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda *_: signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_gives_the_draws_so_far_inside_of_asyncio(ctrl_c):
    """By itself, asyncio cancels the task at its next `await`: after the run, and without its draws."""

    async def main():
        await asyncio.sleep(0)
        run = cm.sample(POSTERIOR, **SETTINGS, on_block=ctrl_c, block_every=0)
        await asyncio.sleep(0)
        return run

    try:
        run = asyncio.run(main())
    except KeyboardInterrupt:
        pytest.fail("the draws are lost")
    assert run.interrupted
    assert run.trajectory.steps[-1] < 500


def in_a_collection(_phase, _info):
    """As what JAX calls at every garbage collection."""
    signal.raise_signal(signal.SIGINT)


class Careless:
    """An object whose end is interrupted."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("where", ["collection", "end"])
def test_ctrl_c_is_not_lost_where_python_ignores_exceptions(where, ctrl_c):
    steps = []

    def look(step, figures):
        steps.append(step)
        if len(steps) > 1:
            return
        if where == "end":
            Careless()
            return
        gc.callbacks.append(in_a_collection)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(in_a_collection)

    assert cm.sample(POSTERIOR, **SETTINGS, on_block=look, block_every=0).interrupted
    assert len(steps) == 1


def test_a_handler_of_the_users_own_stays(ctrl_c):
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    run = cm.sample(POSTERIOR, **SETTINGS, on_block=ctrl_c, block_every=1e6)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert pressed == [1]
    assert not run.interrupted


@pytest.mark.parametrize("show", [None, True])
def test_without_standard_error_a_run_is_silent(show, monkeypatch, capsys):
    """As in a daemon: there `print` would take standard output instead."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", None)
    assert not cm.sample(POSTERIOR, **SETTINGS, progress=show).interrupted
    assert capsys.readouterr().out == ""


def test_a_short_run_prints_nothing(capsys):
    cm.sample(POSTERIOR, **SETTINGS)
    assert not capsys.readouterr().err


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(on_block=[3]), r"^on_block=\[3\].*function"),
        (dict(on_block=print, block_every=-1.0), "^block_every=-1.0"),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        cm.sample(POSTERIOR, **SETTINGS, **settings)
