"""Ready-made functions that keep training curves."""

import json
import sys
from types import ModuleType

import pytest

import contourmc as cm

WRITERS = ["tensorboardX", "torch.utils.tensorboard", "flax.metrics.tensorboard"]


def test_lines_of_json(tmp_path):
    path = tmp_path / "run.jsonl"
    settings = dict(init=0.0, kernel=cm.sgld(0.1), steps=300, chains=2, on_block=cm.callbacks.jsonl(path))
    cm.sample(lambda x: 0.5 * x**2, **settings)
    cm.callbacks.jsonl(str(path))(301, {"energy": 0.5})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["step"] for line in lines[-2:]] == [300, 301]
    assert {"time", "energy", "multiplier", "steps_per_second"} <= set(lines[-2])
    with pytest.raises(ValueError, match=r"^path=.*no such folder"):
        cm.callbacks.jsonl(tmp_path / "none" / "run.jsonl")


class Writer:
    """In the place of TensorBoard's."""

    def __init__(self, folder):
        self.folder, self.written, self.flushed = folder, [], 0
        Writer.last = self

    def add_scalar(self, name, value, step):
        self.written.append((name, value, step))

    scalar = add_scalar

    def flush(self):
        self.flushed += 1


@pytest.mark.parametrize("there", WRITERS)
def test_tensorboard_by_whichever_package_is_there(there, monkeypatch, tmp_path):
    for name in WRITERS:
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    stub = ModuleType(there)
    stub.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, there, stub)
    write = cm.callbacks.tensorboard(tmp_path)
    write(5, {"loss": 0.5, "energy": 2.0})
    assert Writer.last.folder == str(tmp_path)
    assert Writer.last.written == [("loss", 0.5, 5), ("energy", 2.0, 5)]
    assert Writer.last.flushed == 1


def test_a_package_that_is_missing_is_named(monkeypatch, tmp_path):
    for name in (*WRITERS, "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install tensorboardX"):
        cm.callbacks.tensorboard(tmp_path)
    with pytest.raises(ImportError, match="pip install wandb"):
        cm.callbacks.wandb()


def test_weights_and_biases(monkeypatch):
    logged, begun = [], []

    class Run:
        def log(self, figures, step):
            logged.append((figures, step))

    def init(**settings):
        begun.append(settings)
        return Run()

    stub = ModuleType("wandb")
    stub.init = init
    monkeypatch.setitem(sys.modules, "wandb", stub)
    write = cm.callbacks.wandb(project="networks")
    assert not begun
    write(1, {"loss": 0.5})
    write(2, {"loss": 0.25})
    assert begun == [{"project": "networks"}]
    assert logged == [({"loss": 0.5}, 1), ({"loss": 0.25}, 2)]
