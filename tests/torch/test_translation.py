"""The optimisers of PyTorch follow the kernels of JAX."""

import contextlib
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
from tests.test_extending import Counting, SignedLangevin
from tests.torch import reference_path as conformance
from tests.torch.reference_path import KERNELS, PARTITION, SETTINGS, STEP_SIZE, Path, difference, reference

import contourmc as cm
from contourmc._core import operations
from contourmc._core.straight_line import UnknownOperationError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

DATA = 50  # N: the loss is the energy over N, and the learning rate N times the step size


def follow(kernel, noise, decay=0.0):
    """The path of the optimiser with this noise.

    decay: how much of the energy comes by weight decay, as λ/2·‖x‖² a datum, and not by the loss.
    """
    from contourmc.torch import Sampler

    given, kind = iter(torch.from_numpy(noise)), torch.from_numpy(noise).dtype
    centres = torch.tensor(conformance.CENTRES, dtype=kind)
    log_masses = torch.log(torch.tensor(conformance.MASSES, dtype=kind))

    class Injected(Sampler):
        def draw_noise(self, buffers):
            buffers[0][:3] = next(given)

    x = torch.nn.Parameter(torch.tensor(conformance.START, dtype=kind))
    optimiser = Injected([x], lr=STEP_SIZE * DATA, kernel=kernel, data_size=DATA, weight_decay=decay)
    rows = []
    for _ in range(len(noise)):
        optimiser.zero_grad()
        squares = ((x - centres) ** 2).sum(1)
        loss = -torch.logsumexp(-squares / conformance.TWICE_VARIANCE + log_masses, 0) / DATA
        loss = loss - decay / 2 * x.square().sum()
        loss.backward()
        optimiser.step(loss)
        info = (float(optimiser.log_weight), float(optimiser.multiplier), int(optimiser.bin))
        rows.append((x.detach().numpy().copy(), *info))
    theta = None if optimiser.theta is None else optimiser.theta.numpy()
    return Path(None, *map(np.array, zip(*rows, strict=True)), theta)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_the_path_is_that_of_jax(name, settings):
    """1,000 steps with the same noise, in 64 bits: 1e-8 leaves room for rounding errors of 1e-16 to grow."""
    path = reference(KERNELS[name](**settings))
    if settings.get("temperature") != 0.0:
        assert np.abs(np.diff(path.positions, axis=0)).max() > 0.01
    assert difference(path, follow(KERNELS[name](**settings), path.noise)) < 1e-8


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("name", KERNELS)
def test_weight_decay_is_a_part_of_the_energy(name):
    """To 1e-5: ‖x‖² is summed up in 32 bits."""
    path = reference(KERNELS[name](), steps=300)
    assert difference(path, follow(KERNELS[name](), path.noise, decay=0.01)) < 1e-5


@pytest.mark.parametrize("name", ["csgld", "csghmc"])
@pytest.mark.parametrize("settings", [dict(), dict(rule="scalable"), dict(rule="biased"), dict(weights="step")])
def test_the_path_is_that_of_jax_in_single_precision(name, settings):
    """1,000 steps with the same noise, to 1e-5 of positions and log weights up to 10."""
    kernel = KERNELS[name](omega=cm.kernels.contour.DEFAULT_OMEGA, **settings)
    path = reference(kernel)
    assert path.bins.max() >= 6
    assert np.ptp(path.multipliers) > 0.3
    assert difference(path, follow(kernel, path.noise)) < 1e-5


BROKEN = {
    "sub": "{0} + {1}",
    "neg": "+{0}",
    "exp": "exp(-{0})",
    "max": "minimum({0}, {1})",
    "log": "-log({0})",
    "select_n": "choose({0}, {2}, {1})",
}


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("operation", BROKEN)
def test_one_wrong_sign_is_noticed(operation, monkeypatch):
    kernel = KERNELS["csgld"]()
    path = reference(kernel)
    monkeypatch.setitem(operations.TEMPLATES, operation, BROKEN[operation])
    with contextlib.suppress(ValueError):  # if the path ends in NaN
        assert difference(path, follow(kernel, path.noise)) > 1e-2


@dataclass(frozen=True)
class Clipped(SignedLangevin):
    """A step of a length that does not depend on the gradient's: it mixes the parameters."""

    def displace(self, inputs, state, gradient):
        return -inputs.step_size * gradient / jnp.sqrt(jnp.sum(gradient**2)), state


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize(
    "kernel",
    [
        SignedLangevin(STEP_SIZE),
        cm.contour(SignedLangevin(STEP_SIZE), PARTITION),
        cm.csgld(STEP_SIZE, PARTITION, rule=Counting()),
    ],
    ids=["dynamics", "dynamics under a contour", "rule"],
)
def test_a_dynamics_and_a_rule_of_ones_own_are_translated(kernel):
    path = reference(kernel, steps=200)
    assert difference(path, follow(kernel, path.noise)) < 1e-8


def test_an_operation_without_a_translation_is_named():
    with pytest.raises(UnknownOperationError, match=r"'reduce_sum'.*mixes the parameters"):
        follow(Clipped(STEP_SIZE), np.zeros((1, 3), np.float32))
