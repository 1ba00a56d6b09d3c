"""Ready-made functions for `sample(…, on_block=…)`: training curves as JSON lines, in TensorBoard, or in W&B.

Each is called with the steps done and a dictionary of figures, about once a second. A list of several is fine:

>>> watched = [cm.callbacks.jsonl("run.jsonl"), lambda step, figures: figures["loss"] < 1000]
>>> run = cm.sample(posterior, init=0.0, steps=2_000, kernel=cm.sgld(1e-5), on_block=watched)
>>> run.interrupted
False

Figures are energy and multiplier, the means over the chains at the last step; steps_per_second, of all chains; loss,
the energy by the number of observations, for posteriors on data; and, whenever they have been computed anew, those of
the average so far: accuracy, nll, ece and best_accuracy, or rmse, nll and best_rmse. The function above ends the run,
by returning False, once the loss is 1,000 or more.
"""

import json
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from contourmc._core.checks import require

Callback = Callable[[int, dict[str, float]], None]

# Where a writer of TensorBoard's files is found: the module, and the name of its method for a number.
_WRITERS = (
    ("tensorboardX", "add_scalar"),
    ("torch.utils.tensorboard", "add_scalar"),
    ("flax.metrics.tensorboard", "scalar"),
)


def jsonl(path: str | Path) -> Callback:
    """Add a line of JSON to a file: the step, the time in seconds since 1970, and the figures.

    A run that is resumed goes on in the same file.

    >>> from pathlib import Path
    >>> run = cm.sample(energy, init=1.0, steps=2_000, kernel=cm.sgld(0.002), on_block=cm.callbacks.jsonl("run.jsonl"))
    >>> print(Path("run.jsonl").read_text())
    {"step": 2000, "time": ..., "energy": ...}
    """
    place = Path(path)
    require(place.parent.is_dir(), "path", str(path), "there is no such folder: make it first")

    def write(step: int, figures: dict[str, float]) -> None:
        with place.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "time": time.time()} | figures) + "\n")

    return write


def tensorboard(folder: str | Path) -> Callback:
    """Write the figures to a folder that TensorBoard shows; with tensorboardX, PyTorch or Flax, whichever is there.

    >>> run = cm.sample(energy, init=1.0, steps=2_000, kernel=cm.sgld(0.002), on_block=cm.callbacks.tensorboard("runs"))
    """
    writer, method = _tensorboard_writer(str(folder))

    def write(step: int, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            getattr(writer, method)(name, value, step)
        writer.flush()

    return write


def _tensorboard_writer(folder: str) -> tuple[Any, str]:
    for module, method in _WRITERS:
        try:
            return import_module(module).SummaryWriter(folder), method
        except ImportError:  # of the module, or of what it needs, such as PyTorch's of tensorboard
            continue
    remedy = "no package is installed that writes TensorBoard's files: pip install tensorboardX"
    raise ImportError(f"tensorboard({folder!r}) is not possible: {remedy}")


def wandb(**init: Any) -> Callback:
    """Log the figures to Weights & Biases, in a run begun by `wandb.init(**init)` before the first of them.

    >>> curves = cm.callbacks.wandb(project="wells", mode="offline")
    >>> run = cm.sample(energy, init=1.0, steps=2_000, kernel=cm.sgld(0.002), on_block=curves)
    """
    try:
        package = import_module("wandb")
    except ImportError as error:
        raise ImportError("wandb() is not possible: pip install wandb") from error
    begun: list[Any] = []

    def write(step: int, figures: dict[str, float]) -> None:
        if not begun:
            begun.append(package.init(**init))
        begun[0].log(figures, step=step)

    return write
