"""The six algorithms of the paper's Table 2, with its settings.

The paper's numbers are for N = 50,000 images. With fewer, everything that belongs to an energy summed over N images
is scaled with N, so that the dynamics of the parameters stay what they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import contour
from contourmc.kernels.sghmc import momentum_sgd, sghmc
from contourmc.partition import Partition
from contourmc.schedules import ExponentialDecay, Polynomial, Schedule

IMAGES, EPOCHS, BATCH_SIZE = 50_000, 1000, 1000
MOMENTUM, ZETA = 0.9, 1e6
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


def _momentum_sgd(length: Length, annealed: bool) -> Kernel:
    return momentum_sgd(length.step_size(annealed), MOMENTUM)


def _sghmc(length: Length, annealed: bool) -> Kernel:
    return sghmc(length.step_size(annealed), length.temperature(annealed), MOMENTUM)


def _csghmc(length: Length, annealed: bool) -> Kernel:
    dynamics = sghmc(length.step_size(annealed), length.temperature(annealed), MOMENTUM)
    partition = Partition(low=0.0, width=1000.0 * length.scale, bins=200)
    return contour(
        dynamics, partition, zeta=ZETA, omega=OMEGA, scheme="left", rule="biased", rho=1.0, weights="step"
    )  # fmt: skip


@dataclass(frozen=True)
class Algorithm:
    """title: in the table.  paper: its BPE and BMA on CIFAR-10, in percent.  make: the kernel."""

    title: str
    paper: tuple[float, float]
    make: Callable[[Length, bool], Kernel]
    annealed: bool

    def kernel(self, length: Length) -> Kernel:
        return self.make(length, self.annealed)


ALGORITHMS = {
    "m-sgd": Algorithm("M-SGD", (90.02, 92.03), _momentum_sgd, annealed=False),
    "sghmc": Algorithm("SGHMC", (90.01, 91.98), _sghmc, annealed=False),
    "csghmc": Algorithm("CSGHMC", (90.87, 92.85), _csghmc, annealed=False),
    "sam-sgd": Algorithm("saM-SGD", (93.83, 94.25), _momentum_sgd, annealed=True),
    "sasghmc": Algorithm("saSGHMC", (93.80, 94.24), _sghmc, annealed=True),
    "sacsghmc": Algorithm("saCSGHMC", (94.06, 94.33), _csghmc, annealed=True),
}
