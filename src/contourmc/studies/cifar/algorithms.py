"""The six algorithms of the paper's Table 2, with its settings; and seven that are not in it.

The paper's numbers are for N = 50,000 images. With fewer, everything that belongs to an energy summed over N images
is scaled with N, so that the dynamics of the parameters stay what they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contourmc.flattening.partition import Partition
from contourmc.flattening.rules import Biased
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import contour
from contourmc.kernels.replica_exchange import replica_exchange
from contourmc.kernels.schedules import CyclicCosine, ExponentialDecay, Polynomial, Schedule
from contourmc.kernels.sghmc import momentum_sgd, sghmc
from contourmc.studies.cifar.sets import ImageSet

IMAGES, EPOCHS, BATCH_SIZE = 50_000, 1000, 1000
MOMENTUM, TEMPERATURE = 0.9, 0.01
CYCLE, WARM_UP = 50, 5  # epochs
REPLICAS, HOTTER = 2, 10.0
OMEGA = Polynomial(scale=10.0, power=0.75, offset=1000.0)


@dataclass(frozen=True)
class Length:
    """images: N, in an epoch.  epochs: of the run.  steps_per_epoch: how many batches that is.
    learning_rate: of the mean loss, where it is highest; None for that of the algorithm.
    temperature: of sampling, where it is highest, for 50,000 images; None for that of the algorithm.
    """

    images: int
    epochs: int
    steps_per_epoch: int
    learning_rate: float | None = None
    temperature: float | None = None

    @property
    def scale(self) -> float:
        return self.images / IMAGES

    @property
    def precision(self) -> float:
        """Of the Gaussian prior: the paper's weight decay."""
        return 25.0 * self.scale

    def decay(self, value: float, share: float) -> Schedule:
        """Divided by 1.01 for every epoch of 1,000, from a share of the run on."""
        begin = round(share * self.epochs) * self.steps_per_epoch
        return ExponentialDecay(value, 1.01 ** (-EPOCHS / self.epochs), self.steps_per_epoch, begin)

    def rate(self, usual: float) -> float:
        """The learning rate of the mean loss: the one that was given, or the usual one."""
        return usual if self.learning_rate is None else self.learning_rate

    def step_size(self, annealed: bool) -> Schedule:
        return self.decay(self.rate(0.1) / self.images, 0.4) if annealed else self.rate(0.01) / self.images

    def cyclic(self, epochs: int, factor: float) -> CyclicCosine:
        """Learning rates of the mean loss, times a factor, from 0.5 down to 0 in cycles of some epochs.

        From 0.5 is better than from 0.1 on training images that were held out.
        """
        period = min(epochs, self.epochs) * self.steps_per_epoch
        return CyclicCosine(self.rate(0.5) * factor, period, warm_up=WARM_UP * self.steps_per_epoch)

    def stepwise(self, factor: float) -> ExponentialDecay:
        """A learning rate of the mean loss, times a factor, which falls to a fifth after a half of the run, and again
        after three quarters, as the authors train (Deng et al. 2022); theirs is 0.1, for batches of 256.
        """
        quarter = max(1, self.epochs * self.steps_per_epoch // 4)
        return ExponentialDecay(self.rate(0.1) * factor, 0.2, quarter, begin=quarter)

    @property
    def hottest(self) -> float:
        """The highest temperature, for the energy of these images: the one that was given, or the usual one."""
        return (TEMPERATURE if self.temperature is None else self.temperature) * self.scale

    def cooling(self, annealed: bool) -> Schedule:
        return self.decay(self.hottest, 0.0) if annealed else self.hottest


def _momentum_sgd(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    return momentum_sgd(length.step_size(annealed), MOMENTUM)


def _sghmc(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    return sghmc(length.step_size(annealed), length.cooling(annealed), MOMENTUM)


def _csghmc(images: ImageSet, length: Length, annealed: bool) -> Kernel:
    dynamics = sghmc(length.step_size(annealed), length.cooling(annealed), MOMENTUM)
    partition = Partition(low=0.0, width=images.width * length.scale, bins=200)
    return contour(
        dynamics, partition, zeta=images.zeta, omega=OMEGA, scheme="left", rule=Biased(rho=1.0), weights="step"
    )  # fmt: skip


def _cyclical(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    return sghmc(length.cyclic(CYCLE, 1 / length.images), length.cooling(annealed), MOMENTUM)


def _fast_sghmc(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    """At five times the step size: the best learning rate, 0.05, on training images that were held out."""
    return sghmc(length.rate(0.05) / length.images, length.cooling(annealed), MOMENTUM)


def _replicas(images: ImageSet, length: Length, annealed: bool) -> Kernel:
    """SGHMC at two temperatures. Positions are exchanged if the colder energy is the higher one by 2Δu or more.

    With a correction by the whole variance of the energies none would be; Deng et al. (2020) choose a part of it, too.
    """
    size, cold = length.rate(0.05) / length.images, length.hottest
    difference = 1 / cold - 1 / (HOTTER * cold)
    replicas = sghmc(size, cold, MOMENTUM), sghmc(size, HOTTER * cold, MOMENTUM)
    return replica_exchange(*replicas, energy_variance=2 * images.width * length.scale / difference)


def _stepwise(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    return sghmc(length.stepwise(1 / length.images), length.cooling(annealed), MOMENTUM)


def _cosine(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    """Momentum SGD as networks are usually trained: one cycle."""
    return momentum_sgd(length.cyclic(length.epochs, 1 / length.images), MOMENTUM)


@dataclass(frozen=True)
class Algorithm:
    """title: in the table.
    make: the kernel; None for a run by its learning rate alone.
    annealed: whether step size and temperature fall.
    cycle: epochs of a cycle, at whose end the model is evaluated and averaged; None without cycles.
    last: whether the last model alone counts.
    stepwise: whether the learning rate falls in steps, and many models of the last fifth are averaged.
    replicas: how many networks a chain moves.
    noisy: whether steps have noise, so that there is a temperature.
    """

    title: str
    make: Callable[[ImageSet, Length, bool], Kernel] | None
    annealed: bool = False
    cycle: int | None = None
    last: bool = False
    stepwise: bool = False
    replicas: int = 1
    noisy: bool = True

    def how(self, images: ImageSet, length: Length) -> dict[str, Any]:
        """The kernel, or the learning rate, as `sample` takes them."""
        if self.make is not None:
            return {"kernel": self.make(images, length, self.annealed)}
        rate = length.stepwise(1.0) if self.cycle is None else length.cyclic(self.cycle, 1.0)
        return {"learning_rate": rate} | ({} if length.temperature is None else {"temperature": length.hottest})


ALGORITHMS = {
    "m-sgd": Algorithm("M-SGD", _momentum_sgd, annealed=False, noisy=False),
    "sghmc": Algorithm("SGHMC", _sghmc, annealed=False),
    "csghmc": Algorithm("CSGHMC", _csghmc, annealed=False),
    "sam-sgd": Algorithm("saM-SGD", _momentum_sgd, annealed=True, noisy=False),
    "sasghmc": Algorithm("saSGHMC", _sghmc, annealed=True),
    "sacsghmc": Algorithm("saCSGHMC", _csghmc, annealed=True),
    "cycsghmc": Algorithm("cycSGHMC", _cyclical, cycle=CYCLE),
    "automatic": Algorithm("automatic CSGHMC", None, cycle=CYCLE),
    "fast-sghmc": Algorithm("SGHMC, step × 5", _fast_sghmc),
    "cosine": Algorithm("M-SGD, cosine", _cosine, last=True, noisy=False),
    "resghmc": Algorithm("reSGHMC", _replicas, replicas=REPLICAS),
    "stepwise-sghmc": Algorithm("SGHMC, in steps", _stepwise, stepwise=True),
    "stepwise-automatic": Algorithm("automatic CSGHMC, in steps", None, stepwise=True),
}
