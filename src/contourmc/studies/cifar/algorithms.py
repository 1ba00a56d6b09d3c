"""The six algorithms of the paper's Table 2, with its settings; and cyclical SGHMC, which is not in it.

The paper's numbers are for N = 50,000 images. With fewer, everything that belongs to an energy summed over N images
is scaled with N, so that the dynamics of the parameters stay what they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

from contourmc.flattening.partition import Partition
from contourmc.flattening.rules import Biased
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import contour
from contourmc.kernels.schedules import CyclicCosine, ExponentialDecay, Polynomial, Schedule
from contourmc.kernels.sghmc import momentum_sgd, sghmc
from contourmc.studies.cifar.sets import ImageSet

IMAGES, EPOCHS, BATCH_SIZE = 50_000, 1000, 1000
MOMENTUM = 0.9
CYCLE, WARM_UP = 50, 5  # epochs
OMEGA = Polynomial(scale=10.0, power=0.75, offset=1000.0)


@dataclass(frozen=True)
class Length:
    """images: N, in an epoch.  epochs: of the run.  steps_per_epoch: how many batches that is."""

    images: int
    epochs: int
    steps_per_epoch: int

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

    def step_size(self, annealed: bool) -> Schedule:
        return self.decay(2e-6 / self.scale, 0.4) if annealed else 2e-7 / self.scale

    def temperature(self, annealed: bool) -> Schedule:
        return self.decay(0.01 * self.scale, 0.0) if annealed else 0.01 * self.scale


def _momentum_sgd(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    return momentum_sgd(length.step_size(annealed), MOMENTUM)


def _sghmc(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    return sghmc(length.step_size(annealed), length.temperature(annealed), MOMENTUM)


def _csghmc(images: ImageSet, length: Length, annealed: bool) -> Kernel:
    dynamics = sghmc(length.step_size(annealed), length.temperature(annealed), MOMENTUM)
    partition = Partition(low=0.0, width=images.width * length.scale, bins=200)
    return contour(
        dynamics, partition, zeta=images.zeta, omega=OMEGA, scheme="left", rule=Biased(rho=1.0), weights="step"
    )  # fmt: skip


def _cyclical(_: ImageSet, length: Length, annealed: bool) -> Kernel:
    """Learning rates of the mean loss from 0.5 down to 0 in every cycle: better than from 0.1 on training images that
    were held out.
    """
    period = min(CYCLE, length.epochs) * length.steps_per_epoch
    step_size = CyclicCosine(0.5 / length.images, period, warm_up=WARM_UP * length.steps_per_epoch)
    return sghmc(step_size, length.temperature(annealed), MOMENTUM)


@dataclass(frozen=True)
class Algorithm:
    """title: in the table.  make: the kernel.  annealed: whether step size and temperature fall.
    cycle: epochs of a cycle, at whose end the model is evaluated and averaged; None without cycles.
    """

    title: str
    make: Callable[[ImageSet, Length, bool], Kernel]
    annealed: bool
    cycle: int | None = None

    def kernel(self, images: ImageSet, length: Length) -> Kernel:
        return self.make(images, length, self.annealed)


ALGORITHMS = {
    "m-sgd": Algorithm("M-SGD", _momentum_sgd, annealed=False),
    "sghmc": Algorithm("SGHMC", _sghmc, annealed=False),
    "csghmc": Algorithm("CSGHMC", _csghmc, annealed=False),
    "sam-sgd": Algorithm("saM-SGD", _momentum_sgd, annealed=True),
    "sasghmc": Algorithm("saSGHMC", _sghmc, annealed=True),
    "sacsghmc": Algorithm("saCSGHMC", _csghmc, annealed=True),
    "cycsghmc": Algorithm("cycSGHMC", _cyclical, annealed=False, cycle=CYCLE),
}
