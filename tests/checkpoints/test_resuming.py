"""A run with a folder goes on where it was: by the same call, by `resume`, beyond its end, and for readers."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from benchmarks.torture.digest import digest

import contourmc as cm
from contourmc.checkpoints import keeper
from contourmc.checkpoints.states import States
from contourmc.tuning.adaptive_state import STAGES


def finished(run):
    with run:
        if run.step < run.steps:
            run.advance()
        return run.samples()


def cut(run, steps=3000):
    """Advance a run, and leave it."""
    with run:
        run.advance(steps)
        return run.samples()


def test_resume_needs_nothing_but_the_folder(begin, tmp_path):
    whole = finished(begin(checkpoint=None))
    cut(begin())
    resumed = cm.resume(tmp_path / "run", progress=False)
    assert digest(resumed) == digest(whole)
    assert resumed.settings == whole.settings


def test_a_folder_may_be_named_as_seen_from_here(begin, tmp_path, monkeypatch):
    """And the process may go elsewhere while it runs."""
    whole = finished(begin(checkpoint=None))
    monkeypatch.chdir(tmp_path)
    with begin(checkpoint="here") as run:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        run.advance(3000)
    monkeypatch.chdir(tmp_path)
    assert digest(cm.resume("here")) == digest(whole)


def test_resume_takes_functions_of_any_kind(begin, tmp_path):
    """They are pickled by their code, since `lambda`s have no name to find them by."""
    depth = 4.0
    cut(begin(lambda x: depth * jnp.sum((x**2 - 1) ** 2)))
    assert digest(cm.resume(tmp_path / "run")) == digest(finished(begin(checkpoint=None)))


def test_the_time_of_all_parts_is_added_up(begin):
    first = cut(begin())
    assert finished(begin()).seconds > first.seconds


@pytest.mark.parametrize("automatic", [False, True])
def test_a_finished_run_is_extended(begin, tmp_path, automatic):
    """In one process, by another call, and by `resume`: the same in every way, and the same draws before."""
    changes = dict(kernel=None, steps=4000) if automatic else dict(steps=4000)

    def make(name, **more):
        return begin(**(changes | dict(checkpoint=tmp_path / name) | more))

    run = make("one")
    run.advance()
    short = run.samples()
    run.extend(3000)
    with run:
        run.advance()
    longer = run.samples()
    assert run.steps == 7000
    assert longer.settings["steps"] == 7000
    before = short.energies.shape[1]
    assert longer.energies.shape[1] > before
    np.testing.assert_array_equal(longer.energies[:, :before], short.energies)
    if automatic:
        assert longer.flattening.partition == short.flattening.partition
        np.testing.assert_array_equal(longer.theta, short.theta)
    finished(make("two"))
    assert digest(finished(make("two", steps=7000))) == digest(longer)
    finished(make("three"))
    assert digest(cm.resume(tmp_path / "three", steps=7000)) == digest(longer)
    assert digest(cm.resume(tmp_path / "one")) == digest(longer)
    assert digest(finished(make("one", steps=7000))) == digest(longer)


def test_an_extension_that_was_cut_goes_on(begin, tmp_path):
    finished(begin(steps=4000))
    cut(begin(steps=7000), 1000)
    planned = finished(begin(steps=7000, checkpoint=None, burn_in=400))
    assert digest(cm.resume(tmp_path / "run")) == digest(planned)


def test_a_run_without_a_folder_can_be_extended(begin):
    run = begin(checkpoint=None, steps=4000)
    run.advance()
    run.extend(3000)
    run.advance()
    assert run.step == 7000


def test_a_run_is_not_extended_after_another_process_has_gone_on_with_it(begin):
    run = begin(steps=4000)
    run.advance()
    finished(begin(steps=5000))
    with pytest.raises(ValueError, match="another process has gone on with the run"):
        run.extend(100)


def test_others_read_while_a_run_goes_on(begin, tmp_path, monkeypatch):
    """Checkpoints are written after every call of the program here, and the last one is open when it is read."""
    monkeypatch.setattr(keeper, "MOST_TIME", 1e9)
    seen = []

    def read(stage, step, note):
        if (tmp_path / "run" / "samples.nc").exists():
            seen.append(cm.Samples.open(tmp_path / "run"))

    with begin(checkpoint_every=0.0, steps=20_000) as run:
        run.advance(report=read)
    whole = run.samples()
    assert len(seen) > 2
    counts = [one.energies.shape[1] for one in seen]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]
    for one in seen:
        count = one.energies.shape[1]
        assert one.interrupted
        np.testing.assert_array_equal(one.energies, whole.energies[:, :count])
        np.testing.assert_array_equal(np.asarray(one.draws), np.asarray(whole.draws)[:, :count])
        np.testing.assert_array_equal(one.steps, whole.steps[:count])


def test_opened_samples_are_those_of_the_run(begin, tmp_path):
    whole = finished(begin(checkpoint=None))
    finished(begin())
    opened = cm.Samples.open(tmp_path / "run")
    assert digest(opened) == digest(whole)
    np.testing.assert_array_equal(opened.mean(), whole.mean())
    file = opened.save(tmp_path / "draws.nc")
    assert digest(cm.Samples.load(file)) == digest(whole)


def test_xarray_opens_the_store_lazily(begin, tmp_path):
    whole = finished(begin())
    with xarray.open_datatree(tmp_path / "run" / "draws-0.zarr", engine="zarr", consolidated=False) as tree:
        assert not tree["draws/x"].variable._in_memory
        np.testing.assert_array_equal(tree["draws/x"], np.asarray(whole.draws))
        np.testing.assert_array_equal(tree["energies"], whole.energies)
        assert tree["draws/x"].dims == ("chain", "draw", "x_0")


def test_draws_in_memory_do_not_grow_with_the_run(begin, monkeypatch):
    """Even if no checkpoint is due."""
    monkeypatch.setattr(keeper, "MOST_BYTES", 1000)
    held = []
    with begin(steps=60_000, chains=1, thin=1, checkpoint_every=1e6) as run:
        run.advance(report=lambda *_: held.append(sum(part.energy.shape[1] for part in run.state.draws)))
    assert run.samples().energies.shape == (1, 54_000)
    assert run.state.stored > 40_000
    assert held[-1] < 20_000


def test_every_change_of_stage_writes_a_checkpoint(begin, monkeypatch):
    saved, save = [], States.save

    def noted(self, checkpoint, *others):
        saved.append(STAGES[checkpoint.run.state.stage])
        save(self, checkpoint, *others)

    monkeypatch.setattr(States, "save", noted)
    finished(begin(kernel=None, steps=4000, checkpoint_every=1e6))
    assert saved == ["learning", "sampling", "sampling"]  # the last one is that of the end


def test_an_advance_of_a_few_steps_writes_no_checkpoint(begin, tmp_path):
    """Only time does, and the end."""
    with begin() as run:
        for _ in range(3):
            run.advance(100)
        assert not (tmp_path / "run" / "states").exists()
    assert len(list((tmp_path / "run" / "states").iterdir())) == 1
