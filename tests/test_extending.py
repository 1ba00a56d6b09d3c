"""A dynamics, a learning rule and a prediction of one's own, each defined in one place and outside of the package."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.flattening.rules import Rule
from contourmc.kernels.dynamics import IncrementalDynamics, add_noise
from contourmc.kernels.sgld import SGLDState
from contourmc.predictions.model_average import ModelAverage, updated_mean
from contourmc.predictions.prediction import Prediction

MODES = jnp.array([-2.0, 2.0])
PARTITION = cm.Partition(low=0.5, width=0.4, bins=12)


def energy(x):
    """Half of N(−2, 0.7²), half of N(2, 0.7²)."""
    return -jax.nn.logsumexp(-((x - MODES) ** 2) / 0.98)


@dataclass(frozen=True)
class SignedLangevin(IncrementalDynamics):
    """x_{k+1} = x_k − ε tanh(∇U) + √(2τε) w_k: a drift that never exceeds the step size."""

    def init(self, position):
        return SGLDState(position, jnp.zeros((), jnp.int32))

    def displace(self, inputs, state, gradient):
        drift = jax.tree.map(lambda g: -inputs.step_size * jnp.tanh(g), gradient)
        return add_noise(drift, inputs.noise), state._replace(steps=state.steps + 1)


@dataclass(frozen=True)
class Counting(Rule):
    """w = 1: θ(i) becomes the share of visits to bin i, and so flattens nothing by itself."""

    def gain(self, theta, index, log_weight):
        return jnp.zeros_like(log_weight)

    def visit_power(self, zeta):
        return 1.0


def test_a_dynamics_of_ones_own_runs_plain_flattened_and_in_replicas():
    dynamics = SignedLangevin(0.05)
    for kernel in (dynamics, cm.contour(dynamics, PARTITION), cm.replica_exchange(dynamics, SignedLangevin(0.05, 3.0))):
        run = cm.sample(energy, init=1.0, steps=2000, kernel=kernel, chains=2)
        assert np.isfinite(run.draws).all()
        assert np.abs(np.diff(run.draws)).max() > 0
        assert run.settings["kernel"]["kind"] == type(kernel).__name__


@pytest.mark.parametrize("shared", [False, True])
def test_a_rule_of_ones_own_is_learnt_by(shared):
    """θ ends as the share of visits: 20,000 steps, with ω_k = 1/k but for a start, agree to 0.02."""
    omega = cm.Polynomial(1.0, 1.0, offset=1.0)
    kernel = cm.csgld(0.1, PARTITION, zeta=0.0, omega=omega, rule=Counting(), shared=shared)
    run = cm.sample(energy, init=1.0, steps=20_000, kernel=kernel, chains=2, burn_in=0)
    visits = run.trajectory.visits[:, -1]
    expected = visits.sum(axis=0, keepdims=True) if shared else visits
    np.testing.assert_allclose(
        run.theta, np.broadcast_to(expected / expected.sum(axis=1, keepdims=True), run.theta.shape), atol=0.02
    )
    assert run.flattening.visit_power == 1.0


@dataclass(frozen=True)
class CountPrediction(Prediction):
    """The mean rate of counts at every input."""

    @property
    def rate(self):
        return self.over_chains(self.means["rate"])


@dataclass(frozen=True, eq=False)
class PoissonAverage(ModelAverage):
    """The average over draws of the rate of counts that `predict` gives."""

    result = CountPrediction

    def no_means(self):
        return {"rate": jnp.zeros(self.targets.shape)}

    def add_means(self, means, share, predicted):
        nll = jnp.mean(predicted - self.targets * jnp.log(predicted))
        return {"rate": updated_mean(means["rate"], predicted, share)}, jnp.mean(jnp.abs(predicted - self.targets)), nll


def test_a_prediction_of_ones_own_is_averaged_saved_and_loaded(tmp_path):
    average = PoissonAverage(lambda x, inputs: jnp.exp(0.1 * x * inputs), jnp.arange(3.0), jnp.array([1, 1, 2]))
    run = cm.sample(energy, init=1.0, steps=1000, kernel=cm.sgld(0.1), chains=2, average=average, thin=10)
    expected = np.mean(np.exp(0.1 * run.draws[..., None] * np.arange(3.0)), axis=(0, 1))
    np.testing.assert_allclose(run.average.rate, expected, rtol=1e-4)
    back = cm.Samples.load(run.save(tmp_path / "run.nc")).average
    assert type(back) is CountPrediction
    np.testing.assert_array_equal(back.rate, run.average.rate)
