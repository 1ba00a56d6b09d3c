"""The CIFAR-10 pipeline: network, augmentation, algorithms, and a small run from the command line."""

import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from contourmc.cli import app
from contourmc.datasets import cifar10
from contourmc.schedules import evaluate
from contourmc.studies.cifar import training
from contourmc.studies.cifar.algorithms import ALGORITHMS, Length
from contourmc.studies.cifar.augmentation import Augmentation
from contourmc.studies.cifar.network import CLASSES, ImageLikelihood, ResNet
from contourmc.studies.cifar.table import make_table
from contourmc.studies.cifar.training import Setting, prepare, train

RANDOM = np.random.default_rng(0)
IMAGES = jnp.asarray(RANDOM.integers(0, 256, (8, 32, 32, 3)), jnp.uint8)
LABELS = jnp.arange(8)


def call(*words: str):
    return CliRunner().invoke(app, ["reproduce", "cifar10", *words], env={"COLUMNS": "140"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The official layout with 100 images in each of five files, and 100 to test: one colour for each class."""
    root = tmp_path_factory.mktemp("data")
    home = root / "cifar-10-batches-py"
    home.mkdir()
    colours = RANDOM.integers(0, 256, (CLASSES, 3, 1))
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        labels = RANDOM.integers(0, CLASSES, 100)
        rows = np.broadcast_to(colours[labels], (100, 3, 1024)).reshape(100, 3072).astype(np.uint8)
        (home / name).write_bytes(pickle.dumps({b"data": rows, b"labels": labels.tolist()}))
    return root


def test_the_network_has_the_size_of_resnet_20():
    params, _ = jax.eval_shape(ImageLikelihood(ResNet()).init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 269_722


def test_folded_images_give_the_same_function():
    """Likelihoods, gradients and statistics agree to rounding: some 1e-6 after eight layers in float32."""
    plain, folded = (ImageLikelihood(ResNet(1, jnp.float32, folded)) for folded in (False, True))
    params, statistics = jax.jit(plain.init)(jax.random.key(0))

    def evaluate_both(likelihood):
        def total(params):
            log_likelihoods, new = likelihood(params, statistics, (IMAGES, LABELS))
            return jnp.sum(log_likelihoods), new

        return jax.jit(jax.value_and_grad(total, has_aux=True))(params)

    results = evaluate_both(plain), evaluate_both(folded)
    for one, two in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(one, two, atol=3e-5 * np.abs(one).max())
    logits = [jax.jit(likelihood.predict)(params, statistics, IMAGES) for likelihood in (plain, folded)]
    np.testing.assert_allclose(*logits, atol=1e-4)


def test_augmentation_shifts_mirrors_and_erases():
    image = np.zeros((32, 32, 3), np.uint8)
    image[10:20, 5] = 200  # a line left of the middle
    batch = jnp.asarray(np.repeat(image[None], 500, axis=0)), np.zeros(500)

    def augmented(**switches):
        choice = Augmentation(**{"crop": False, "flip": False, "erase": False} | switches)
        return np.asarray(choice(jax.random.key(0), batch)[0])

    np.testing.assert_array_equal(augmented(), batch[0])
    flipped = augmented(flip=True)[:, 10, 26, 0] == 200
    assert 200 < flipped.sum() < 300  # half of 500, within 4.5 standard deviations
    np.testing.assert_array_equal(augmented(flip=True)[flipped][:, :, ::-1], batch[0][flipped])
    rows, columns = (np.argmax(augmented(crop=True)[..., 0].max(axis=axis), axis=1) for axis in (2, 1))
    assert set(rows) == set(range(6, 15))
    assert set(columns) == set(range(1, 10))
    blank = jnp.zeros((2000, 32, 32, 3), jnp.uint8), np.zeros(2000)
    share = (np.asarray(Augmentation(False, False, True)(jax.random.key(0), blank)[0])[..., 0] > 0).mean(axis=(1, 2))
    assert 900 < (share > 0).sum() < 1100  # half of 2,000, within 4.5 standard deviations
    assert share[share > 0].min() > 0.01
    assert share.max() < 0.45
    assert abs(share[share > 0].mean() - 0.21) < 0.02  # the mean of 2% to 40%


def test_settings_are_those_of_the_paper():
    length = Length(images=50_000, epochs=1000, steps_per_epoch=50)
    kernel = ALGORITHMS["csghmc"].kernel(length)
    assert kernel.dynamics.step_size == 2e-7
    assert kernel.dynamics.temperature == 0.01
    assert (kernel.partition.width, kernel.partition.bins, kernel.zeta) == (1000.0, 200, 1e6)
    assert length.precision == 25.0
    annealed = ALGORITHMS["sacsghmc"].kernel(length).dynamics
    steps = jnp.array([1, 50, 51, 401 * 50, 401 * 50 + 1, 1000 * 50])  # first and last ones of epochs
    expected = 2e-6 * 1.01 ** -np.array([0, 0, 0, 0, 1.0, 599])
    np.testing.assert_allclose(evaluate(annealed.step_size, steps), expected, rtol=1e-4)
    cooled = 0.01 * 1.01 ** -np.array([0, 0, 1.0, 400, 401, 999])
    np.testing.assert_allclose(evaluate(annealed.temperature, steps), cooled, rtol=1e-4)
    assert ALGORITHMS["m-sgd"].kernel(length).temperature == 0
    assert ALGORITHMS["sasghmc"].kernel(length) == annealed
    assert kernel.dynamics.momentum == annealed.momentum == 0.9
    assert (kernel.rule, kernel.rho, kernel.scheme, kernel.weights) == ("biased", 1.0, "left", "step")
    np.testing.assert_allclose(evaluate(kernel.omega, steps), 10 / (steps**0.75 + 1000), rtol=1e-5)


def test_fewer_images_keep_the_dynamics():
    """ε·U, ε·τ and Δu per image do not depend on the number of images."""
    whole, part = (ALGORITHMS["csghmc"].kernel(Length(n, 10, 5)) for n in (50_000, 500))
    assert part.dynamics.step_size == pytest.approx(100 * whole.dynamics.step_size)
    assert part.dynamics.temperature == pytest.approx(whole.dynamics.temperature / 100)
    assert part.partition.width == pytest.approx(whole.partition.width / 100)


def test_a_quick_run_leaves_a_record_that_the_table_shows(folder, tmp_path):
    words = ("--algorithm", "csghmc", "--quick", "--data", str(folder), "--out", str(tmp_path))
    result = call(*words, "--table")
    assert result.exit_code == 0, result.output
    name = "csghmc-2-epochs-batch-size-100-images-500-depth-1-precision-float32-seed-0"
    record = json.loads((tmp_path / f"{name}.json").read_text())
    assert record["settings"]["kernel"]["kind"] == "Contour"
    assert record["results"]["epochs"] == 2
    assert record["history"][0]["average"] == record["results"]["average"]
    assert "CSGHMC, 500 images" in result.output
    assert (tmp_path / "cifar10.png").stat().st_size > 10_000
    again = call(*words)
    assert again.exit_code == 2
    assert "already holds results" in again.output


def test_evaluations_and_averages_are_where_they_should_be(folder):
    """Of 30 epochs the first 12 are burn-in; a model is averaged every ten epochs after it."""
    setting = Setting("m-sgd", epochs=30, batch_size=50, images=100, depth=1, precision="float32")
    assert setting.evaluations == [10, 20, 30]
    assert Setting("m-sgd", epochs=25).evaluations == [10, 20, 25]
    run, average = prepare(setting, cifar10(folder))
    assert (run.steps, run.burn_in, run.plan.thin) == (60, 24, 20)
    assert average.targets.shape == (20,)
    assert average.tempering == 0


def test_colours_are_learnt(folder, monkeypatch):
    """Ten colours, 200 steps of ten images each: well above the 10% of chance, in points and in the average."""
    monkeypatch.setattr(training, "EVERY", 2)
    monkeypatch.setattr(training, "BURN_IN", 0.5)
    augmentation = Augmentation(crop=False, flip=False, erase=False)
    setting = Setting(
        "sam-sgd", epochs=4, batch_size=10, images=500, depth=1, precision="float32", augmentation=augmentation
    )
    saved = []
    record = train(setting, cifar10(folder), lambda record: saved.append(len(record["history"])))
    assert saved == [1, 2]
    assert [entry["epoch"] for entry in record["history"]] == [2, 4]
    assert record["history"][0]["average"] is None  # still burn-in
    assert record["results"]["models"] == 1
    assert record["results"]["last_point"]["accuracy"] > 0.5
    assert record["results"]["average"]["accuracy"] > 0.5


def test_the_table_keeps_different_settings_apart():
    """Seeds of one setting share a row; a run that was interrupted, or made otherwise, has its own."""

    def record(accuracy, epochs=10, done=10, erase=True, seed=0):
        augmentation = {"kind": "Augmentation", "crop": True, "flip": True, "erase": erase}
        settings = dict(algorithm="sghmc", epochs=epochs, seed=seed, images=50_000, batch_size=1000, depth=3)
        point = {"accuracy": accuracy, "nll": 0.5, "ece": 0.1}
        results = dict(epochs=done, best_point=point, average=point, models=3, seconds=20.0)
        return {"settings": settings | {"augmentation": augmentation}, "results": results}

    records = [record(0.8), record(0.9, seed=1), record(0.7, erase=False), record(0.6, epochs=20)]
    console = Console(width=140, record=True)
    console.print(make_table(records))
    rows = [line.split("  ") for line in console.export_text().splitlines() if "SGHMC" in line]
    text = ["|".join(cell.strip() for cell in row if cell.strip()) for row in rows]
    assert text[0].startswith("SGHMC|10|2|85.00 ± 7.07 (90.01)")
    assert text[1].startswith("SGHMC, no erase|10|1|70.00 (90.01)")
    assert text[2].startswith("SGHMC|10 of 20|1|60.00|")
    assert len(text) == 3


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "sghmc-10-epochs-seed-0.json").write_text("{")
    result = call("--table", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "sghmc-10-epochs-seed-0.json" in result.output.replace("\n", "")


def test_nonsense_is_refused(folder, tmp_path):
    some = ("--algorithm", "m-sgd", "--data", str(folder), "--out", str(tmp_path))
    for words, expected in (
        ((), "--algorithm"),
        (("--algorithm", "adam"), "choose one of"),
        (("--table", "--out", str(tmp_path)), "no records"),
        (("--algorithm", "m-sgd", "--data", str(tmp_path / "none"), "--out", str(tmp_path)), "there is no folder"),
        ((*some, "--images", "100", "--batch-size", "101"), "batch_size"),
        ((*some, "--images", "501", "--batch-size", "10"), "there are 500"),
        ((*some, "--epochs", "0"), "epochs"),
    ):
        result = call(*words)
        assert result.exit_code == 2, words
        assert expected in result.output
