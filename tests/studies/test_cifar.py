"""The CIFAR pipeline: data sets, network, augmentation, algorithms, and a small run from the command line."""

import json
import pickle
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from typer.testing import CliRunner

import contourmc as cm
from contourmc._core.progress import Progress
from contourmc.cli.main import app
from contourmc.kernels.schedules import evaluate
from contourmc.studies.cifar import training
from contourmc.studies.cifar.algorithms import ALGORITHMS, Length
from contourmc.studies.cifar.augmentation import Augmentation
from contourmc.studies.cifar.folding import Layout
from contourmc.studies.cifar.network import ImageLikelihood, ResNet
from contourmc.studies.cifar.normalisation import Normalisation
from contourmc.studies.cifar.records import set_of
from contourmc.studies.cifar.sets import CIFAR10, CIFAR100, SETS
from contourmc.studies.cifar.shifts import plain_test
from contourmc.studies.cifar.training import Setting, prepare, train
from contourmc.studies.datasets import cifar10, cifar100

RANDOM = np.random.default_rng(0)
IMAGES = jnp.asarray(RANDOM.integers(0, 256, (8, 32, 32, 3)), jnp.uint8)
LABELS = jnp.arange(8)


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


def test_the_network_has_the_size_of_resnet_20():
    params, _ = jax.eval_shape(ImageLikelihood(ResNet()).init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 269_722
    params, _ = jax.eval_shape(ImageLikelihood(ResNet(classes=100)).init, jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 269_722 + 90 * 65


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


def test_a_learning_rate_of_ones_own():
    """It takes the place of that of the algorithm, is in the name of the record, and must be above 0."""
    usual, own = Setting("cosine", epochs=2), Setting("cosine", epochs=2, learning_rate=0.25)
    highest = [ALGORITHMS["cosine"].how(CIFAR10, each.length)["kernel"].step_size.value for each in (usual, own)]
    np.testing.assert_allclose(highest, [0.5 / 50_000, 0.25 / 50_000])
    assert own.name == "cosine-2-epochs-learning-rate-0.25-seed-0"
    with pytest.raises(ValueError, match=r"learning_rate.*above 0"):
        Setting("cosine", learning_rate=0.0)


@pytest.mark.parametrize("rectified", [False, True])
def test_normalisation_is_that_of_flax(rectified):
    """Values, gradients and running statistics, to rounding; Flax differentiates the formula by itself."""
    x = 3 + 2 * jax.random.normal(jax.random.key(0), (6, 8, 8, 16))
    wanted = jax.random.normal(jax.random.key(1), x.shape)
    ours = Normalisation(Layout.PLAIN, True, jnp.float32, rectified)
    flax = nn.BatchNorm(use_running_average=False, momentum=0.9)
    learnt = {"scale": jnp.linspace(0.5, 2.0, 16), "bias": jnp.linspace(-1.0, 1.0, 16)}

    def evaluated(module, finish):
        def total(params, x):
            start = module.init(jax.random.key(0), x)["batch_stats"]
            y, new = module.apply({"params": params, "batch_stats": start}, x, mutable=["batch_stats"])
            return jnp.sum(wanted * finish(y)), new["batch_stats"]

        return jax.jit(jax.value_and_grad(total, argnums=(0, 1), has_aux=True))(learnt, x)

    results = evaluated(ours, lambda y: y), evaluated(flax, nn.relu if rectified else lambda y: y)
    for one, two in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5 * np.abs(two).max())


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
    painted = np.asarray(Augmentation(False, False, True, CIFAR100.mean)(jax.random.key(0), blank)[0])
    assert set(map(tuple, painted.reshape(-1, 3))) == {(0, 0, 0), (129, 124, 112)}


def test_settings_are_those_of_the_paper():
    length = Length(images=50_000, epochs=1000, steps_per_epoch=50)
    kernel = ALGORITHMS["csghmc"].how(CIFAR10, length)["kernel"]
    assert kernel.dynamics.step_size == 2e-7
    assert kernel.dynamics.temperature == 0.01
    assert (kernel.partition.width, kernel.partition.bins, kernel.zeta) == (1000.0, 200, 1e6)
    hundred = ALGORITHMS["csghmc"].how(CIFAR100, length)["kernel"]
    assert hundred == replace(kernel, partition=replace(kernel.partition, width=5000.0), zeta=3e6)
    assert length.precision == 25.0
    annealed = ALGORITHMS["sacsghmc"].how(CIFAR10, length)["kernel"].dynamics
    steps = jnp.array([1, 50, 51, 401 * 50, 401 * 50 + 1, 1000 * 50])  # first and last ones of epochs
    expected = 2e-6 * 1.01 ** -np.array([0, 0, 0, 0, 1.0, 599])
    np.testing.assert_allclose(evaluate(annealed.step_size, steps), expected, rtol=1e-4)
    cooled = 0.01 * 1.01 ** -np.array([0, 0, 1.0, 400, 401, 999])
    np.testing.assert_allclose(evaluate(annealed.temperature, steps), cooled, rtol=1e-4)
    assert ALGORITHMS["m-sgd"].how(CIFAR10, length)["kernel"].temperature == 0
    assert ALGORITHMS["sasghmc"].how(CIFAR100, length)["kernel"] == annealed
    assert kernel.dynamics.momentum == annealed.momentum == 0.9
    assert (kernel.rule, kernel.scheme, kernel.weights) == (cm.Biased(rho=1.0), "left", "step")
    np.testing.assert_allclose(evaluate(kernel.omega, steps), 10 / (steps**0.75 + 1000), rtol=1e-5)


def test_fewer_images_keep_the_dynamics():
    """ε·U, ε·τ and Δu per image do not depend on the number of images."""
    whole, part = (ALGORITHMS["csghmc"].how(CIFAR10, Length(n, 10, 5))["kernel"] for n in (50_000, 500))
    assert part.dynamics.step_size == pytest.approx(100 * whole.dynamics.step_size)
    assert part.dynamics.temperature == pytest.approx(whole.dynamics.temperature / 100)
    assert part.partition.width == pytest.approx(whole.partition.width / 100)


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
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
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


def test_a_learning_rate_falls_in_steps_and_many_late_models_count():
    setting = Setting("stepwise-automatic", epochs=500, batch_size=500)
    assert (setting.burn_in, setting.every, setting.evaluations) == (400, 2, [*range(50, 501, 50)])
    plain = Setting("stepwise-sghmc", epochs=500, batch_size=500, learning_rate=0.2)
    steps = jnp.array([1, 25_000, 25_001, 37_500, 37_501, 50_000])  # 100 an epoch
    rates = [ALGORITHMS[each.algorithm].how(CIFAR100, each.length) for each in (setting, plain)]
    expected = 0.1 * np.array([1, 1, 0.2, 0.2, 0.04, 0.04])
    np.testing.assert_allclose(evaluate(rates[0]["learning_rate"], steps), expected, rtol=1e-5)
    np.testing.assert_allclose(evaluate(rates[1]["kernel"].step_size, steps), 2 * expected / 50_000, rtol=1e-5)


def test_replicas_are_exchanged_if_the_colder_one_is_higher():
    """By 2Δu or more; the second is ten times as hot."""
    kernel = ALGORITHMS["resghmc"].how(CIFAR100, Length(50_000, 10, 50))["kernel"]
    cold, hot = kernel.dynamics
    assert hot.temperature == pytest.approx(10 * cold.temperature)
    limit = (1 / cold.temperature - 1 / hot.temperature) * kernel.energy_variance
    assert limit == pytest.approx(2 * CIFAR100.width)


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
    ):
        result = call(*words)
        assert result.exit_code == 2, words
        assert expected in result.output
