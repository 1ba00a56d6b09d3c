"""Runs that tune themselves: bad input, Ctrl-C in every stage, and what the progress line says."""

import pytest

import contourmc as cm
from contourmc._core.progress import COMPILING, Progress
from contourmc.problems import GaussianMixture

MIXTURE = GaussianMixture()  # 0.4·N(−6, 1) + 0.6·N(4, 1)
STEPS, CHAINS = 30_000, 10


def gaussian(x):
    return x**2 / 2


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(steps=999), "steps.*1,000"),
        (dict(burn_in=100), "burn_in.*fifth"),
        (dict(burn_in=0), "burn_in"),
        (dict(burn_in=2000), "burn_in"),
        (dict(partition="automatic"), "partition"),
        (dict(partition=(1.0, 2.0, 10)), "partition"),
        (dict(partition=None), "partition"),
        (dict(step_size="big"), "step_size"),
        (dict(step_size=0.0), "step_size"),
        (dict(step_size=-0.1), "step_size"),
        (dict(step_size=float("nan")), "step_size"),
        (dict(step_size=None), "step_size"),
        (dict(kernel=cm.sgld(0.1), partition=cm.Partition(1.0, 1.0, 10)), "partition.*kernel"),
        (dict(kernel=cm.sgld(0.1), step_size=0.1), "step_size.*kernel"),
        (dict(init=float("nan")), "init"),
        (dict(init=0), "init"),
    ],
)
def test_bad_input_names_the_argument(changes, words):
    with pytest.raises(ValueError, match=words):
        cm.sample(gaussian, **(dict(init=0.0, steps=2000) | changes))


@pytest.mark.parametrize("stage", ["pilot", "learning", "sampling"])
def test_ctrl_c_returns_what_there_is(monkeypatch, stage):
    """The interrupt comes with the second report of a stage; test_sampling sends a real signal."""
    seen = []

    def update(self, name, step, note=""):
        seen.append(name)
        if seen.count(stage) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "update", update)
    run = cm.sample(MIXTURE.energy, init=-6.0, steps=STEPS, chains=CHAINS)
    assert seen[-1] == stage
    assert run.interrupted
    assert run.stage == stage
    assert run.trajectory.steps[-1] < STEPS
    assert (run.energies.shape[1] > 0) == (stage != "pilot")
    diagnosis = run.diagnose()
    assert "interrupted" in str(diagnosis)
    assert stage == "sampling" or not diagnosis.ok  # what was drawn while θ still moved is not to be trusted
    assert run.comparable_weights == (stage == "sampling")


def test_a_report_says_when_the_run_waits_for_the_compiler():
    notes = set()
    run = cm.start(gaussian, init=0.0, steps=2000, chains=2)
    run.advance(report=lambda stage, step, note: notes.add((stage, note)))
    assert {("learning", COMPILING), ("sampling", COMPILING)} <= notes
