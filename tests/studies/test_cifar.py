"""The CIFAR pipeline: small runs on data of the official layouts, from the command line and in Python."""

import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from contourmc._core.info import Info
from contourmc._core.progress import Progress
from contourmc.cli.main import app
from contourmc.studies.cifar import training
from contourmc.studies.cifar.network import ImageLikelihood
from contourmc.studies.cifar.records import LogitAverage, best_mean_logits, figures, of_mean_logits, set_of
from contourmc.studies.cifar.sets import SETS
from contourmc.studies.cifar.shifts import plain_test
from contourmc.studies.cifar.training import Setting, prepare, train
from contourmc.studies.datasets import cifar10, cifar100

RANDOM = np.random.default_rng(0)


def call(*words: str):
    return CliRunner().invoke(app, ["reproduce", "cifar", *words], env={"COLUMNS": "140"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The official layouts with 500 images, and 100 to test: one colour for each class."""
    root = tmp_path_factory.mktemp("data")

    def write(classes, folder, key, counts):
        (root / folder).mkdir()
        colours = RANDOM.integers(0, 256, (classes, 3, 1))
        for name, count in counts.items():
            labels = RANDOM.integers(0, classes, count)
            rows = np.broadcast_to(colours[labels], (count, 3, 1024)).reshape(count, 3072).astype(np.uint8)
            (root / folder / name).write_bytes(pickle.dumps({b"data": rows, key: labels.tolist()}))

    batches = dict.fromkeys((*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"), 100)
    write(10, "cifar-10-batches-py", b"labels", batches)
    write(100, "cifar-100-python", b"fine_labels", {"train": 500, "test": 100})
    return root


def test_a_quick_run_leaves_a_record_that_the_table_shows(folder, tmp_path):
    """Without the name of an algorithm it is CSGHMC; the title names the network that was run."""
    name = "cifar100"
    words = ("--dataset", name, "--quick", "--data", str(folder), "--out", str(tmp_path))
    result = call(*words)
    assert result.exit_code == 0, result.output
    file = tmp_path / "csghmc-2-epochs-batch-size-100-images-500-depth-1-precision-float32-seed-0.json"
    record = json.loads(file.read_text())
    assert record["settings"]["kernel"]["kind"] == "Contour"
    assert set_of(record).name == name
    assert record["results"]["epochs"] == 2
    assert record["results"]["interrupted"] is False
    assert record["history"][0]["average"] == record["results"]["average"]
    table = call("--table", "--out", str(tmp_path))
    for shown in (result, table):
        assert f"ResNet-8 on {SETS[name].title}" in shown.output
        assert "CSGHMC, 500 images" in shown.output
        assert "ResNet-20" not in shown.output
        assert "paper" not in shown.output
    assert not list(tmp_path.glob("*.png"))  # pictures are drawn by the command that makes the page
    again = call(*words)
    assert again.exit_code == 2
    assert "already holds results" in again.output


def test_a_run_that_was_cut_goes_on_and_leaves_the_same_record(folder, tmp_path, monkeypatch):
    """Once before the first evaluation, and once between two; the checkpoints are removed at the end."""
    monkeypatch.setattr(training, "EVERY", 1)

    def made(out, *more):
        words = ("--quick", "--data", str(folder), "--out", str(tmp_path / out), *more)
        return call(*words)

    def record(out):
        (file,) = (tmp_path / out).glob("*.json")
        found = json.loads(file.read_text())
        for name in ("seconds", "compile_seconds"):
            del found["results"][name]
        return found

    assert made("whole").exit_code == 0
    update, steps = Progress.update, []

    def cut(self, stage, step, note=""):
        update(self, stage, step, note)
        if step in cuts:
            cuts.remove(step)
            raise KeyboardInterrupt
        steps.append(step)

    monkeypatch.setattr(Progress, "update", cut)
    cuts = [1, 6]  # five steps an epoch
    first = made("cut")
    assert first.exit_code == 130
    assert "the same command goes on" in first.output
    second = made("cut")
    assert second.exit_code == 130
    assert "after 1 of 2 epochs" in second.output
    assert made("cut").exit_code == 0
    assert record("cut") == record("whole")
    assert [entry["epoch"] for entry in record("cut")["history"]] == [1, 2]
    assert [path.suffix for path in (tmp_path / "cut").iterdir()] == [".json"]
    assert "already holds results" in made("cut").output


def test_a_record_tells_where_the_chain_has_been(folder, monkeypatch):
    """Every kept draw, every visit, and log θ, from which the multipliers of the visited bins follow."""
    monkeypatch.setattr(training, "EVERY", 2)
    setting = Setting("csghmc", epochs=6, batch_size=100, images=500, depth=1, precision="float32", dataset="cifar100")
    record = train(setting, cifar100(folder), lambda record: None)
    kernel, results, history = record["settings"]["kernel"], record["results"], record["history"]
    draws, bins = results["draws"], results["bins"]
    assert draws["steps"] == [20, 30]  # five steps an epoch; 2 epochs of burn-in, a draw every other one
    assert results["models"] == len(draws["energies"]) == len(draws["log_weights"]) == 2
    assert results["energies"] == pytest.approx([min(draws["energies"]), max(draws["energies"])], abs=0.1)
    assert results["multipliers"] == pytest.approx([min(draws["multipliers"]), max(draws["multipliers"])], abs=1e-3)
    assert sum(bins["visits"]) == 30
    total = np.zeros(200, int)
    for entry in history:
        first, visits = entry["bins"]["first"], entry["bins"]["visits"]
        assert sum(visits) == 10
        assert len(entry["bins"]["log_theta"]) == len(visits)
        total[first : first + len(visits)] += visits
    assert total.tolist() == bins["visits"]
    # The last draw: its bin, its weight θ(J)^ζ, and its multiplier, by log θ a step before the end.
    width, temperature = kernel["partition"]["width"], kernel["dynamics"]["temperature"]
    index = int(np.ceil(draws["energies"][-1] / width))
    assert history[-1]["bins"]["visits"][index - history[-1]["bins"]["first"]] > 0
    log_theta = np.array(bins["log_theta"])
    assert draws["log_weights"][-1] / 3e6 == pytest.approx(log_theta[index], abs=0.05)
    slope = (log_theta[index] - log_theta[index - 1]) / width
    assert draws["multipliers"][-1] == pytest.approx(1 + 3e6 * temperature * slope, abs=0.2)


@pytest.mark.usefixtures("untyped")
def test_evaluations_and_averages_are_where_they_should_be(folder, monkeypatch):
    """Of 30 epochs the first 12 are burn-in; a model is averaged every ten epochs after it."""
    setting = Setting("m-sgd", epochs=30, batch_size=50, images=100, depth=1, precision="float32")
    assert setting.evaluations == [10, 20, 30]
    assert Setting("m-sgd", epochs=25).evaluations == [10, 20, 25]
    monkeypatch.setattr(training, "start", lambda target, **settings: settings)
    monkeypatch.setattr(ImageLikelihood, "init", lambda self, key: (jnp.zeros(3), jnp.zeros(2)))
    (images, labels), test = cifar10(folder)
    settings, average = prepare(setting, (images[:100], labels[:100]), plain_test((test[0][:20], test[1][:20])))
    assert [settings[name] for name in ("steps", "burn_in", "thin", "chains", "store")] == [60, 24, 20, 1, False]
    assert average.targets.shape == (20,)
    assert average.tempering == 0


def test_colours_are_learnt(folder, monkeypatch):
    """Ten colours, 200 steps of ten images each: well above the 10% of chance, in points and in the average."""
    monkeypatch.setattr(training, "EVERY", 2)
    monkeypatch.setattr(training, "BURN_IN", 0.5)
    still = dict(crop=False, flip=False, erase=False)
    setting = Setting("sam-sgd", epochs=4, batch_size=10, images=500, depth=1, precision="float32", **still)
    assert setting.name == (
        "sam-sgd-4-epochs-batch-size-10-images-500-depth-1-precision-float32-no-crop-no-flip-no-erase-seed-0"
    )
    saved = []
    record = train(
        setting,
        cifar10(folder),
        lambda record: saved.append((len(record["history"]), record["results"]["interrupted"])),
    )
    assert saved == [(1, True), (2, False)]
    assert [entry["epoch"] for entry in record["history"]] == [2, 4]
    assert record["history"][0]["average"] is None  # still burn-in
    assert record["results"]["models"] == 1
    assert record["results"]["last_point"]["accuracy"] > 0.5
    assert record["results"]["average"]["accuracy"] > 0.5
    assert "bins" not in record["results"]  # the algorithm has none
    assert "bins" not in record["history"][0]
    assert record["results"]["draws"]["multipliers"] == [1.0]


def test_mean_logits_stand_next_to_mean_probabilities():
    """Of two chains with two models each."""
    logits = RANDOM.normal(0, 3, (2, 2, 20, 3)).astype(np.float32)
    labels = RANDOM.integers(0, 3, 20)
    average = LogitAverage(lambda params, inputs: params, np.zeros(20), labels, tempering=0.0, classes=3)
    one, info = average.init(), Info(jnp.zeros(()), jnp.zeros((), int), jnp.zeros(()), jnp.zeros(()))
    chains = []
    for chain in logits:
        sums = one
        for model in chain:
            sums = average.add(sums, info, jnp.asarray(model), None)
        chains.append(sums)
    prediction = average.finish(jax.tree.map(lambda *each: jnp.stack(each), *chains))
    exponentials = np.exp(logits.mean(axis=(0, 1)))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    found = of_mean_logits(prediction)
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-5)
    assert figures(found)["nll"] == pytest.approx(-np.log(expected[range(20), labels]).mean(), rel=1e-5)
    assert abs(prediction.nll - found.nll) > 0.1  # the mean probabilities are another statistic


def test_the_best_mean_logits_are_chosen_figure_by_figure():
    history = [{"epoch": 10}] + [
        {"epoch": epoch, "mean_logits": {"accuracy": accuracy, "nll": nll}}
        for epoch, accuracy, nll in ((20, 0.6, 0.9), (30, 0.8, 0.8), (40, 0.7, 0.7))
    ]
    assert best_mean_logits(history) == {
        "accuracy": {"value": 0.8, "epoch": 30},
        "nll": {"value": 0.7, "epoch": 40},
    }


def test_nonsense_is_refused(folder, tmp_path):
    some = ("--algorithm", "m-sgd", "--data", str(folder), "--out", str(tmp_path))
    for words, expected in (
        ((), "--algorithm"),
        (("--algorithm", "adam"), "choose one of"),
        ((*some, "--dataset", "mnist"), "dataset='mnist'"),
        (("--table", "--out", str(tmp_path)), "no records"),
        (("--algorithm", "m-sgd", "--data", str(tmp_path / "none"), "--out", str(tmp_path)), "there is no folder"),
        ((*some, "--images", "100", "--batch-size", "101"), "batch_size"),
        ((*some, "--images", "501", "--batch-size", "10"), "there are 500"),
        ((*some, "--epochs", "0"), "epochs"),
        ((*some, "--temperature", "0.1"), "m-sgd has no noise"),
    ):
        result = call(*words)
        assert result.exit_code == 2, words
        assert expected in result.output
