"""Runs of every kind that are cut and go on give what they would have given, bit for bit."""

import pytest
from benchmarks.torture import kinds
from benchmarks.torture.digest import digest
from benchmarks.torture.kinds import KINDS

from contourmc._core.progress import Progress


@pytest.fixture(autouse=True)
def shorter(monkeypatch):
    monkeypatch.setattr(kinds, "SHARE", 1 / 6)


@pytest.fixture
def cut(monkeypatch):
    """Ctrl-C at a report of `sample`, counted from now on."""

    def at(number):
        seen = []

        def update(self, stage, step, note=""):
            seen.append(stage)
            if len(seen) == number:
                raise KeyboardInterrupt

        monkeypatch.setattr(Progress, "update", update)

    return at


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_cut_twice_ends_as_if_it_had_not_been(kind, cut, tmp_path):
    make = KINDS[kind]
    whole = make(None)
    for number in (2, 4):
        cut(number)
        part = make(tmp_path / "run")
        assert part.interrupted
    cut(0)
    resumed = make(tmp_path / "run")
    assert not resumed.interrupted
    assert digest(resumed) == digest(whole)
    assert digest(make(tmp_path / "run")) == digest(whole)  # there is nothing left to do


@pytest.mark.parametrize("stage", ["pilot", "learning", "sampling"])
def test_a_run_that_tunes_itself_goes_on_from_every_stage(stage, monkeypatch, tmp_path):
    seen = []

    def update(self, name, step, note=""):
        seen.append(name)
        if seen.count(stage) == 3:
            raise KeyboardInterrupt

    make = KINDS["automatic"]
    whole = make(None)
    monkeypatch.setattr(Progress, "update", update)
    part = make(tmp_path / "run")
    assert part.interrupted
    assert part.stage == stage
    assert digest(make(tmp_path / "run")) == digest(whole)
