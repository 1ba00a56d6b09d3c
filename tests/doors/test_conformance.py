"""Every door to a training loop makes the steps of the engine, given the same noise."""

import jax
import numpy as np
import optax
import pytest
from tests.doors.scripted import (
    CASES,
    NOISE,
    SIZE,
    START,
    STEPS,
    Path,
    assert_same,
    energy,
    engine_path,
    kernel_of,
    unscripted,
)

import contourmc.optax as samplers
from contourmc._core import operations
from contourmc.kernels.flattened import FlattenedKernel

pytestmark = pytest.mark.usefixtures("double_precision")


def optax_path(kernel: FlattenedKernel) -> Path:
    """A training loop on the mean loss U/N."""
    tx = samplers.sampler(kernel, data_size=SIZE)

    def step(carry, _):
        x, state = carry
        loss, gradient = jax.value_and_grad(lambda x: energy(x) / SIZE)(x)
        updates, state = tx.update(gradient, state, x, value=loss)
        return (optax.apply_updates(x, updates), state), (x, state.info.log_weight)

    (_, state), (positions, log_weights) = jax.lax.scan(step, (START, tx.init(START)), length=STEPS)
    return Path(*map(np.asarray, (positions, log_weights, jax.nn.softmax(state.kernel.theta.levels))))


def torch_path(kernel: FlattenedKernel) -> Path:
    """The same loop in PyTorch."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from contourmc.torch import Sampler

    rows = iter(torch.from_numpy(NOISE))

    class Given(Sampler):
        def draw_noise(self, buffers):
            buffers[0][:3] = next(rows)

    plain = unscripted(kernel)
    x = torch.nn.Parameter(torch.from_numpy(START.copy()))
    optimiser = Given([x], lr=plain.dynamics.step_size * SIZE, kernel=plain, data_size=SIZE)
    centre, shares = torch.tensor([[2.0, 0.0, 0.0], [0.4, 0.6, 0.0]], dtype=torch.float64)
    logs = torch.log(shares[:2])
    positions, log_weights = [], []
    for _ in range(STEPS):
        optimiser.zero_grad()
        squares = torch.stack([((x + centre) ** 2).sum(), ((x - centre) ** 2).sum()])
        loss = -torch.logsumexp(logs - squares / 2, 0) / SIZE
        loss.backward()
        positions.append(x.detach().numpy().copy())
        optimiser.step(loss)
        log_weights.append(float(optimiser.log_weight))
    return Path(np.array(positions), np.array(log_weights), optimiser.theta.numpy())


DOORS = {"optax": optax_path, "torch": torch_path}


@pytest.mark.parametrize(("dynamics", "setting"), CASES)
@pytest.mark.parametrize("door", DOORS)
def test_same_path(door, dynamics, setting):
    kernel = kernel_of(dynamics, setting)
    assert_same(DOORS[door](kernel), engine_path(kernel))


def test_one_sign_in_optaxs_door_makes_another_path(monkeypatch):
    kernel = kernel_of("csgld", "smooth")
    reference, increment = engine_path(kernel), FlattenedKernel.increment

    def broken(*given):
        added, state, info = increment(*given)
        return -added, state, info

    monkeypatch.setattr(FlattenedKernel, "increment", broken)
    with pytest.raises(AssertionError):
        assert_same(optax_path(kernel), reference)


def test_one_sign_in_pytorchs_door_makes_another_path(monkeypatch):
    kernel = kernel_of("csgld", "smooth")
    reference = engine_path(kernel)
    monkeypatch.setitem(operations.TEMPLATES, "sub", "{0} + {1}")
    with pytest.raises((AssertionError, ValueError)):
        assert_same(torch_path(kernel), reference)
