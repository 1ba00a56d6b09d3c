"""The networks that a sampler draws, with their weights, and what they predict together.

With weights w_k of the draws x_k, the prediction is Σ_k w_k f(x_k) / Σ_k w_k. Weights are kept as logarithms, and the
mean is updated by the share of each draw, f̄ ← f̄ + (w_k / Σ w)·(f − f̄): no weight over- or underflows.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax
import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from contourmc._core.checks import require, require_count, require_number
from contourmc._core.generated import host_function
from contourmc.predictions.average import Weights, add_weight
from contourmc.torch.sampler import Sampler

_KEPT = "log_weights", "draws", "mean"


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
    inputs: if given, the mean prediction for these inputs is updated with every draw, and no parameters are kept.
    tempering: the power of the weights: 1 as they are, 0 all equal. At a large ζ few draws have any weight, as
        `effective_models` shows.
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
        tempering: float = 1.0,
        batch_size: int | None = None,
        device: Any = None,
    ):
        require(isinstance(model, torch.nn.Module), "model", model, "give the torch.nn.Module that is sampled")
        remedy = "the power of the weights must be in [0, 1]"
        require_number("tempering", tempering, remedy, positive=False)
        require(tempering <= 1, "tempering", tempering, remedy)
        if batch_size is not None:
            batch_size = require_count("batch_size", batch_size, 1, "predict at least 1 input at a time")
        self._model, self._transform, self._tempering = model, transform, tempering
        self._inputs, self._batch_size, self._device = inputs, batch_size, device
        self._log_weights: list[float] = []
        self._draws: list[dict[str, Any]] = []
        self._mean: Any = None

    def __len__(self) -> int:
        return len(self._log_weights)

    def add(self, sampler: Any = None, loss: Any = None, *, log_weight: Any = None) -> None:
        """Add the model as it is now.

        sampler, loss: the optimiser and the mean loss at the present parameters, before the step from there.
        log_weight: the logarithm of the weight, if it is known. Without any of these, the weight is 1.
        """
        if sampler is not None:
            require(isinstance(sampler, Sampler), "sampler", sampler, "give an optimiser of contourmc.torch")
            require(loss is not None, "loss", loss, "give the loss at the present parameters: ensemble.add(opt, loss)")
            log_weight = sampler.weigh(loss)
        value = 0.0 if log_weight is None else float(log_weight)
        require(math.isfinite(value), "log_weight", value, "the logarithm of a weight must be finite")
        self._log_weights.append(self._tempering * value)
        if self._inputs is None:
            state = self._model.state_dict()
            self._draws.append({name: self._copied(each) for name, each in state.items() if torch.is_tensor(each)})
        else:
            share = float(self._weights[1][-1])
            predicted = self._predicted(dict(self._model.state_dict()), self._inputs)
            self._mean = predicted if self._mean is None else self._mean + share * (predicted - self._mean)

    def predict(self, inputs: Any = None) -> Any:
        """The weighted mean of the draws' predictions, with the model in evaluation mode.

        inputs: where to predict; left out if the ensemble was made for certain inputs.
        """
        require(len(self) > 0, "draws", 0, "add draws before predicting: ensemble.add(opt, loss)")
        if self._inputs is not None:
            require(inputs is None, "inputs", "given", "this ensemble predicts only at the inputs it was made for")
            return self._mean
        require(inputs is not None, "inputs", None, "say where to predict: ensemble.predict(x)")
        mean: Any = 0.0
        for share, state in zip(self._weights[1], self._draws, strict=True):
            if share > 0 or isinstance(mean, float):
                mean = mean + float(share) * (self._predicted(state, inputs) - mean)
        return mean

    @property
    def log_weights(self) -> Any:
        """The logarithms of the weights, tempered."""
        return torch.tensor(self._log_weights, dtype=torch.float64)

    @property
    def weights(self) -> Any:
        """The weights, which sum to 1."""
        return self.log_weights.softmax(0)

    @property
    def effective_models(self) -> float:
        """How many equally weighted draws the ensemble is worth, (Σ w)² / Σ w²."""
        return 1 / float(self._weights[0].concentration) if len(self) else 0.0

    @property
    def states(self) -> list[dict[str, Any]]:
        """The state dicts of the draws; none if the ensemble was made for certain inputs."""
        return self._draws

    def state_dict(self) -> dict[str, Any]:
        """The draws or the mean, and the weights."""
        return dict(log_weights=list(self._log_weights), draws=list(self._draws), mean=self._mean)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        require(set(state_dict) == set(_KEPT), "state_dict", sorted(state_dict), "give what state_dict() gave")
        self._log_weights, self._draws = list(state_dict["log_weights"]), list(state_dict["draws"])
        self._mean = state_dict["mean"]

    @property
    def _weights(self) -> tuple[Weights, list[Any]]:
        """What is known of all weights, and the share of each draw in the total when it came."""
        nothing: list[Any] = [np.float32(-np.inf), np.float32(0), np.int32(0)]
        weights, shares = Weights(*nothing), []
        for value in self._log_weights:
            *new, share = _adder()(*weights, np.float32(value))
            weights = Weights(*new)
            shares.append(share)
        return weights, shares

    def _copied(self, tensor: Any) -> Any:
        return tensor.detach().to(self._device, copy=True) if self._device else tensor.detach().clone()

    def _predicted(self, state: dict[str, Any], inputs: Any) -> Any:
        parts = [inputs] if self._batch_size is None else inputs.split(self._batch_size)
        with torch.no_grad(), _evaluating(self._model):
            place = next(self._model.parameters()).device
            moved = {name: each.to(place) for name, each in state.items() if torch.is_tensor(each)}
            outputs = [torch.func.functional_call(self._model, moved, (part,)) for part in parts]
            return torch.cat([each if self._transform is None else self._transform(each) for each in outputs])


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


@cache
def _adder() -> Callable[..., tuple[Any, ...]]:
    """`add_weight` by NumPy, from the three numbers of `Weights` and a log weight."""
    number, count = jax.ShapeDtypeStruct((), np.float32), jax.ShapeDtypeStruct((), np.int32)
    return host_function(
        lambda total, concentration, draws, value: add_weight(Weights(total, concentration, draws), value),
        number, number, count, number,
    )  # fmt: skip
