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


@pytest.mark.parametrize("settings", [dict(momentum=0.5), dict(temperature=0.1), dict(data_size=5)])
def test_groups_have_no_settings_of_the_whole_sampler(settings):
    (name,) = settings
    message = rf"the param_group setting '{name}'=.* is not possible: a group may have its own lr and weight_decay"
    with pytest.raises(ValueError, match=message):
        CSGHMC([dict(params=[parameter()], **settings)], lr=0.1, data_size=10, partition=PARTITION)
    x = parameter()
    optimiser = CSGHMC([dict(params=[x], label="head")], lr=0.1, data_size=10, partition=PARTITION)
    optimiser.param_groups[0].update(settings)
    x.sum().backward()
    with pytest.raises(ValueError, match=message):
        optimiser.step(torch.tensor(1.0))
    assert torch.equal(x, torch.ones(2))


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_gradients_that_are_not_numbers_move_nothing(named, bad):
    model = torch.nn.Linear(2, 1)
    before = [each.detach().clone() for each in model.parameters()]
    optimiser = CSGHMC(
        model.named_parameters() if named else model.parameters(), lr=0.1, data_size=10, partition=PARTITION
    )
    theta = optimiser.theta
    model(torch.ones(3, 2)).sum().backward()
    model.bias.grad[0] = bad
    name = "'bias'" if named else "parameter 1 of group 0, of shape \\(1,\\)"
    with pytest.raises(ValueError, match=f"the gradient of {name}={bad} is not possible: "):
        optimiser.step(torch.tensor(1.0))
    assert all(torch.equal(*pair) for pair in zip(model.parameters(), before, strict=True))
    assert torch.equal(optimiser.theta, theta)


def test_large_gradients_are_numbers():
    """A sum over them is not."""
    x = torch.nn.Parameter(torch.zeros(4))
    optimiser = SGLD([x], lr=1e-30, data_size=10)
    x.grad = torch.full((4,), 3e38)
    optimiser.step(torch.tensor(1.0))
    assert bool(torch.isfinite(x).all())


def test_states_that_cannot_be():
    optimiser = CSGLD([parameter()], lr=0.1, data_size=10, partition=PARTITION)
    with pytest.raises(ValueError, match="log_weight=None is not possible: it is known after the first step"):
        _ = optimiser.log_weight
    with pytest.raises(ValueError, match="what a Sampler's state_dict"):
        optimiser.load_state_dict(torch.optim.SGD([parameter()], lr=0.1).state_dict())
    with pytest.raises(ValueError, match="kernel was SGLD and is Contour now"):
        optimiser.load_state_dict(SGLD([parameter()], lr=0.1, data_size=10).state_dict())
    with pytest.raises(TypeError, match="use its state_dict"):
        copy.deepcopy(optimiser)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(partition=cm.Partition(low=5.0, width=5.0, bins=21)), "partition.bins was 21 and is 20 now"),
        (dict(partition=cm.Partition(low=4.0, width=5.0, bins=20)), "partition.low was 4.0 and is 5.0 now"),
        (dict(data_size=11), "data_size was 11 and is 10 now"),
        (dict(temperature=0.5), "temperature was 0.5 and is 1.0 now"),
        (dict(zeta=2.0), "zeta was 2.0 and is 1.0 now"),
        (dict(rule="scalable"), "rule.kind was Scalable and is Original now"),
        (dict(theta=[0.05] * 20), "theta.0 was 0.05 and is none now"),
        (
            dict(temperature=lambda step: 1.0 + 0.0 * step),
            "temperature was 1, 1, .* at steps 1, 8, .* and is 1.0",
        ),
    ],
)
def test_what_was_learnt_with_other_settings_is_refused(settings, message, tmp_path):
    usual = dict(lr=0.1, data_size=10, partition=PARTITION)
    torch.save(CSGLD([parameter()], **{**usual, **settings}).state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    with pytest.raises(ValueError, match=f"state_dict='{message}.* is not possible: make the sampler with"):
        CSGLD([parameter()], **usual).load_state_dict(state)
    CSGLD([parameter()], **{**usual, **settings}).load_state_dict(state)
    CSGLD([parameter()], **{**usual, **settings, "lr": 0.2}).load_state_dict(state)


def test_functions_of_the_step_are_compared_by_their_values():
    usual = dict(lr=0.1, data_size=10, partition=PARTITION)
    first, same, other = (lambda step: 1 / step), (lambda step: step**-1.0), (lambda step: 2 / (1 + step))
    state = CSGLD([parameter()], **usual, temperature=first).state_dict()
    CSGLD([parameter()], **usual, temperature=same).load_state_dict(state)
    with pytest.raises(ValueError, match=r"temperature was 1, 0\.125, .* and is 1, 0\.222222, .* now"):
        CSGLD([parameter()], **usual, temperature=other).load_state_dict(state)
