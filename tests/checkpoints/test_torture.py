"""Processes that are killed (SIGKILL) while they write checkpoints: `make torture` in small, and a broken twin."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.torture import kinds
from benchmarks.torture.digest import digest
from benchmarks.torture.killing import tortured

SHARE = 0.25  # of the steps of `make torture`
CACHE = Path(__file__).parents[1] / ".compiled"


@pytest.fixture(autouse=True)
def _prepared(monkeypatch):
    """All processes share what the tests have compiled, and find the benchmarks."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setattr(kinds, "SHARE", SHARE)


@pytest.mark.parametrize("kind", ["automatic", "average", "loader with a state"])
def test_runs_that_are_killed_end_as_if_they_had_not_been(kind, tmp_path):
    """Two kills for each of three kinds; the other kinds are killed by `make torture`."""
    random, kills = np.random.default_rng(0), 0
    whole = digest(kinds.KINDS[kind](None))
    while kills < 2:
        trial = tortured(kind, tmp_path / f"run-{kills}", 2 - kills, random, SHARE)
        assert trial.digest == whole
        kills += trial.kills
    assert kills == 2


def test_a_checkpoint_that_forgets_the_average_is_found_out(tmp_path):
    """The process is killed once it has begun to write its third checkpoint, so that it goes on from one."""
    whole = digest(kinds.KINDS["average"](None))
    trial = tortured("average", tmp_path / "run", 1, Third(), SHARE, broken="average")
    assert trial.kills == 1
    assert trial.digest != whole


class Third(np.random.Generator):
    """Chooses the third checkpoint, and no time after it."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def integers(self, *_, **__):
        return 3

    def uniform(self, *_, **__):
        return 0.0
