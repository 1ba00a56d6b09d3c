"""Replica exchange: the swap as in the paper, and the right answer where plain SGLD is stuck."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.problems import GaussianMixture

ENERGY = GaussianMixture().energy


@pytest.mark.parametrize("variance", [0.0, 0.7])
@pytest.mark.parametrize("log_uniform", [-3.0, -0.5, -0.01])
def test_positions_swap_when_the_corrected_rate_says_so(variance, log_uniform):
    """At a step size of next to nothing the replicas only swap: at τ = 1 and 4, δ = 3/4."""
    kernel = cm.replica_exchange(cm.sgld(1e-12, 1.0), cm.sgld(1e-12, 4.0), energy_variance=variance)
    state = kernel.init(jnp.float32(0.0))
    replicas = tuple(
        replica._replace(position=jnp.float32(x)) for replica, x in zip(state.replicas, (1.0, 2.0), strict=True)
    )
    inputs = kernel.prepare(jax.random.key(0), (jnp.float32(1.0), jnp.float32(2.0)), jnp.arange(1, 2))
    inputs = jax.tree.map(lambda leaf: leaf[0], inputs)._replace(log_uniform=jnp.array([log_uniform]))
    energies, gradients = (jnp.float32(3.0), jnp.float32(3.5)), (jnp.float32(0.0), jnp.float32(0.0))
    after, info = kernel.move(inputs, state._replace(replicas=replicas), energies, gradients)
    swapped = log_uniform < 0.75 * (3.0 - 3.5 - 0.75 * variance)
    np.testing.assert_allclose(after.position, (2.0, 1.0) if swapped else (1.0, 2.0), atol=1e-4)
    assert int(after.swaps[0]) == swapped
    assert info.energy == 3.0


def test_velocities_stay_with_their_temperature():
    kernel = cm.replica_exchange(cm.sghmc(1e-12, 1.0), cm.sghmc(1e-12, 4.0))
    state = kernel.init(jnp.float32(0.0))
    cold, hot = state.replicas
    state = state._replace(replicas=(cold._replace(velocity=jnp.float32(1.0)), hot))
    inputs = kernel.prepare(jax.random.key(0), state.position, jnp.arange(1, 2))
    energies, gradients = (jnp.float32(9.0), jnp.float32(0.0)), (jnp.float32(0.0), jnp.float32(0.0))
    after, _ = kernel.move(jax.tree.map(lambda leaf: leaf[0], inputs), state, energies, gradients)
    assert int(after.swaps[0]) == 1
    assert after.replicas[0].velocity == pytest.approx(0.9, abs=1e-4)


@pytest.mark.parametrize("dynamics", [cm.sgld, cm.sghmc])
def test_both_modes_of_the_mixture(dynamics):
    """P(x < 0) of one chain of 10⁵ steps has a standard error of about 0.02; the mean of 8, five of them."""
    kernel = cm.replica_exchange(*(dynamics(0.1, temperature) for temperature in (1.0, 3.0, 10.0)))
    run = cm.sample(ENERGY, init=-6.0, steps=100_000, kernel=kernel, chains=8)
    assert run.expectation(lambda x: x < 0) == pytest.approx(0.4, abs=0.035)
    assert run.draws.shape == run.energies.shape
    assert kernel.evaluations == 3


def test_the_diagnosis_tells_how_often_replicas_changed_places():
    """A correction by a variance of 10⁶ asks for a difference of energies that none has."""

    def run(**settings):
        kernel = cm.replica_exchange(cm.sgld(0.1, 1.0), cm.sgld(0.1, 3.0), cm.sgld(0.1, 10.0), **settings)
        return cm.sample(ENERGY, init=-6.0, steps=20_000, kernel=kernel, chains=8)

    often, never = run(), run(energy_variance=1e6)
    assert len(often.settings["swaps"]) == 2
    assert min(often.settings["swaps"]) > 100
    assert "note: replicas changed places" in str(often.diagnose())
    assert never.settings["swaps"] == [0.0, 0.0]
    assert "warning: replicas changed places 0.0, 0.0 times in a chain" in str(never.diagnose())


def test_the_correction_removes_the_bias_of_noisy_energies():
    """Noise of variance 4 on the energies: uncorrected swaps push hot positions into the cold chain."""

    def share(variance: float) -> float:
        kernel = cm.replica_exchange(cm.sgld(0.1, 1.0), cm.sgld(0.1, 6.0), energy_variance=variance)
        target = cm.NoisyEnergy(lambda x: 0.5 * x**2, energy_variance=4.0)
        run = cm.sample(target, init=0.0, steps=100_000, kernel=kernel, chains=8)
        return float(run.variance())

    # SGLD's own variance is 1/(1 − 0.05); the standard error is below 0.01
    assert share(4.0) == pytest.approx(1 / 0.95, abs=0.06)
    assert share(0.0) > 1.2


def test_bad_input():
    with pytest.raises(ValueError, match="dynamics"):
        cm.replica_exchange(cm.sgld(0.1))
    with pytest.raises(ValueError, match="energy_variance"):
        cm.replica_exchange(cm.sgld(0.1), cm.sgld(0.1, 2.0), energy_variance=-1.0)
