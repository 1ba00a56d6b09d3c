"""Settings, losses, gradients and states that PyTorch's door refuses, by name."""

import copy
import math

import pytest

import contourmc as cm

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from contourmc.torch import CSGHMC, CSGLD, SGLD, Sampler  # noqa: E402

PARTITION = cm.Partition(low=5.0, width=5.0, bins=20)


def parameter(**settings):
    return torch.nn.Parameter(torch.ones(2, **settings))


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(data_size=0), "data_size=0 is not possible"),
        (dict(data_size=2.5), "data_size=2.5 is not possible"),
        (dict(lr=0.0), "lr=0.0 is not possible"),
        (dict(lr=-1.0), "lr=-1.0 is not possible"),
        (dict(temperature=-1.0), "temperature=-1.0 is not possible"),
        (dict(weight_decay=-0.1), "weight_decay=-0.1 is not possible"),
        (dict(partition=None), "partition=None is not possible"),
        (dict(seed=-1), "seed=-1 is not possible"),
        (dict(momentum=1.0), "momentum=1.0 is not possible"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        CSGHMC([parameter()], **{**dict(lr=0.1, data_size=10, partition=PARTITION), **settings})


@pytest.mark.usefixtures("untyped")
def test_kernels_and_parameters_that_cannot_be():
    with pytest.raises(ValueError, match="whose steps are increments"):
        Sampler([parameter()], 0.1, cm.replica_exchange(cm.sgld(0.1), cm.sgld(0.1, 3.0)), data_size=10)
    with pytest.raises(ValueError, match="shared=True is not possible"):
        Sampler([parameter()], 0.1, cm.csgld(0.1, PARTITION, shared=True), data_size=10)
    with pytest.raises(ValueError, match="a scheduler of PyTorch"):
        Sampler([parameter()], 0.1, cm.sgld(cm.CyclicCosine(0.1, 5)), data_size=10)
    with pytest.raises(ValueError, match="parameters of real numbers"):
        SGLD([parameter(dtype=torch.complex64)], 0.1, data_size=10)
    with pytest.raises(ValueError, match="all parameters must be on"):
        SGLD([parameter(), parameter(device="meta")], 0.1, data_size=10)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (None, "loss=None is not possible: give the mean loss"),
        (0.5, "loss=0.5 is not possible: give the mean loss"),
        (torch.ones(3), r"loss='torch.float32 of shape \(3,\)' is not possible"),
        (torch.tensor(1), r"loss='torch.int64 of shape \(\)' is not possible"),
        (torch.tensor(math.nan), "loss=nan is not possible: the run has diverged"),
        (torch.tensor(math.inf), "loss=inf is not possible: the run has diverged"),
        (lambda: None, "closure='a function that returns nothing' is not possible"),
    ],
)
def test_losses_that_cannot_be(loss, message):
    x = parameter()
    optimiser = SGLD([x], lr=0.1, data_size=10)
    x.sum().backward()
    with pytest.raises(ValueError, match=message):
        optimiser.step(loss)
    assert torch.equal(x, torch.ones(2))


def test_gradients_that_cannot_be():
    table = torch.nn.Embedding(4, 2, sparse=True)
    loss = table(torch.tensor([1])).sum()
    loss.backward()
    with pytest.raises(ValueError, match="gradient='a sparse tensor' is not possible"):
        SGLD(table.parameters(), lr=0.1, data_size=10).step(loss)
    with pytest.raises(ValueError, match=r"call loss\.backward"):
        SGLD([parameter()], lr=0.1, data_size=10).step(torch.tensor(1.0))


def test_states_that_cannot_be():
    optimiser = CSGLD([parameter()], lr=0.1, data_size=10, partition=PARTITION)
    with pytest.raises(ValueError, match="log_weight=None is not possible: it is known after the first step"):
        _ = optimiser.log_weight
    with pytest.raises(ValueError, match="what a Sampler's state_dict"):
        optimiser.load_state_dict(torch.optim.SGD([parameter()], lr=0.1).state_dict())
    other = CSGLD([parameter()], lr=0.1, data_size=10, partition=cm.Partition(low=0.0, width=1.0, bins=7))
    with pytest.raises(ValueError, match="use the same settings"):
        optimiser.load_state_dict(other.state_dict())
    with pytest.raises(TypeError, match="use its state_dict"):
        copy.deepcopy(optimiser)
