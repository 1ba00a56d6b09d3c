"""The CIFAR-10 pipeline: network, augmentation, algorithms, and a small run from the command line."""

import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from contourmc.cli import app
from contourmc.schedules import evaluate
from contourmc.studies.cifar10.algorithms import ALGORITHMS, Length
from contourmc.studies.cifar10.augmentation import Augmentation
from contourmc.studies.cifar10.network import CLASSES, ImageLikelihood, ResNet

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
    steps = jnp.array([1, 400 * 50 - 1, 401 * 50, 1000 * 50])
    expected = 2e-6 * np.array([1, 1, 1.01**-1, 1.01**-600])
    np.testing.assert_allclose(evaluate(annealed.step_size, steps), expected, rtol=1e-4)
    cooled = 0.01 * 1.01 ** -np.array([0, 399, 401, 1000])
    np.testing.assert_allclose(evaluate(annealed.temperature, steps), cooled, rtol=1e-4)


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
    record = json.loads((tmp_path / "csghmc-2-epochs-seed-0.json").read_text())
    assert record["settings"]["kernel"]["kind"] == "Contour"
    assert record["results"]["epochs"] == 2
    assert 0 <= record["results"]["average"]["accuracy"] <= 1
    assert len(record["history"]) == 1
    assert "CSGHMC, 500 images" in result.output
    assert (tmp_path / "cifar10.png").stat().st_size > 10_000
    again = call(*words)
    assert again.exit_code == 2
    assert "already holds results" in again.output


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
