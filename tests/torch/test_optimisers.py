"""The optimisers in the usual loops of PyTorch: groups, schedulers, closures, mixed precision, states."""

import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import contourmc as cm

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from contourmc.torch import CSGHMC, CSGLD, SGHMC, SGLD, Sampler  # noqa: E402

PARTITION = cm.Partition(low=5.0, width=5.0, bins=20)
X = torch.linspace(-1, 1, 40)[:, None]
Y = torch.sin(3 * X)


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def loss_of(model):
    return 0.5 * ((model(X) - Y) ** 2).mean()


def train(model, optimiser, steps):
    for _ in range(steps):
        optimiser.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimiser.step(loss)
    return torch.cat([each.detach().flatten() for each in model.parameters()])


MAKERS = {
    "SGLD": lambda p, **more: SGLD(p, lr=0.1, data_size=40, **more),
    "SGHMC": lambda p, **more: SGHMC(p, lr=0.02, data_size=40, **more),
    "CSGLD": lambda p, **more: CSGLD(p, lr=0.1, data_size=40, partition=PARTITION, **more),
    "CSGHMC": lambda p, **more: CSGHMC(p, lr=0.02, data_size=40, partition=PARTITION, weight_decay=1e-3, **more),
    "langevin": lambda p, **more: Sampler(p, 0.02, cm.langevin(1.0, momentum=0.5), data_size=40, **more),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_state_goes_on_to_the_bit(name, tmp_path):
    model = network()
    optimiser = MAKERS[name](model.parameters(), seed=3)
    train(model, optimiser, 130)
    torch.save((model.state_dict(), optimiser.state_dict()), tmp_path / "state.pt")
    expected = train(model, optimiser, 70)

    again = network()
    resumed = MAKERS[name](again.parameters(), seed=8)
    train(again, resumed, 5)
    parameters, state = torch.load(tmp_path / "state.pt", weights_only=True)
    again.load_state_dict(parameters)
    resumed.load_state_dict(state)
    assert torch.equal(train(again, resumed, 70), expected)
    assert optimiser.log_weight == resumed.log_weight
    if name.startswith("C"):
        assert torch.equal(optimiser.theta, resumed.theta)


def test_seeds_decide_the_noise():
    paths = [train(model := network(), SGLD(model.parameters(), lr=0.1, data_size=40, seed=s), 5) for s in (0, 0, 1)]
    assert torch.equal(paths[0], paths[1])
    assert not torch.allclose(paths[0], paths[2])


def test_without_a_seed_the_noise_is_that_of_pytorchs_generator():
    def paths():
        models = network(), network()
        torch.manual_seed(5)
        return [train(model, SGLD(model.parameters(), lr=0.1, data_size=40), 5) for model in models]

    (first, second), again = paths(), paths()
    assert not torch.allclose(first, second)
    assert torch.equal(first, again[0])
    assert torch.equal(second, again[1])


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_at_temperature_zero_it_is_sgd(decay):
    model, other = network(), network()
    ours = train(model, SGHMC(model.parameters(), lr=0.05, data_size=40, temperature=0.0, weight_decay=decay), 200)
    plain = torch.optim.SGD(other.parameters(), lr=0.05, momentum=0.9, weight_decay=decay)
    for _ in range(200):
        plain.zero_grad()
        loss_of(other).backward()
        plain.step()
    # PyTorch multiplies its velocity by lr when it moves, ours holds lr already: the same but for rounding.
    theirs = torch.cat([each.detach().flatten() for each in other.parameters()])
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


def test_weight_decay_is_a_prior():
    """U = N·L + N·λ/2·‖x‖²: without data, x is Gaussian with variance τ/(N·λ), and the energy counts the prior."""
    x = torch.nn.Parameter(torch.zeros(500))
    optimiser = SGLD([x], lr=0.2, data_size=10, weight_decay=0.5, seed=0)
    squares = []
    for step in range(400):
        optimiser.zero_grad()
        loss = 0.0 * x.sum()
        loss.backward()
        before = x.detach().clone()
        optimiser.step(loss)
        torch.testing.assert_close(optimiser.energy, 10 * 0.25 * before.square().sum())
        if step >= 50:
            squares.append(float(x.detach().square().mean()))
    # Variance 1/5, and 1/(1 − ε·5/2) times as much at ε = 0.02; 350 correlated draws of 500 numbers: within 3%.
    assert np.mean(squares) == pytest.approx(0.2 / 0.95, rel=0.03)


def test_groups_have_their_own_rate_and_decay():
    first, second = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.ones(2))
    optimiser = SGLD(
        [dict(params=[first], lr=0.5), dict(params=[second, frozen], weight_decay=0.1)],
        lr=0.1, data_size=7, temperature=0.0,
    )  # fmt: skip
    loss = first.sum() + 2 * second.sum()
    loss.backward()
    optimiser.step(loss)
    torch.testing.assert_close(first.detach(), torch.full((3,), 1 - 0.5))
    torch.testing.assert_close(second.detach(), torch.full((2,), 1 - 0.1 * (2 + 0.1)))
    assert torch.equal(frozen, torch.ones(2))
    late = torch.nn.Parameter(torch.ones(1))
    optimiser.add_param_group(dict(params=[late], lr=0.25))
    loss = first.sum() + 2 * second.sum() + late.sum()
    loss.backward()
    optimiser.step(loss)
    torch.testing.assert_close(late.detach(), torch.tensor([0.75]))


def test_schedulers_change_the_rate():
    x = torch.nn.Parameter(torch.zeros(1))
    optimiser = SGLD([x], lr=1.0, data_size=3, temperature=0.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimiser, 1, gamma=0.5)
    for _ in range(3):
        optimiser.zero_grad()
        loss = x.sum()
        loss.backward()
        optimiser.step(loss)
        scheduler.step()
    torch.testing.assert_close(x.detach(), torch.tensor([-1.75]))


def test_a_temperature_may_follow_a_schedule():
    """τ_k = 4/k²: the noise of step k has a variance of 2·τ_k·ε."""
    x = torch.nn.Parameter(torch.zeros(20_000))
    optimiser = SGLD([x], lr=1.0, data_size=10, temperature=cm.Polynomial(4.0, 2.0), seed=0)
    for k in (1, 2, 3):
        before = x.detach().clone()
        loss = 0.0 * x.sum()
        loss.backward()
        optimiser.step(loss)
        assert float((x - before).detach().var()) == pytest.approx(2 * 4 / k**2 / 10, rel=0.05)


def test_a_closure_gives_the_loss():
    model, other = network(), network()
    settings = dict(data_size=40, partition=PARTITION, seed=0)
    optimiser = CSGHMC(model.parameters(), 0.02, **settings)

    def closure():
        optimiser.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    losses = [optimiser.step(closure) for _ in range(5)]
    assert losses[0].requires_grad
    expected = train(other, CSGHMC(other.parameters(), 0.02, **settings), 5)
    assert torch.equal(torch.cat([each.detach().flatten() for each in model.parameters()]), expected)


def test_gradients_are_scaled_back_by_amp():
    model, other = network(), network()
    optimiser, scaler = MAKERS["CSGHMC"](model.parameters(), seed=0), torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(20):
        optimiser.zero_grad()
        loss = loss_of(model)
        scaler.scale(loss).backward()
        scaler.step(optimiser, loss)
        scaler.update()
    expected = train(other, MAKERS["CSGHMC"](other.parameters(), seed=0), 20)
    torch.testing.assert_close(torch.cat([each.detach().flatten() for each in model.parameters()]), expected)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_parameters_keep_their_type(kind):
    wide, x = torch.nn.Parameter(torch.ones(5, 3)), torch.nn.Parameter(torch.ones(4, dtype=kind))
    optimiser = CSGHMC([wide, x], lr=0.1, data_size=20, partition=PARTITION, weight_decay=0.01, seed=0)
    for _ in range(10):
        optimiser.zero_grad()
        loss = wide.square().mean() + x.float().square().mean()
        loss.backward()
        optimiser.step(loss)
    assert x.dtype == kind
    assert optimiser.state[x]["velocity"].dtype == (kind if kind == torch.float64 else torch.float32)
    assert optimiser.theta.dtype == torch.float32
    assert bool(torch.isfinite(x).all())


LOW = {torch.bfloat16: 100.0, torch.float16: 1000.0}  # the numbers there are 0.5 apart


@pytest.mark.parametrize("sampler", [SGLD, SGHMC])
@pytest.mark.parametrize("kind", LOW)
def test_low_precision_keeps_the_noise(kind, sampler):
    """N(m, 1), where numbers are 0.5 apart: the parameters lie σ² = 1/(1 − ε/(2(1 + β))) + 0.5²/12 about m.

    2,000 numbers, and at least 10 independent draws of each: 3% are three standard errors. Moved in their own type, the
    parameters had 0.000 of this spread with the noise of SGHMC, 0.02 a step, and 37 times as much with that of SGLD.
    """
    momentum = dict(momentum=0.9) if sampler is SGHMC else {}
    x = torch.nn.Parameter(torch.full((2000,), LOW[kind], dtype=kind))
    optimiser = sampler([x], lr=0.01 if momentum else 0.1, data_size=5, seed=0, **momentum)
    squares = []
    for step in range(1500):
        optimiser.zero_grad()
        away = x.float() - LOW[kind]
        loss = away.square().sum() / 10
        loss.backward()
        optimiser.step(loss)
        if step >= 500 and step % 20 == 0:
            squares.append(float((x.detach().float() - LOW[kind]).square().mean()))
    step_size = 0.002 if momentum else 0.02
    theory = 1 / (1 - step_size / (2 * (1.9 if momentum else 1.0))) + 0.5**2 / 12
    assert np.mean(squares) / theory == pytest.approx(1.0, abs=0.03)


def test_low_precision_goes_on_to_the_bit_and_takes_over_what_others_write():
    """The copy in float32 is a part of the state, and follows a parameter that is changed from outside."""

    def steps(x, optimiser, count):
        for _ in range(count):
            optimiser.zero_grad()
            loss = x.float().square().mean()
            loss.backward()
            optimiser.step(loss)
        return x.detach().clone()

    make = lambda: torch.nn.Parameter(torch.full((6,), 3.0, dtype=torch.bfloat16))  # noqa: E731
    settings = dict(lr=0.001, data_size=20, partition=PARTITION, weight_decay=0.01)
    x, y = make(), make()
    first, second = CSGHMC([x], **settings, seed=0), CSGHMC([y], **settings, seed=1)
    steps(x, first, 20)
    steps(y, second, 1)
    with torch.no_grad():
        y.copy_(x)
    second.load_state_dict(first.state_dict())
    assert torch.equal(steps(x, first, 20), steps(y, second, 20))
    assert torch.equal(first.state[x]["position"], second.state[y]["position"])
    with torch.no_grad():
        x[:3] = 50.0
    before = first.state[x]["position"].clone()
    steps(x, first, 1)
    after = first.state[x]["position"]
    assert bool(((after[:3] - 50).abs() < 1).all())
    assert bool(((after[3:] - before[3:]).abs() < 1).all())
    assert torch.equal(after.bfloat16(), x.detach())


def test_images_may_be_laid_out_channels_last():
    def run(layout):
        torch.manual_seed(0)
        model = torch.nn.Conv2d(3, 4, 3).to(memory_format=layout)
        optimiser = SGHMC(model.parameters(), lr=0.1, data_size=40, temperature=0.0)
        loss = model(torch.ones(2, 3, 5, 5)).square().mean()
        loss.backward()
        optimiser.step(loss)
        assert optimiser.state[model.weight]["velocity"].stride() == model.weight.stride()
        return model.weight.detach().contiguous()

    torch.testing.assert_close(run(torch.contiguous_format), run(torch.channels_last))


def test_parameters_without_a_gradient_stay_and_come_back():
    a, b = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    optimiser = SGHMC([a, b], lr=0.1, data_size=5, seed=0)
    for used in ([a, b], [a], [a, b]):
        optimiser.zero_grad()
        loss = sum(each.sum() for each in used)
        loss.backward()
        before, velocity = b.detach().clone(), optimiser.state[b].get("velocity", torch.zeros(3)).clone()
        optimiser.step(loss)
        assert torch.equal(b, before) == (len(used) == 1)
        if len(used) == 1:
            assert torch.equal(optimiser.state[b]["velocity"], velocity)


def test_csgld_finds_the_masses_that_sgld_does_not():
    """Masses 0.3 and 0.7 at a distance of 8σ, from the lesser: SGLD stays there, and has 0 of the other.

    θ is learnt for 5,000 steps and then frozen for 8,000, which cross about 500 times. The weights are heavy-tailed: of
    eight seeds seven gave 0.68 to 0.81, and one 0.35, a standard deviation of 0.14. That of the mean of two is 0.1, and
    0.3 is three of these. It tells CSGLD from SGLD, and not weights from none: for that there is test_translation.py.
    """
    means, log_masses = torch.tensor([-4.0, 4.0]), torch.log(torch.tensor([0.3, 0.7]))

    def share_on_the_right(optimiser, x, steps):
        right, log_weights = [], []
        for _ in range(steps):
            optimiser.zero_grad()
            loss = -torch.logsumexp(log_masses - 0.5 * (x - means) ** 2, 0)
            loss.backward()
            right.append(float(x.detach()) > 0)
            optimiser.step(loss)
            log_weights.append(float(optimiser.log_weight))
        weights = np.exp(np.array(log_weights) - max(log_weights))
        return float(np.sum(weights * right) / weights.sum())

    x = torch.nn.Parameter(torch.tensor([-4.0]))
    assert share_on_the_right(SGLD([x], lr=0.2, data_size=1, seed=0), x, 2000) < 0.01
    settings = dict(lr=0.2, data_size=1, partition=cm.Partition(low=1.2, width=0.6, bins=15))
    shares = []
    for seed in range(2):
        x = torch.nn.Parameter(torch.tensor([-4.0]))
        learning = CSGLD([x], **settings, omega=cm.Polynomial(scale=10.0, power=0.6, offset=100.0), seed=seed)
        share_on_the_right(learning, x, 5000)
        frozen = CSGLD([x], **settings, theta=learning.theta.numpy(), seed=100 + seed)
        shares.append(share_on_the_right(frozen, x, 8000))
    assert np.mean(shares) == pytest.approx(0.7, abs=0.3)


class OnTheDevice(CSGHMC):
    """The code for θ as a GPU follows it, by PyTorch, on the CPU."""

    def _computes_on_host(self):
        return False


@pytest.mark.parametrize("rule", ["original", "biased", "scalable"])
@pytest.mark.parametrize("scheme", ["smooth", "left"])
def test_numpy_and_pytorch_follow_the_same_code(rule, scheme):
    runs = []
    for kind in (CSGHMC, OnTheDevice):
        model = network()
        settings = dict(rule=rule, scheme=scheme, weight_decay=1e-3, seed=0)
        partition = cm.Partition(low=2.0, width=1.0, bins=20)
        optimiser = kind(model.parameters(), 0.02, data_size=40, partition=partition, **settings)
        parameters = train(model, optimiser, 120)
        runs.append((parameters, optimiser.theta, optimiser.log_weight, optimiser.energy, optimiser.bin))
    for ours, theirs in zip(*runs, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4, check_dtype=False)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_step_does_not_wait_for_the_device(kind, monkeypatch):
    x = torch.nn.Parameter(torch.ones(6, dtype=kind))
    optimiser = OnTheDevice([x], lr=0.001, data_size=20, partition=PARTITION, weight_decay=0.01, seed=0)

    def waits(*given):
        raise AssertionError("waits for the device")

    for _ in range(3):  # the first step makes the buffers
        loss = x.float().square().mean()
        loss.backward()
        optimiser.step(loss)
        for name in ("item", "tolist", "numpy", "__bool__", "__float__", "__int__"):
            monkeypatch.setattr(torch.Tensor, name, waits)
    monkeypatch.undo()
    assert bool(torch.isfinite(x).all())


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_low_precision_is_followed_on_a_device_too(decay):
    runs = []
    for kind in (CSGHMC, OnTheDevice):
        x = torch.nn.Parameter(torch.full((6,), 3.0, dtype=torch.bfloat16))
        optimiser = kind([x], lr=0.001, data_size=20, partition=PARTITION, weight_decay=decay, seed=0)
        for _ in range(20):
            optimiser.zero_grad()
            loss = x.float().square().mean()
            loss.backward()
            optimiser.step(loss)
        runs.append((optimiser.state[x]["position"], optimiser.energy))
        assert torch.equal(runs[-1][0].bfloat16(), x.detach())
    for ours, theirs in zip(*runs, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_a_loss_that_is_not_a_number_is_found_on_a_device_too():
    model = network()
    optimiser = OnTheDevice(model.parameters(), 0.02, data_size=40, partition=PARTITION, seed=0)
    train(model, optimiser, 2)
    optimiser.step(torch.tensor(math.nan))
    with pytest.raises(ValueError, match="a loss of the last steps=nan is not possible"):
        optimiser.state_dict()


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_no_device_of_jax_is_touched():
    """JAX would take most of a GPU's memory for itself; with a platform that does not exist, it cannot start at all."""
    run_python(
        """
        import torch, contourmc as cm
        from contourmc.torch import CSGHMC, Ensemble
        model = torch.nn.Linear(2, 1)
        opt = CSGHMC(model.parameters(), 0.1, data_size=9, partition=cm.Partition(low=1.0, width=1.0, bins=9),
                     temperature=cm.CyclicCosine(1.0, 100))
        ensemble = Ensemble(model)
        for _ in range(101):
            loss = model(torch.ones(3, 2)).square().mean()
            loss.backward()
            ensemble.add(opt, loss)
            opt.step(loss)
        ensemble.predict(torch.ones(1, 2)), opt.theta, opt.state_dict(), ensemble.effective_models
        """,
        JAX_PLATFORMS="nonexistent",
    )
