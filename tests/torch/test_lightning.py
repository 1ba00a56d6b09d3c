"""The loss that a sampler gets from Lightning, where gradients are accumulated over several batches."""

import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import contourmc as cm

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from contourmc.torch import CSGLD, Ensemble, ensemble_callback  # noqa: E402

TARGETS = torch.arange(11.0) / 10
SETTINGS = dict(lr=0.1, data_size=10, partition=cm.Partition(low=0.0, width=0.5, bins=20), weight_decay=0.1, seed=0)


@pytest.fixture
def lightning(monkeypatch):
    """A stand-in for Lightning: a module with a base class of callbacks."""
    stub = ModuleType("pytorch_lightning")
    stub.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, "pytorch_lightning", stub)
    monkeypatch.setattr("contourmc.torch.lightning.find_spec", lambda name: stub if name == stub.__name__ else None)


def fit(module, optimiser, accumulate, callback=None):
    """What Lightning 2 does in an epoch: the closure of a batch is called alone, or by the step of every fourth."""
    module.trainer = trainer = SimpleNamespace(accumulate_grad_batches=accumulate)

    def closure(target, first):
        loss = 0.5 * (module(torch.ones(1, 1)) - target).square().mean() / accumulate
        if first:
            optimiser.zero_grad()
        if callback is not None:
            callback.on_before_backward(trainer, module, loss)
        loss.backward()
        return loss.detach().clone()

    def wrapped(module, optimiser, closure):
        loss = closure()
        if callback is not None:
            callback.on_before_optimizer_step(trainer, module, optimiser)
        return loss

    for i, target in enumerate(TARGETS):
        run = partial(closure, target, i % accumulate == 0)
        if (i + 1) % accumulate and i + 1 < len(TARGETS):
            run()
        else:
            optimiser.step(closure=partial(wrapped, module, optimiser, run))
            yield optimiser


@pytest.mark.parametrize("accumulate", [1, 4])
def test_a_sampler_gets_the_mean_loss_of_the_batches_that_were_accumulated(lightning, accumulate):
    """Also of the last step of an epoch, for which fewer batches are left."""
    module, plain = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        module.weight.fill_(0.5)
        plain.weight.fill_(0.5)
    optimiser, other = CSGLD(module.parameters(), **SETTINGS), CSGLD(plain.parameters(), **SETTINGS)
    ensemble = Ensemble(module, tempering=1.0)
    steps = fit(module, optimiser, accumulate, ensemble_callback(ensemble, every=1))
    log_weights = []
    for targets in TARGETS.split(accumulate):
        next(steps)
        other.zero_grad()
        losses = 0.5 * (plain(torch.ones(1, 1)) - targets).square()
        (losses.sum() / accumulate).backward()
        other.step(losses.mean())
        log_weights.append(float(other.log_weight))
        for mine, whole in [(optimiser.energy, other.energy), (optimiser.theta, other.theta)]:
            torch.testing.assert_close(mine, whole)
    torch.testing.assert_close(module.weight, plain.weight)
    np.testing.assert_allclose(ensemble.log_weights, log_weights, rtol=1e-5)


def test_without_the_callback_accumulated_batches_are_refused(lightning):
    module = torch.nn.Linear(1, 1, bias=False)
    optimiser = CSGLD(module.parameters(), **SETTINGS)
    before = module.weight.detach().clone()
    with pytest.raises(ValueError, match=r"accumulate_grad_batches=4 is not possible: add .*ensemble_callback"):
        next(fit(module, optimiser, 4))
    assert torch.equal(module.weight, before)
    assert next(fit(module, optimiser, 1)) is optimiser


def test_a_step_without_a_closure_needs_its_loss():
    """As Lightning makes it in float16, where the callback sees losses that a GradScaler has scaled."""
    module = torch.nn.Linear(1, 1)
    optimiser = CSGLD(module.parameters(), **SETTINGS)
    module(torch.ones(1, 1)).sum().backward()
    optimiser.take_loss(torch.tensor(1024.0))
    with pytest.raises(ValueError, match="loss=None is not possible"):
        optimiser.step()
