"""Energies with a snapshot as control variate: exact at it, unbiased elsewhere, with little noise near it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(53, 2))
Y = X @ [1.0, -2.0] + 0.5 * RANDOM.normal(size=53)
HERE = {"slope": jnp.array([0.3, 0.1]), "bias": jnp.float32(0.2)}
NEAR = {"slope": jnp.array([0.31, 0.1]), "bias": jnp.float32(0.21)}
LIKELIHOOD = cm.GaussianLikelihood(lambda params, x: x @ params["slope"] + params["bias"], noise=0.5)
KERNEL = cm.csgld(2e-4, cm.Partition(low=60.0, width=10.0, bins=20))


def posterior(**changes):
    settings = dict(log_likelihood=LIKELIHOOD, log_prior=cm.GaussianPrior(1.0), data=(X, Y), batch_size=10)
    return cm.Posterior(**(settings | dict(snapshot_epochs=2) | changes))


def run(target, **changes):
    settings = dict(init=HERE, steps=45, chains=2, thin=1, burn_in=0, seed=3)
    return cm.sample(target, **(settings | dict(kernel=KERNEL) | changes))


def test_unbiased_with_little_noise_near_the_snapshot():
    """8,000 batches at a distance of 0.014 from the snapshot: the mean within 4 standard errors of the exact energy.

    The differences U_i(x) − U_i(s) are about a hundredth of U_i, and the variance 1/9,000 of that without; 1/1,000
    is asked for.
    A correction without N/n, or without the total, would be off by more than 50 errors.
    """
    plain, reduced = posterior(snapshot_epochs=None), posterior()
    steps, key = jnp.arange(2, 8002), jax.random.key(0)

    @jax.jit
    def at_snapshot():
        inputs = jax.tree.map(lambda leaf: leaf[0], reduced.prepare(key, HERE, jnp.arange(1, 2)))
        return *reduced.evaluate_from(inputs, HERE, reduced.init()), reduced.energy(HERE), cm.GaussianPrior(1.0)(HERE)

    @jax.jit
    def near(state):
        batches, renew = reduced.prepare(key, NEAR, steps)
        evaluate = jax.vmap(reduced.evaluate_from, (0, None, None))
        noisy = jax.vmap(plain.evaluate, (0, None))(plain.prepare(key, NEAR, steps), NEAR)
        return evaluate((batches, jnp.zeros_like(renew)), NEAR, state), noisy, renew, plain.energy(NEAR)

    energy, _, state, exact, log_prior = at_snapshot()
    np.testing.assert_allclose(energy, exact, rtol=1e-5)
    np.testing.assert_allclose(state.snapshot.total, exact + log_prior, rtol=1e-5)
    (energies, gradients, _), (noisy, expected), renew, exact = near(state)
    assert int(renew.sum()) == 800  # steps 11, 21, …
    energies, noisy = np.asarray(energies, float), np.asarray(noisy, float)
    assert energies.var() < noisy.var() / 1000
    assert abs(energies.mean() - float(exact)) < 4 * energies.std() / 8000**0.5
    np.testing.assert_allclose(gradients["slope"], expected["slope"], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("chains", "resident"), [(1, False), (2, True)])
def test_a_run_renews_its_snapshot_every_two_epochs(chains, resident):
    """There, and only there, its energies are the exact ones."""
    result = run(posterior(resident=resident), chains=chains)
    exact = np.asarray(jax.jit(jax.vmap(jax.vmap(posterior().energy)))(result.draws))
    error = np.abs(result.energies - exact) / exact
    new = np.isin(result.steps, [1, 11, 21, 31, 41])
    assert error[:, new].max() < 1e-5
    assert error[:, ~new].min() > 1e-5
    assert result.target_states is None


def test_the_model_state_is_stored_with_a_draw_and_the_snapshot_is_not():
    def log_likelihood(params, state, batch):
        return LIKELIHOOD(params, batch), {"count": state["count"] + 1}

    target = posterior(log_likelihood=log_likelihood, state={"count": jnp.int32(0)})

    def predict(params, state, x):
        return jnp.full(len(x), state["count"], jnp.float32), jnp.ones(len(x))

    large = HERE | {"more": jnp.zeros(2**15)}  # a vector within a run
    average = cm.RegressionAverage(predict, X, Y)
    result = run(target, init=large, average=average, chains=1, kernel=cm.sgld(1e-5))
    np.testing.assert_array_equal(result.target_states["count"], [np.arange(1, 46)])
    np.testing.assert_allclose(result.average.mean, 23, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [(dict(snapshot_epochs=0), "^snapshot_epochs=0.*None"), (dict(batch_size=53), "^snapshot_epochs=2.*no noise")],
)
def test_bad_input_is_named(changes, words):
    with pytest.raises(ValueError, match=words):
        posterior(**changes)
