"""What is not the run in a folder is refused by name, with a remedy, and nothing is overwritten."""

import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.checkpoints.folder import FORMAT
from contourmc.checkpoints.identity import differences, plain


def content(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock"}


@pytest.fixture
def run(begin, tmp_path):
    with begin() as begun:
        begun.advance(2000)
    return tmp_path / "run"


def named(x):
    return jnp.sum(x["a"] ** 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(chains=3), "chains was 2 and is 3 now"),
        (dict(seed=2), "seed was 1 and is 2 now"),
        (dict(burn_in=10), "burn_in was 800 and is 10 now"),
        (dict(thin=5), "thin was 4 and is 5 now"),
        (dict(steps=7999), "steps=7999.*is to make 8,000.*or more to extend"),
        (dict(kernel=cm.sgld(0.01)), "another run: kernel"),
        (
            dict(kernel=cm.csgld(0.02, partition=cm.Partition(0, 0.5, 20))),
            "step_size was 0.01 and is 0.02 now",
        ),
        (dict(kernel=None), "tunes itself"),
        (dict(init=jnp.ones(3)), r"position.* was float32\[2\] and is float32\[3\] now"),
        (dict(target=named, init={"a": jnp.ones(2)}), "position"),
        (dict(store=False), "store was True and is False now"),
        (dict(target=lambda x: 5 * jnp.sum((x**2 - 1) ** 2)), "it holds another run|the energy is not that of the run"),
    ],
)
def test_another_run_is_refused(run, begin, changes, words):
    before = content(run)
    with pytest.raises(ValueError, match=words):
        begin(**changes)
    assert content(run) == before


def test_another_energy_of_the_same_name_and_shape_is_noticed_by_its_value(begin, tmp_path):
    def energy_of(depth):
        def energy(x):
            return depth * jnp.sum((x**2 - 1) ** 2)

        return energy

    with begin(energy_of(4.0)) as first:
        first.advance(2000)
    before = content(tmp_path / "run")
    with pytest.raises(ValueError, match="the energy is not that of the run in it: where chain 0 is, it was"):
        begin(energy_of(4.1))
    assert content(tmp_path / "run") == before


def test_another_precision_is_refused(run, begin):
    with jax.enable_x64(True), pytest.raises(ValueError, match="precision was float32 and is float64 now"):
        begin(init=np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"its run.json is not that of a run\. Choose another folder"),
        ("[]", "is not that of a run"),
        ('{"format": "other"}', "is not that of a run"),
        (json.dumps({"format": FORMAT + 1, "run": {}, "steps": 1}), f"it has format {FORMAT + 1}.*use a newer version"),
        (json.dumps({"format": FORMAT - 1, "run": {}, "steps": 1}), "with the version that wrote it"),
    ],
)
def test_folders_of_other_formats_are_refused(run, begin, text, words):
    (run / "run.json").write_text(text)
    before = content(run)
    for attempt in (begin, lambda: cm.resume(run)):
        with pytest.raises(ValueError, match=words):
            attempt()
    assert content(run) == before


def test_a_foreign_folder_is_refused(begin, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    for attempt in (begin, lambda: cm.resume(tmp_path / "run")):
        with pytest.raises(ValueError, match=r"it holds other files, such as thesis.tex, and no run\. Choose another"):
            attempt()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


def test_what_is_no_folder_of_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        cm.resume(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match=r"it holds no run.*begins one"):
        cm.resume(tmp_path)
    with pytest.raises(ValueError, match="no run has written a checkpoint"):
        cm.Samples.open(tmp_path)
    (tmp_path / "file").write_text("")
    for attempt in (cm.resume, cm.Samples.open):
        with pytest.raises(ValueError, match="file"):
            attempt(tmp_path / "file")


def test_a_call_that_cannot_be_read_is_an_error_that_says_so(run):
    (run / "call.pkl").write_bytes(pickle.dumps(([], b"nothing")))
    with pytest.raises(ValueError, match=r"its call cannot be read here.*repeat the call of `sample`"):
        cm.resume(run)
    (run / "call.pkl").unlink()
    with pytest.raises(ValueError, match="the call could not be kept in it: repeat the call of `sample`"):
        cm.resume(run)


def test_a_process_that_was_killed_while_it_began_is_no_obstacle(begin, tmp_path):
    """It may leave the lock, which nobody holds, and a file that it was about to write."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").touch()
    (tmp_path / "run" / ".run.json.0123abcd").write_text("{")
    with begin() as run:
        run.advance(100)


def test_a_bad_argument_leaves_no_folder(begin, tmp_path):
    with pytest.raises(ValueError, match="init"):
        begin(init=jnp.full(2, jnp.nan))
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("every", [-1.0, float("nan"), "often"])
def test_a_time_between_checkpoints_is_a_number(begin, every):
    with pytest.raises(ValueError, match="checkpoint_every"):
        begin(checkpoint_every=every)


def test_differences_are_told_by_name():
    before, now = {"kernel": {"a": 1, "b": [1, 2]}, "old": None}, {"kernel": {"a": 1, "b": [1, 3]}, "new": "x"}
    assert differences(before, now) == ["kernel.b.1 was 2 and is 3 now", "new was none and is x now"]
    settings = {"position": {"numbers": "float32[2]", "relative": "float32[]"}}  # of the user's names
    assert differences(settings, settings) == []
    assert plain({1: ("<function f at 0x7f00>",)}) == {"1": ["<function f>"]}
