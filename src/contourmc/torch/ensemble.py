"""The networks that a sampler draws, with their weights, and what they predict together.

With weights w_k of the draws x_k, the prediction is Σ_k w_k f(x_k) / Σ_k w_k. Weights are kept as logarithms, and the
mean is updated by the share of each draw, f̄ ← f̄ + (w_k / Σ w)·(f − f̄): no weight over- or underflows.

They are tempered as those of a `ModelAverage` are, just so far that half of the draws count (predictions/tempering.py).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from jaxtyping import Float

from contourmc._core.checks import require, require_count
from contourmc.draws.estimates import kish, normalise
from contourmc.predictions.tempering import POWERS, power_of_one_chain, required_share, warn_tempered
from contourmc.torch.sampler import Sampler

_KEPT = "log_weights", "powers", "draws", "means"


class Ensemble:
    """Draws of a model's parameters and buffers, batch norm's included; or the mean of their predictions.

        ensemble = Ensemble(model, transform=lambda logits: logits.softmax(-1))
        loss.backward()
        if step % 50 == 0:
            ensemble.add(opt, loss)     # before the step: the weight is that of the point where the loss was computed
        opt.step(loss)
        ensemble.predict(x)

    model: the network that is being sampled.
    transform: from the model's outputs to what is averaged, such as probabilities; None: the outputs themselves.
    inputs: if given, the mean prediction for these inputs is updated with every draw, and no parameters are kept. It
        takes the memory of 29 such predictions unless `tempering` is given.
    tempering: the power of the weights: 1 as they are, 0 all equal.
    effective: the share of the draws that must count, (Σ w)² / Σ w² ≥ effective · draws, in place of `tempering`: the
        power is the largest of 1, ½, ¼ … at which they do. 0.5 unless one of the two is given; then `predict` warns
        of a power below 1.
    batch_size: how many inputs are predicted at a time; None: all at once.
    device: where draws are kept, such as "cpu"; None: where the model is.

    >>> import torch, contourmc.torch
    >>> net = torch.nn.Linear(2, 1)
    >>> ensemble = contourmc.torch.Ensemble(net)
    >>> ensemble.add(log_weight=0.0)  # or ensemble.add(opt, loss), before a step
    >>> len(ensemble), ensemble.predict(torch.ones(8, 2)).shape
    (1, torch.Size([8, 1]))
    """

    def __init__(
        self,
        model: Any,
        *,
        transform: Callable[[Any], Any] | None = None,
        inputs: Any = None,
        tempering: float | None = None,
        effective: float | None = None,
        batch_size: int | None = None,
        device: Any = None,
    ):
        require(isinstance(model, torch.nn.Module), "model", model, "give the torch.nn.Module that is sampled")
        self._required = required_share(tempering, effective)
        self._powers = POWERS if tempering is None else (tempering,)
        self._asked = tempering is not None or effective is not None
        if batch_size is not None:
            batch_size = require_count("batch_size", batch_size, 1, "predict at least 1 input at a time")
        self._model, self._transform = model, transform
        self._inputs, self._batch_size, self._device = inputs, batch_size, device
        self._log_weights: list[float] = []
        self._draws: list[dict[str, Any]] = []
        self._means: Any = None  # at each of the powers
        self._versions: dict[int, int] = {}  # of the parameters, by their id, when a gradient came to them
        for each in model.parameters():
            if each.requires_grad:
                each.register_post_accumulate_grad_hook(partial(_note_version, self._versions))

    def __len__(self) -> int:
        return len(self._log_weights)

    def add(self, sampler: Any = None, loss: Any = None, *, log_weight: Any = None) -> None:
        """Add the model as it is now.

        sampler, loss: the optimiser and the mean loss at the present parameters, before the step from there.
        log_weight: the logarithm of the weight, if it is known. Without any of these, the weight is 1.
        """
        if sampler is not None:
            require(isinstance(sampler, Sampler), "sampler", sampler, "give an optimiser of contourmc.torch")
            given = {each for group in sampler.param_groups for each in group["params"]}
            sampled = [each for each in self._model.parameters() if each in given]
            remedy = "it samples no parameter of this ensemble's model: give Ensemble(…) the model that it samples"
            require(bool(sampled), "sampler", type(sampler).__name__, remedy)
            require(loss is not None, "loss", loss, "give the loss at the present parameters: ensemble.add(opt, loss)")
            remedy = "the parameters have moved since backward(): call ensemble.add(opt, loss) before opt.step(loss)"
            remedy += "; for a loss of the new parameters, ensemble.add(log_weight=opt.weigh(loss))"
            require(not self._moved(sampled), "loss", "that of a step which was made", remedy)
            log_weight = sampler.weigh(loss)
        value = 0.0 if log_weight is None else float(log_weight)
        require(math.isfinite(value), "log_weight", value, "the logarithm of a weight must be finite")
        self._log_weights.append(value)
        if self._inputs is None:
            state = self._model.state_dict(keep_vars=True)
            copies = {id(each): self._copied(each) for each in state.values() if torch.is_tensor(each)}
            self._draws.append({name: copies[id(each)] for name, each in state.items() if id(each) in copies})
        else:
            predicted = self._predicted(dict(self._model.state_dict()), self._inputs)
            means = torch.zeros_like(predicted) if self._means is None else self._means
            shares = torch.tensor([normalise(power * self._log)[-1] for power in self._powers]).to(predicted)
            self._means = means + shares.view(-1, *[1] * predicted.ndim) * (predicted - means)

    def _moved(self, parameters: list[Any]) -> bool:
        """Whether all of these have changed since their gradients came: PyTorch counts every change in place."""
        noted = [each for each in parameters if id(each) in self._versions]
        return bool(noted) and all(each._version != self._versions[id(each)] for each in noted)

    def predict(self, inputs: Any = None) -> Any:
        """The weighted mean of the draws' predictions, with the model in evaluation mode.

        inputs: where to predict; left out if the ensemble was made for certain inputs.
        """
        require(len(self) > 0, "draws", 0, "add draws before predicting: ensemble.add(opt, loss)")
        known = self._inputs is not None
        remedy = "this ensemble predicts only at the inputs it was made for"
        require(not known or inputs is None, "inputs", "given", remedy)
        require(known or inputs is not None, "inputs", None, "say where to predict: ensemble.predict(x)")
        if not self._asked and self.tempering < 1:
            warn_tempered(self.tempering, len(self), stacklevel=2)
        if known:
            return self._means[self._chosen].clone()
        mean: Any = 0.0
        for weight, state in zip(self.weights.tolist(), self._draws, strict=True):
            if weight > 0:
                mean = mean + weight * self._predicted(state, inputs)
        return mean

    @property
    def log_weights(self) -> Any:
        """The logarithms of the weights, as they are and not tempered."""
        return torch.tensor(self._log_weights, dtype=torch.float64)

    @property
    def weights(self) -> Any:
        """The weights, tempered, which sum to 1."""
        return torch.as_tensor(self._tempered)

    @property
    def tempering(self) -> float:
        """The power of the weights: as given, or the largest at which enough of the draws count."""
        return self._powers[self._chosen]

    @property
    def effective_models(self) -> float:
        """How many equally weighted draws the ensemble is worth, (Σ w)² / Σ w²."""
        return float(kish(self._tempered)) if len(self) else 0.0

    def __repr__(self) -> str:
        power = "" if self.tempering == 1 else f" (weights to the power of {self.tempering:.2g})"
        return f"Ensemble({len(self)} models, worth {self.effective_models:.1f} equally weighted ones{power})"

    @property
    def states(self) -> list[dict[str, Any]]:
        """The state dicts of the draws; none if the ensemble was made for certain inputs."""
        return self._draws

    def state_dict(self) -> dict[str, Any]:
        """The draws or their mean predictions, and the weights."""
        return dict(
            log_weights=list(self._log_weights), powers=list(self._powers), draws=list(self._draws), means=self._means
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        require(set(state_dict) == set(_KEPT), "state_dict", sorted(state_dict), "give what state_dict() gave")
        same = state_dict["means"] is None or tuple(state_dict["powers"]) == self._powers
        remedy = "its means are tempered in another way: give the `tempering` or `effective` with which it was saved"
        require(same, "state_dict", "an ensemble of mean predictions", remedy)
        self._log_weights, self._draws = list(state_dict["log_weights"]), list(state_dict["draws"])
        self._means = state_dict["means"]

    @property
    def _log(self) -> Float[np.ndarray, " draws"]:
        return np.array(self._log_weights)

    @property
    def _chosen(self) -> int:
        """The index of the power of the weights."""
        return 0 if self._required is None or not len(self) else power_of_one_chain(self._log, self._required)

    @property
    def _tempered(self) -> Float[np.ndarray, " draws"]:
        return normalise(self.tempering * self._log) if len(self) else self._log

    def _copied(self, tensor: Any) -> Any:
        return tensor.detach().to(self._device, copy=True) if self._device else tensor.detach().clone()

    def _predicted(self, state: dict[str, Any], inputs: Any) -> Any:
        parts = [inputs] if self._batch_size is None else inputs.split(self._batch_size)
        with torch.no_grad(), _evaluating(self._model):
            place = next(self._model.parameters()).device
            others = _further_names(self._model)
            tensors = {name: each for name, each in state.items() if torch.is_tensor(each) and name not in others}
            moved = {name: each.to(place) for name, each in tensors.items()}
            outputs = [torch.func.functional_call(self._model, moved, (part,)) for part in parts]
            whole = torch.cat([each if self._transform is None else self._transform(each) for each in outputs])
            return whole.to(torch.promote_types(whole.dtype, torch.float32))  # a mean of many would lose small shares


def _note_version(versions: dict[int, int], parameter: Any) -> None:
    versions[id(parameter)] = parameter._version


def _further_names(model: Any) -> set[str]:
    """All names but the first of tied weights, which are one tensor: PyTorch wants to be given it once."""
    members = model.named_parameters, model.named_buffers
    every, first = ({name for of in members for name, _ in of(remove_duplicate=once)} for once in (False, True))
    return every - first


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """The model and its parts in evaluation mode, and as they were afterwards."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
