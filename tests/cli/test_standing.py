"""`contourmc show --watch`: a view of a run in progress, until it is complete or Ctrl-C."""

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import contourmc as cm
from contourmc.cli import standing
from contourmc.cli.main import app


def energy(x):
    return 8 * (x**2 - 1) ** 2


@pytest.fixture
def views(monkeypatch):
    """What was shown, one entry for each time that the view changed."""
    shown, view = [], standing._view
    monkeypatch.setattr(standing, "_view", lambda now: shown.append(now) or view(now))
    return shown


def watch(folder):
    result = CliRunner().invoke(app, ["show", str(folder), "--watch"])
    return result.exit_code, " ".join(result.output.split())


def test_the_view_follows_a_run_to_its_end(tmp_path, views, monkeypatch):
    """Whenever the command waits, the run makes another 2,000 steps, in this process."""
    folder = tmp_path / "run"
    with cm.start(energy, init=1.0, steps=10_000, chains=2, checkpoint=folder, checkpoint_every=0.0) as run:
        monkeypatch.setattr(standing, "time", SimpleNamespace(sleep=lambda seconds: run.advance(2000)))
        code, output = watch(folder)
    assert code == 0
    done = [view.done for view in views]
    assert done == sorted(done)
    assert len(set(done)) >= 3  # the pilot, learning, and the end
    assert done[-1] == 10_000
    assert "10,000 of 10,000 steps of 2 chains (sampling)" in output
    assert "100%" in output
    assert str(cm.Samples.open(folder).diagnose()).split(":")[0] in output


def test_a_complete_run_is_shown_once(tmp_path, views):
    cm.sample(energy, init=1.0, steps=2000, kernel=cm.sgld(0.01), checkpoint=tmp_path / "run")
    code, output = watch(tmp_path / "run")
    assert (code, len(views)) == (0, 1)
    assert "2,000 of 2,000 steps" in output


def test_control_c_ends_it(tmp_path, views, monkeypatch):
    """Here it comes while a run that was cut is watched."""
    with cm.start(energy, init=1.0, steps=10_000, checkpoint=tmp_path / "run", checkpoint_every=0.0) as run:
        run.advance(2000)

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(standing, "time", SimpleNamespace(sleep=interrupt))
    code, output = watch(tmp_path / "run")
    assert (code, len(views)) == (0, 1)
    assert "The run is not running" in output


def test_a_folder_without_a_run_is_named(tmp_path):
    code, output = watch(tmp_path)
    assert code == 2
    assert "holds no run" in output
