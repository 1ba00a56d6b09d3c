"""Kernels whose noise is written down, so that every door can be driven with the same.

In float64: in float32 different programs round differently, by 1e-7 a step, and where the landscape pushes apart this
grows to 1e-4 within a thousand steps. A wrong sign or a forgotten factor shows in either.

The energy is that of two Gaussians in three dimensions, at different heights. Doors that take the mean loss of N
observations get U/N: N is a power of two, so that dividing and multiplying by it loses nothing.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import contourmc as cm
from contourmc.kernels.dynamics import IncrementalDynamics, LangevinInputs
from contourmc.kernels.flattened import FlattenedKernel
from contourmc.kernels.schedules import evaluate
from contourmc.kernels.sghmc import SGHMC
from contourmc.kernels.sgld import SGLD

SIZE = 256  # N
STEPS = 1000
START = np.array([1.0, -0.5, 0.2])
NOISE = np.random.default_rng(0).normal(size=(STEPS, 3))
FIXED = {
    "partition": cm.Partition(low=1.0, width=0.5, bins=24),
    "omega": cm.Polynomial(scale=1.0, power=0.6, offset=10.0),
}


def energy(x):
    """−log of 0.4·N((−2, 0, 0), I) + 0.6·N((2, 0, 0), I), but for a constant."""
    centre = jnp.array([2.0, 0.0, 0.0])
    squares = jnp.stack([jnp.sum((x + centre) ** 2), jnp.sum((x - centre) ** 2)])
    return -jax.nn.logsumexp(jnp.log(jnp.array([0.4, 0.6])) - squares / 2)


class _Scripted(IncrementalDynamics):
    """The noise of step k is row k − 1 of `noise`, and not drawn."""

    noise: Array

    def prepare(self, key: Any, position: Any, steps: Array) -> LangevinInputs:
        step_size, temperature = evaluate(self.step_size, steps), evaluate(self.temperature, steps)
        scale = jnp.sqrt(2 * self.friction * temperature * step_size)
        return LangevinInputs(scale[:, None] * jnp.asarray(self.noise)[steps - 1], step_size, temperature)


@dataclass(frozen=True, eq=False)
class ScriptedSGLD(_Scripted, SGLD, arrays=("noise",)):
    noise: Any = None


@dataclass(frozen=True, eq=False)
class ScriptedSGHMC(_Scripted, SGHMC, arrays=("noise",)):
    noise: Any = None


DYNAMICS = {
    "csgld": ScriptedSGLD(0.05, 1.0, noise=NOISE),
    "csghmc": ScriptedSGHMC(0.02, 1.0, 0.9, noise=NOISE),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "smooth": FIXED | {"zeta": 0.9},
    "left, step weights": FIXED | {"zeta": 0.75, "scheme": "left", "weights": "step"},
    "centred, scalable": FIXED | {"zeta": 3.0, "scheme": "centred", "rule": "scalable"},
    "right, biased": FIXED | {"zeta": 2.0, "scheme": "right", "rule": cm.Biased(rho=0.5)},
    "bins that follow": {"partition": cm.Following(begin=200, smoothing=5)},
}
CASES = [(dynamics, setting) for dynamics in DYNAMICS for setting in SETTINGS]


def kernel_of(dynamics: str, setting: str) -> FlattenedKernel:
    return cm.contour(DYNAMICS[dynamics], **SETTINGS[setting])


def unscripted(kernel: FlattenedKernel) -> FlattenedKernel:
    """The same kernel for a door that is given the noise itself."""
    scripted = kernel.dynamics
    assert isinstance(scripted, ScriptedSGLD | ScriptedSGHMC)
    plain = cm.sghmc(0.02) if isinstance(scripted, ScriptedSGHMC) else cm.sgld(0.05)
    assert plain.step_size == scripted.step_size
    return replace(kernel, dynamics=plain)


class Path(NamedTuple):
    """positions, log_weights: of every step.  theta: θ after the last, which sums to 1."""

    positions: np.ndarray
    log_weights: np.ndarray
    theta: np.ndarray


def engine_path(kernel: FlattenedKernel) -> Path:
    """What `cm.sample` makes of it."""
    run = cm.sample(energy, init=START, steps=STEPS, kernel=kernel, chains=1, burn_in=0, thin=1)
    assert run.theta is not None
    return Path(run.positions[0], run.log_weights[0], run.theta[0])


def assert_same(path: Path, reference: Path) -> None:
    """To 1e-5, over all of the path."""
    for found, expected in zip(path, reference, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
