"""One chain on several processes, as DistributedDataParallel trains one model: two of gloo on the CPU."""

import os
import subprocess
import sys

import pytest

import contourmc as cm

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from contourmc.torch import CSGHMC, SGLD  # noqa: E402

PARTITION = cm.Partition(low=5.0, width=5.0, bins=20)
STEPS = 40

# What both processes do; every part makes as many collective calls on one as on the other.
WORKER = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
import contourmc as cm
from contourmc.torch import CSGHMC

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
partition = cm.Partition(low=5.0, width=5.0, bins=20)
x = torch.linspace(-1, 1, 40)[rank::2, None]
y = torch.sin(3 * x)

def network(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

def sampler(model, **settings):
    return CSGHMC(model.parameters(), 0.02, data_size=40, partition=partition, weight_decay=1e-3, **settings)

def loss_of(model, opt):
    opt.zero_grad()
    loss = 0.5 * (model(x) - y).square().mean()
    loss.backward()
    return loss

def refusal(function, *given):
    try:
        function(*given)
    except ValueError as error:
        return str(error)

def parameters(model):
    return torch.cat([each.detach().flatten() for each in model.parameters()])

found = {}
model = DDP(network())
opt, log_weights = sampler(model, seed=3), []
for step in range(%(steps)d):
    loss = loss_of(model, opt)
    if step %% 10 == 0:
        log_weights.append(opt.weigh(loss))
    opt.step(loss)
found["same seed"] = parameters(model), opt.theta, opt.energy, torch.stack(log_weights)

loss = loss_of(model, opt)
found["weighed on one"] = refusal(opt.weigh if rank == 0 else opt.step, loss)

state = opt.state_dict()
if rank == 0:
    opt.load_state_dict(state)
else:
    state["sampler"]["state"]["theta.levels"][0] += 1
    opt.load_state_dict(state)
found["another state"] = refusal(opt.step, loss_of(model, opt))

torch.manual_seed(rank)
opt = sampler(model)
for _ in range(3):
    opt.step(loss_of(model, opt))
found["no seed"] = parameters(model), opt.theta

opt = sampler(model, seed=rank)
found["other seeds"] = refusal(opt.step, loss_of(model, opt))
alone = network(seed=rank)
opt = sampler(alone, seed=0)
found["chains of their own"] = refusal(opt.step, loss_of(alone, opt))
alone = network()
opt = sampler(alone, seed=0)
found["gradients of their own"] = refusal(opt.step, loss_of(alone, opt))
torch.save(found, f"{folder}/{rank}.pt")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the two processes found."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-c", WORKER % dict(steps=STEPS)]
    given = dict(env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True)
    started = [subprocess.Popen([*command, str(rank), str(folder)], **given) for rank in range(2)]
    try:
        errors = [process.communicate(timeout=300)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], "\n".join(errors)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("name", ["same seed", "no seed"])
def test_ranks_hold_the_same_parameters_and_theta(found, name):
    """To the bit; without a seed although the generators of PyTorch differ."""
    for first, second in zip(found[0][name], found[1][name], strict=True):
        assert torch.equal(first, second)


def test_the_chain_is_the_one_of_all_data_in_one_process(found):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimiser = CSGHMC(model.parameters(), 0.02, data_size=40, partition=PARTITION, weight_decay=1e-3, seed=3)
    x = torch.linspace(-1, 1, 40)[:, None]
    log_weights = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = 0.5 * (model(x) - torch.sin(3 * x)).square().mean()
        loss.backward()
        optimiser.step(loss)
        log_weights.append(optimiser.log_weight)
    parameters = torch.cat([each.detach().flatten() for each in model.parameters()])
    expected = parameters, optimiser.theta, optimiser.energy, torch.stack(log_weights[::10])
    assert optimiser.theta.max() / optimiser.theta.min() > 1.1
    for ours, whole in zip(found[0]["same seed"], expected, strict=True):
        torch.testing.assert_close(ours, whole, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weighed on one", r"call ensemble\.add\(opt, loss\) on every rank"),
        ("another state", "state_dict='not the same on all ranks' is not possible: load the same state on every rank"),
        ("other seeds", "seed='not the same on all ranks' is not possible: give every rank the same seed"),
        ("chains of their own", "params='not the same on all ranks' is not possible: wrap the model in Distributed"),
        ("gradients of their own", "gradients='not the same on all ranks' is not possible: wrap the model in Distri"),
    ],
)
def test_ranks_that_do_not_agree_are_refused_on_all_of_them(found, name, message):
    for rank in range(2):
        with pytest.raises(ValueError, match=message):
            raise ValueError(found[rank][name])


def test_fsdp2_is_refused_by_name(tmp_path):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = torch.nn.Linear(2, 1)
        fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
        with pytest.raises(ValueError, match=r"params='sharded \(DTensor\)' is not possible: wrap the model in"):
            SGLD(model.parameters(), lr=0.1, data_size=10)
    finally:
        torch.distributed.destroy_process_group()
