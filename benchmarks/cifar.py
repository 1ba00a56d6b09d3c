"""Seconds for an epoch of ResNet-20 on images of the size of CIFAR-10, batch 1,000, bfloat16, on a GPU, in one run:

momentum SGD, SGHMC and CSGHMC by contourmc, and momentum SGD by PyTorch, if it is installed. The images are noise:
the time does not depend on what they show.

    XLA_PYTHON_CLIENT_PREALLOCATE=false python -m benchmarks.cifar
"""

from importlib.util import find_spec

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.timing import Contender, measure
from benchmarks.torch_resnet import torch_epoch
from contourmc.studies.cifar.shifts import plain_test
from contourmc.studies.cifar.training import Setting, prepare
from contourmc.studies.datasets import Images

ROUNDS, EPOCHS, BATCH_SIZE = 5, 3, 1000


def contour_contender(algorithm: str, data: tuple[Images, Images]) -> Contender:
    """Some epochs of a run that goes on from call to call."""
    setting = Setting(algorithm, epochs=100, batch_size=BATCH_SIZE)
    (run, _), steps = prepare(setting, data[0], plain_test(data[1])), EPOCHS * setting.length.steps_per_epoch
    return Contender(lambda: run.advance(steps), steps)


def torch_contender(data: tuple[Images, Images], *, compiled: bool) -> Contender:
    """The same by PyTorch."""
    epoch = torch_epoch(*data[0], BATCH_SIZE, compiled=compiled)
    return Contender(lambda: [epoch() for _ in range(EPOCHS)], EPOCHS * (50_000 // BATCH_SIZE))


def main() -> None:
    random = np.random.default_rng(0)

    def noise(count: int) -> Images:
        images = random.integers(0, 256, (count, 32, 32, 3)).astype(np.uint8)
        return images, random.integers(0, 10, count).astype(np.int32)

    data = noise(50_000), noise(10_000)
    names = {"M-SGD": "m-sgd", "SGHMC": "sghmc", "CSGHMC": "csghmc"}
    contenders = {f"contourmc {title}": contour_contender(name, data) for title, name in names.items()}
    if find_spec("torch") is not None:
        contenders["PyTorch M-SGD, compiled"] = torch_contender(data, compiled=True)
        contenders["PyTorch M-SGD, eager"] = torch_contender(data, compiled=False)
    timings = measure(contenders, ROUNDS)
    base = timings["contourmc M-SGD"].median
    table = Table(
        "method", "s / epoch", "ms / step", "to M-SGD", "slowest / fastest", "s, first call",
        title=f"ResNet-20, batch {BATCH_SIZE}, {jax.devices()[0].device_kind}: medians of {ROUNDS} rounds",
    )  # fmt: skip
    for name, timing in timings.items():
        row = f"{timing.median * 50e-6:.4f}", f"{timing.median / 1000:.3f}", f"{timing.median / base:.3f}"
        table.add_row(name, *row, f"{timing.spread:.3f}", f"{timing.first_call:.1f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
