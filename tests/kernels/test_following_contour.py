"""Contour kernels whose bins follow the energies: what they sample, and gradients in two terms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core.gradient_terms import GradientTerms, multiplied, whole

DIMENSIONS = 10


def energy(x):
    return 0.5 * jnp.sum(x * x)


def flattened_run(bound, seed=0):
    kernel = cm.csgld(0.1, cm.Following(bound=bound, begin=2000, smoothing=1))
    return cm.sample(
        energy, init=jnp.zeros(DIMENSIONS), steps=60_000, kernel=kernel, chains=8, seed=seed, burn_in=10_000, thin=10
    )


@pytest.fixture(scope="module")
def run():
    return flattened_run(0.9)


def test_energies_are_spread_and_weights_lead_back(run):
    """U of a Gaussian in 10 dimensions has mean 5 and variance 5; SGLD at ε = 0.1 is 5% too hot, so 5.26 and 5.5.

    The chains see at least a fifth more variance than that. Weighted, the mean is that of SGLD: the eight chains' means
    vary by about 0.06 each, so that 0.15 is six standard errors. Without weights it is off by more.
    """
    weighted = np.sum(run.weights * run.energies) / np.sum(run.weights)
    assert np.var(run.energies) > 1.2 * 5.5
    assert weighted == pytest.approx(5.26, abs=0.15)
    assert abs(run.energies.mean() - 5.26) > 0.15


def test_multipliers_stay_within_the_bound_and_are_used(run):
    assert np.all(np.abs(run.multipliers - 1) <= 0.9 + 1e-5)
    assert np.ptp(run.multipliers) > 0.5


def test_what_was_found_is_told(run):
    found = run.settings["following"]
    assert found["mean_energy"] == pytest.approx(run.energies.mean(), rel=0.1)
    assert found["multipliers_within"] == pytest.approx([0.1, 1.9])
    assert found["zeta"] > 0
    assert "multipliers" in str(run.diagnose())


def test_before_it_begins_the_dynamics_are_those_without_flattening():
    kernel = cm.csghmc(0.05, cm.Following(begin=500))
    flat, plain = (
        cm.sample(energy, init=jnp.ones(3), steps=500, kernel=one, chains=2, burn_in=0, thin=1)
        for one in (kernel, cm.sghmc(0.05))
    )
    np.testing.assert_array_equal(flat["x"] if isinstance(flat.draws, dict) else flat.draws, plain.draws)
    assert np.all(flat.multipliers == 1)


def test_chains_that_share_theta_have_one():
    kernel = cm.csghmc(0.05, cm.Following(begin=100), shared=True)
    run = cm.sample(energy, init=jnp.ones(3), steps=2000, kernel=kernel, chains=4)
    np.testing.assert_allclose(run.theta, np.broadcast_to(run.theta[:1], run.theta.shape), rtol=1e-5)


def test_a_run_cut_into_pieces_is_the_same():
    kernel = cm.csghmc(0.05, cm.Following(begin=100))
    whole_run = cm.sample(energy, init=jnp.ones(3), steps=1500, kernel=kernel, chains=2)
    with cm.start(energy, init=jnp.ones(3), steps=1500, kernel=kernel, chains=2) as run:
        for steps in (7, 400, 1093):
            run.advance(steps)
        pieces = run.samples()
    np.testing.assert_array_equal(whole_run.draws, pieces.draws)
    np.testing.assert_array_equal(whole_run.log_weights, pieces.log_weights)


def test_auto_stands_for_the_usual_settings():
    assert cm.csghmc(0.1, "auto") == cm.csghmc(0.1, cm.Following())


@pytest.mark.parametrize(
    "settings", [dict(zeta=2.0), dict(rule="scalable"), dict(omega=None), dict(theta=[0.5, 0.5]), dict(scheme="left")]
)
def test_settings_that_the_bins_choose_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))}=.*leave it out"):
        cm.csghmc(0.1, "auto", **settings)


def test_a_dynamics_with_a_metropolis_test_is_refused():
    with pytest.raises(ValueError, match="dynamics="):
        cm.contour(cm.adjusted(0.1), "auto")


def test_the_multiplier_acts_on_one_term_of_the_gradient():
    """The increment of SGLD at temperature 0 is −ε·(m·∇f + ∇(U − f)): here f = x₀² + x₁², and U − f = 3x₀."""
    terms = GradientTerms(jnp.array([2.0, 4.0]), jnp.array([3.0, 0.0]))
    np.testing.assert_allclose(multiplied(terms, jnp.asarray(0.5)), [4.0, 2.0])
    np.testing.assert_allclose(whole(terms), [5.0, 4.0])
    np.testing.assert_allclose(multiplied(whole(terms), jnp.asarray(0.5)), [2.5, 2.0])
    kernel = cm.csgld(0.1, cm.Partition(0.0, 1.0, 4), temperature=1.0, zeta=1.0, theta=[0.1, 0.2, 0.5, 0.2])
    state = kernel.init(jnp.array([1.0, 1.0]))
    inputs = jax.tree.map(lambda leaf: leaf[0], kernel.prepare(jax.random.key(0), state.position, jnp.array([1])))
    inputs = inputs._replace(dynamics=inputs.dynamics._replace(noise=jnp.zeros(2)))
    _, info = kernel.move(inputs, state, jnp.asarray(1.5), terms)
    moved, _ = kernel.move(inputs, state, jnp.asarray(1.5), terms)
    assert float(info.multiplier) != 1.0
    np.testing.assert_allclose(
        moved.position - state.position, -0.1 * multiplied(terms, info.multiplier), rtol=1e-5
    )  # fmt: skip
