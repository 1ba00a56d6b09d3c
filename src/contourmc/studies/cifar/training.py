"""One run: a posterior of ResNet-20 on one of the data sets, evaluated every ten epochs, and its record."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from contourmc._core.checks import require, require_count, require_number
from contourmc._core.describe import describe
from contourmc._core.info import Info
from contourmc._core.progress import Progress
from contourmc._core.pytrees import position_size, unstack
from contourmc.engine.run import Run
from contourmc.predictions.classification import ClassificationAverage
from contourmc.sampling.start import start
from contourmc.studies.cifar.algorithms import ALGORITHMS, BATCH_SIZE, EPOCHS, IMAGES, Length
from contourmc.studies.cifar.augmentation import Augmentation
from contourmc.studies.cifar.network import ImageLikelihood, ResNet
from contourmc.studies.cifar.records import LogitAverage, Record, evaluation, figures, results
from contourmc.studies.cifar.sets import ImageSet, find_set
from contourmc.studies.cifar.shifts import TestImages, plain_test, shifted_test
from contourmc.studies.datasets import Images
from contourmc.targets.posterior import Posterior
from contourmc.targets.priors import GaussianPrior

EVERY = 10  # epochs between evaluations
BURN_IN = 0.4  # of the run, before models are averaged; with cycles, the first one
LAST_STEP, OFTEN, SELDOM = 0.8, 2, 50  # with a learning rate that falls in steps: burn-in, models, evaluations before
CHUNK = 1000  # test images that are predicted at once


@dataclass(frozen=True)
class Setting:
    """How a run is made.

    dataset: cifar10 or cifar100.
    images: how many of the training set, the first ones; and a fifth as many of the test set.
    depth: blocks in a stage; 3 is ResNet-20.
    precision: of the computation, bfloat16 or float32; parameters, statistics and noise are float32.
    crop, flip, erase: what is done to images at random; see `Augmentation`.
    chains: how many there are, each with an own start; the average is over all of them.
    held_out: how many training images, the last ones, take the place of the test set, to choose settings by.
    learning_rate: of the mean loss, where it is highest; None for that of the algorithm.
    temperature: of sampling, where it is highest, for 50,000 images; None for that of the algorithm.
    """

    algorithm: str
    epochs: int = EPOCHS
    seed: int = 0
    batch_size: int = BATCH_SIZE
    images: int = IMAGES
    depth: int = 3
    precision: str = "bfloat16"
    crop: bool = True
    flip: bool = True
    erase: bool = True
    dataset: str = "cifar10"
    chains: int = 1
    held_out: int = 0
    learning_rate: float | None = None
    temperature: float | None = None

    def __post_init__(self):
        find_set(self.dataset)
        known = ", ".join(ALGORITHMS)
        require(self.algorithm in ALGORITHMS, "algorithm", self.algorithm, f"choose one of {known}")
        require_count("epochs", self.epochs, 1, "give at least 1 epoch")
        require_count("chains", self.chains, 1, "give at least 1 chain")
        require_count("held_out", self.held_out, 0, "give 0 or more")
        require(self.images >= 10, "images", self.images, "give at least 10")
        remedy = f"give {self.images} or less, as many images as there are to train on, or more images"
        require(1 <= self.batch_size <= self.images, "batch_size", self.batch_size, remedy)
        if self.learning_rate is not None:
            require_number("learning_rate", self.learning_rate, "give a number above 0, such as 0.1", positive=True)
        if self.temperature is not None:
            remedy = f"{self.algorithm} has no noise: leave it out, or take another algorithm"
            require(ALGORITHMS[self.algorithm].noisy, "temperature", self.temperature, remedy)
            require_number("temperature", self.temperature, "give a number above 0, such as 0.01", positive=True)
        choices = ("bfloat16", "float32")
        require(self.precision in choices, "precision", self.precision, f"choose one of {', '.join(choices)}")

    @property
    def name(self) -> str:
        """Of its file, in a folder of its data set: the algorithm, the epochs, what is not as usual, and the seed."""
        usual = Setting(self.algorithm)
        named = ("batch_size", "images", "depth", "precision", "chains", "held_out", "learning_rate", "temperature")
        unusual = [
            f"{name}-{getattr(self, name)}".replace("_", "-")
            for name in named
            if getattr(self, name) != getattr(usual, name)
        ]
        unusual += [f"no-{name}" for name in ("crop", "flip", "erase") if not getattr(self, name)]
        return "-".join([self.algorithm, f"{self.epochs}-epochs", *unusual, f"seed-{self.seed}"])

    @property
    def every(self) -> int:
        """Epochs between models that are averaged."""
        algorithm = ALGORITHMS[self.algorithm]
        usual = OFTEN if algorithm.stepwise else algorithm.cycle or EVERY
        return self.epochs if algorithm.last else min(usual, self.epochs)

    @property
    def burn_in(self) -> int:
        """Epochs before models are averaged."""
        algorithm = ALGORITHMS[self.algorithm]
        share = LAST_STEP if algorithm.stepwise else BURN_IN
        return min(algorithm.cycle or int(share * self.epochs), self.epochs - self.every)

    @property
    def evaluations(self) -> list[int]:
        """The epochs after which the model is evaluated."""
        end = self.epochs + 1
        if not ALGORITHMS[self.algorithm].stepwise:
            return sorted({*range(self.every, end, self.every), self.epochs})
        return sorted({*range(SELDOM, self.burn_in + 1, SELDOM), *range(self.burn_in + EVERY, end, EVERY), self.epochs})

    @property
    def image_set(self) -> ImageSet:
        return find_set(self.dataset)

    @property
    def augmentation(self) -> Augmentation:
        return Augmentation(self.crop, self.flip, self.erase, self.image_set.mean)

    @property
    def length(self) -> Length:
        return Length(self.images, self.epochs, self.images // self.batch_size, self.learning_rate, self.temperature)


def train(
    setting: Setting,
    data: tuple[Images, Images],
    save: Callable[[Record], None],
    *,
    other: Images | None = None,
    checkpoint: Path | None = None,
    before: Sequence[Record] = (),
) -> Record:
    """The record of a run; `save` gets it after every evaluation, so that nothing is lost. Ctrl-C ends it early.

    other: the test set of the other data set, to measure how predictions hold under shift; None: they are not measured.
    checkpoint: a folder from which a run that was cut goes on.
    before: the evaluations that its record had.
    """
    training, test = _split(setting, data)
    shown = plain_test(test) if other is None else shifted_test(test, other)
    run, average = prepare(setting, training, shown, checkpoint)
    history = [entry for entry in before if entry["epoch"] * setting.length.steps_per_epoch <= run.step]
    record: Record = {"settings": _describe(setting, run, shown), "history": history}
    stage = f"epoch {run.step // setting.length.steps_per_epoch}"
    with run, Progress(run.steps, run.chains, None) as bar, suppress(KeyboardInterrupt):
        for epoch in setting.evaluations:
            steps = epoch * setting.length.steps_per_epoch - run.step
            if steps < 0 or epoch in [entry["epoch"] for entry in history]:
                continue
            if steps:
                run.advance(steps, lambda _, step, note, stage=stage: bar.update(stage, step, note))
            point, samples = _point(run, average, shown), run.samples()
            everything = samples.average
            if everything is not None:
                samples = replace(samples, average=shown.of_test(everything))
            history.append(evaluation(epoch, point, samples, history))
            record["results"] = results(setting.image_set, samples, history)
            if everything is not None and epoch == setting.epochs:
                record["results"] |= shown.under_shift(everything)
            stage = f"epoch {epoch}, accuracy {point['accuracy']:.1%}"
            save(record)
    return record


def _split(setting: Setting, data: tuple[Images, Images]) -> tuple[Images, Images]:
    """The images to train on, and those to test on: of the test set a fifth as many, or training images held out."""
    (images, labels), (test_images, test_labels) = data
    count, held_out, there = setting.images, setting.held_out, len(labels)
    require(count + held_out <= there, "images", count, f"there are {there}, and {held_out} are held out")
    if held_out:
        test = slice(there - held_out, there)
        return (images[:count], labels[:count]), (images[test], labels[test])
    return (images[:count], labels[:count]), (test_images[: count // 5], test_labels[: count // 5])


def prepare(
    setting: Setting, data: Images, test: TestImages, checkpoint: Path | None = None
) -> tuple[Run, ClassificationAverage]:
    """The run before its first step, or where the one in a folder was cut; and what it averages."""
    length, image_set, algorithm = setting.length, setting.image_set, ALGORITHMS[setting.algorithm]
    network = ResNet(
        setting.depth,
        jnp.dtype(setting.precision),
        folded=jax.default_backend() != "cpu",
        classes=image_set.classes,
        mean=image_set.mean,
        deviation=image_set.deviation,
    )
    likelihood = ImageLikelihood(network)
    _, init_key = jax.random.split(jax.random.key(setting.seed))
    initial = [jax.jit(likelihood.init)(init_key)[0]]
    initial += [jax.jit(likelihood.init)(jax.random.fold_in(init_key, i))[0] for i in range(1, setting.chains)]
    statistics = jax.jit(likelihood.init)(init_key)[1]
    target = Posterior(
        likelihood,
        GaussianPrior(length.precision),
        data,
        setting.batch_size,
        augment=setting.augmentation,
        state=statistics,
    )
    average = (LogitAverage if algorithm.stepwise else ClassificationAverage)(
        likelihood.predict,
        test.images,
        test.labels,
        classes=image_set.classes,
        tempering=None if algorithm.make is None else 0.0,
        chunk=CHUNK,
    )
    run = start(
        target,
        init=jax.tree.map(lambda *each: jnp.stack(each), *initial),
        per_chain_init=True,
        **algorithm.how(image_set, length),
        chains=setting.chains,
        seed=setting.seed,
        steps=setting.epochs * length.steps_per_epoch,
        burn_in=setting.burn_in * length.steps_per_epoch,
        thin=setting.every * length.steps_per_epoch,
        average=average,
        store=False,
        checkpoint=checkpoint,
    )
    return run, average


def _point(run: Run, average: ClassificationAverage, test: TestImages) -> dict[str, float]:
    """How good the present parameters of the first chain are on the test set."""
    position, statistics = unstack((run.positions, run.target_states), 0)
    sums = _one_draw(average, position, statistics)
    return figures(test.of_test(average.finish(jax.tree.map(lambda leaf: leaf[None], sums))))


@jax.jit
def _one_draw(average: ClassificationAverage, position: Any, statistics: Any) -> Any:
    nothing = jnp.zeros(())
    return average.add(average.init(), Info(nothing, nothing.astype(int), nothing, nothing), position, statistics)


def _describe(setting: Setting, run: Run, test: TestImages) -> Record:
    equal = ALGORITHMS[setting.algorithm].make is not None
    return describe(setting) | {
        "augmentation": describe(setting.augmentation),
        "parameters": position_size(run.positions),
        "kernel": run.samples().settings["kernel"],
        "weight_decay": setting.length.precision,
        "burn_in_epochs": setting.burn_in,
        "averaged_every_epochs": setting.every,
        "weights_in_average": "equal" if equal else "tempered: half of the models count",
        "test_images": test.count,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
    }
