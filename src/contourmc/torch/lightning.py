"""An ensemble that is collected while Lightning trains: `Trainer(callbacks=[ensemble_callback(ensemble)])`."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from contourmc._core.checks import require_count
from contourmc.torch.ensemble import Ensemble
from contourmc.torch.sampler import Sampler


def ensemble_callback(ensemble: Ensemble, *, begin: int = 0, every: int = 50) -> Any:
    """A callback of Lightning that adds the model to the ensemble, with its weight.

    Where the Trainer accumulates gradients, it also gives the sampler the mean loss over the batches of a step: the
    closures of Lightning know a share of the last batch's loss alone, and the sampler refuses that.

    begin: the steps of the optimiser before the first draw.
    every: the steps between two draws.

    >>> import torch, contourmc.torch
    >>> ensemble = contourmc.torch.Ensemble(torch.nn.Linear(2, 1))
    >>> callback = contourmc.torch.ensemble_callback(ensemble, begin=1_000, every=50)
    >>> len(callback.ensemble)  # until Trainer(callbacks=[callback]) fits a model
    0
    """
    begin = require_count("begin", begin, 0, "draws begin at step 0 or later")
    every = require_count("every", every, 1, "there must be at least 1 step between draws")

    class EnsembleCallback(_callback_class()):
        """Adds a draw before a step, when loss and parameters belong together."""

        def __init__(self):
            super().__init__()
            self.ensemble, self._steps = ensemble, 0
            self._losses: list[Any] = []  # of the batches since the last step

        def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
            self._losses.append(loss.detach() * trainer.accumulate_grad_batches)

        def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
            sampler = getattr(optimizer, "optimizer", optimizer)  # Lightning may wrap it
            if isinstance(sampler, Sampler):
                loss = sum(self._losses) / len(self._losses) if self._losses else None
                if self._steps >= begin and (self._steps - begin) % every == 0:
                    ensemble.add(sampler, loss)
                if trainer.accumulate_grad_batches > 1:
                    sampler.take_loss(loss)
                self._steps += 1
            self._losses.clear()

        def state_dict(self) -> dict[str, Any]:
            return dict(steps=self._steps, ensemble=ensemble.state_dict())

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            self._steps = int(state_dict["steps"])
            ensemble.load_state_dict(state_dict["ensemble"])

    return EnsembleCallback()


def _callback_class() -> Any:
    """Lightning's class of callbacks, from whichever of its two packages is installed."""
    for package in ("lightning", "pytorch_lightning"):
        if find_spec(package) is not None:
            return import_module(f"{package}.pytorch" if package == "lightning" else package).Callback
    raise ModuleNotFoundError("install Lightning for this callback: pip install lightning")
