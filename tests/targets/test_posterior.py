"""Posteriors on mini-batches: unbiased, every observation once an epoch, the same bits however a run is cut."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import contourmc as cm
from contourmc._core.compiling import _compile
from contourmc.engine import pace

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(53, 2))
Y = X @ [1.0, -2.0] + 0.5 * RANDOM.normal(size=53)
PARAMS = {"slope": jnp.array([0.3, 0.1]), "bias": jnp.float32(0.2)}


def line(params, x):
    return x @ params["slope"] + params["bias"]


LIKELIHOOD = cm.GaussianLikelihood(line, noise=0.5)
PRIOR = cm.GaussianPrior(4.0, groups={"bias": 1.0})


def posterior(**changes):
    return cm.Posterior(**(dict(log_likelihood=LIKELIHOOD, log_prior=PRIOR, data=(X, Y), batch_size=10) | changes))


def exact_energy(params):
    """By hand, in float64."""
    mean = X @ np.asarray(params["slope"], float) + float(params["bias"])
    log_likelihood = stats.norm(mean, 0.5).logpdf(Y).sum()
    return -log_likelihood + 2 * np.sum(np.square(params["slope"], dtype=float)) + 0.5 * float(params["bias"]) ** 2


def batches(target, steps, seed=0):
    chosen, _ = target.prepare(jax.random.key(seed), PARAMS, jnp.arange(1, steps + 1))
    return np.asarray(chosen)


def test_the_energy_on_all_data_is_the_formula():
    whole = posterior(batch_size=53)
    np.testing.assert_allclose(whole.energy(PARAMS), exact_energy(PARAMS), rtol=1e-5)
    energy, gradient = whole.evaluate((None, None), PARAMS)
    np.testing.assert_allclose(energy, exact_energy(PARAMS), rtol=1e-5)
    expected = jax.grad(whole.energy)(PARAMS)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), gradient, expected)


@pytest.mark.parametrize("replace", [False, True])
def test_mini_batch_energy_and_gradient_are_unbiased(replace):
    """20,000 batches: means within 4 standard errors of the exact values, about 1% of the energy here.

    Without N/n the energy would be off by 80%, with the prior scaled too or left out by more than 5 errors.
    """
    target = posterior(replace=replace)
    inputs = target.prepare(jax.random.key(1), PARAMS, jnp.arange(1, 20_001))
    energies, gradients = jax.jit(jax.vmap(target.evaluate, (0, None)))(inputs, PARAMS)
    exact, exact_gradient = jax.value_and_grad(target.energy)(PARAMS)
    for values, truth in (
        (energies, exact),
        (gradients["bias"], exact_gradient["bias"]),
        (gradients["slope"][:, 0], exact_gradient["slope"][0]),
    ):
        values = np.asarray(values, float)
        assert abs(values.mean() - float(truth)) < 4 * values.std() / 20_000**0.5
        assert values.std() > 0


def test_the_prior_has_its_full_weight_in_every_batch():
    flat = posterior(log_prior=lambda params: jnp.float32(0.0))
    inputs = jax.tree.map(lambda leaf: leaf[0], flat.prepare(jax.random.key(0), PARAMS, jnp.arange(1, 2)))
    with_prior, without = posterior().evaluate(inputs, PARAMS)[0], flat.evaluate(inputs, PARAMS)[0]
    np.testing.assert_allclose(with_prior - without, -PRIOR(PARAMS), rtol=1e-4)


def test_an_epoch_sees_an_observation_once_and_the_next_has_another_order():
    target = posterior()
    assert target.steps_per_epoch == 5
    epochs = batches(target, 10).reshape(2, 50)
    for epoch in epochs:
        assert len(np.unique(epoch)) == 50  # 3 of 53 sit out
    assert not np.array_equal(epochs[0], epochs[1])
    assert not np.array_equal(np.sort(epochs[0]), np.sort(epochs[1]))  # other ones sit out
    assert not np.array_equal(epochs[0], batches(target, 10, seed=1).reshape(2, 50)[0])


def test_batches_are_fresh_subsets():
    """How often an observation is in the first batch of an epoch: binomial. Data in their own order would fail."""
    first = batches(posterior(), 5 * 4000)[::5]
    counts = np.bincount(first.ravel(), minlength=53)
    assert stats.chisquare(counts).pvalue > 1e-4
    # Two successive batches of an epoch share nothing, those with replacement do.
    drawn = batches(posterior(replace=True), 1000)
    assert any(len(np.unique(batch)) < 10 for batch in drawn)
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=53)).pvalue > 1e-4


def test_batches_depend_on_the_step_and_not_on_the_block():
    target, key = posterior(), jax.random.key(0)
    whole, _ = target.prepare(key, PARAMS, jnp.arange(1, 31))
    part, _ = target.prepare(key, PARAMS, jnp.arange(14, 20))
    np.testing.assert_array_equal(whole[13:19], part)


KERNEL = cm.csgld(1e-3, cm.Partition(low=60.0, width=10.0, bins=20))


def run(**changes):
    settings = dict(init=PARAMS, steps=613, kernel=KERNEL, chains=3, burn_in=13, thin=4, seed=5)
    return cm.sample(posterior(), **(settings | changes))


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_cutting_a_run_in_the_middle_of_epochs_does_not_change_a_bit(monkeypatch):
    whole = run()
    monkeypatch.setattr(pace, "SEGMENT_SECONDS", 0.0)  # a step at a time
    cut = run()
    for field in ("draws", "energies", "theta"):
        assert same(getattr(whole, field), getattr(cut, field))


def test_a_chain_does_not_depend_on_how_many_run():
    few, many = run(chains=1), run(chains=3)
    np.testing.assert_allclose(few.draws["slope"][0], many.draws["slope"][0], rtol=1e-4, atol=1e-5)
    assert not np.allclose(many.draws["slope"][0], many.draws["slope"][1])


def test_sgld_samples_the_exact_posterior():
    """Bayesian linear regression, known in closed form: means within 0.15 and deviations within 15% of it.

    Full batches; 4 chains of 20,000 steps, worth about 500 draws each. Ten times the prior would move a mean by 0.3.
    """
    design = np.column_stack([X, np.ones(53)])
    precision = design.T @ design / 0.25 + np.diag([4.0, 4.0, 1.0])
    mean, deviation = np.linalg.solve(precision, design.T @ Y / 0.25), np.sqrt(np.diag(np.linalg.inv(precision)))
    result = cm.sample(posterior(batch_size=53), init=PARAMS, steps=20_000, kernel=cm.sgld(2e-4), chains=4)
    found = np.append(result.mean()["slope"], result.mean()["bias"])
    spread = np.sqrt(np.append(result.variance()["slope"], result.variance()["bias"]))
    np.testing.assert_allclose((found - mean) / deviation, 0, atol=0.15)
    np.testing.assert_allclose(spread / deviation, 1, rtol=0.15)


def test_data_are_arguments_and_not_part_of_the_program():
    """Another data set of the same shape: no second compilation."""
    first = run(steps=20, burn_in=0)
    compiled = _compile.cache_info().misses
    other = posterior(data=(X[::-1] + 1, Y[::-1]))
    second = cm.sample(other, init=PARAMS, steps=20, kernel=KERNEL, chains=3, burn_in=0, thin=4, seed=5)
    assert _compile.cache_info().misses == compiled
    assert not same(first.draws, second.draws)
    assert first.settings["target"]["data"] == ["float32[53,2]", "float32[53]"]


def test_a_state_travels_with_the_chain_and_is_stored_with_each_draw():
    """A running count of steps and mean of the inputs, as batch norm keeps it."""

    def log_likelihood(params, state, batch):
        x, y = batch
        mean = 0.9 * state["mean"] + 0.1 * x.mean(axis=0)
        return LIKELIHOOD(params, (x - mean, y)), {"mean": mean, "count": state["count"] + 1}

    start = {"mean": jnp.zeros(2), "count": jnp.int32(0)}
    target = posterior(log_likelihood=log_likelihood, state=start)
    result = cm.sample(target, init=PARAMS, steps=60, kernel=KERNEL, chains=2, burn_in=6, thin=9)
    np.testing.assert_array_equal(result.target_states["count"], [result.steps] * 2)
    chosen = np.asarray(target.prepare(_target_key(0), PARAMS, jnp.arange(1, 61))[0])  # the batches of chain 0, by hand
    mean = np.zeros(2)
    for step in range(1, int(result.steps[-1]) + 1):
        mean = 0.9 * mean + 0.1 * X[chosen[step - 1]].mean(axis=0)
    np.testing.assert_allclose(result.target_states["mean"][0, -1], mean, rtol=1e-4, atol=1e-6)


def _target_key(chain):
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(0), chain), 2**31 + 1)


def test_a_state_goes_with_the_position_from_replica_to_replica():
    """A state that is where its model was last, and how far the model has gone in one step.

    A step is one of √(2τε) = 0.03 at most, times a number that is below 5 but once in 10⁶ times; replicas of which the
    states stayed behind would seem to have gone as far as they lie apart, which is √(2τεk) ≈ 0.5 in k = 400 steps.
    """

    def log_likelihood(x, state, batch):
        return 0.0 * x * batch, {"last": x, "farthest": jnp.maximum(state["farthest"], jnp.abs(x - state["last"]))}

    start = {"last": jnp.float32(0.0), "farthest": jnp.float32(0.0)}
    target = cm.Posterior(log_likelihood, lambda x: 0.0 * x, jnp.ones(10), batch_size=2, state=start)
    kernel = cm.replica_exchange(cm.sgld(1e-4, 1.0), cm.sgld(1e-4, 2.0), cm.sgld(1e-4, 4.0))
    with cm.start(target, init=0.0, steps=400, kernel=kernel, chains=2, burn_in=0, thin=1) as run:
        run.advance(399)  # the last of these was a swap of all, as every step on a flat landscape
        assert np.all(np.abs(run.positions - run.target_states["last"]) < 0.15)
        run.advance(1)
        samples = run.samples()
        assert np.all(np.asarray(run.state.chains.state.swaps) == 400)
    np.testing.assert_array_equal(samples.target_states["last"], samples.positions)
    assert samples.target_states["farthest"].max() < 0.15


def test_a_batch_is_augmented_with_a_new_key_each_step():
    def jitter(key, batch):
        x, y = batch
        return x + jax.random.normal(key, x.shape), y

    target = posterior(batch_size=53, augment=jitter)
    inputs = target.prepare(jax.random.key(0), PARAMS, jnp.arange(1, 4))
    energies = jax.vmap(target.evaluate, (0, None))(inputs, PARAMS)[0]
    assert len(np.unique(energies)) == 3
    result = cm.sample(target, init=PARAMS, steps=30, kernel=KERNEL, chains=2)
    assert np.isfinite(result.energies).all()


def with_nan():
    x = X.copy()
    x[7, 1] = np.nan
    return x, Y


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(data=(X, Y[:-1])), r"^data\[1\]='52 entries'.*data\[0\] has 53"),
        (dict(data=with_nan()), r"^data\[0\]='1 numbers that are not finite'"),
        (dict(data={"x": X, "y": 3.0}), r"^data\['y'\]=3.0"),
        (dict(data=()), r"^data="),
        (dict(data=(X[:0], Y[:0])), r"^data\[0\].*empty"),
        (dict(data=(X, np.array(["a"] * 53))), r"^data\[1\].*give numbers"),
        (dict(batch_size=54), r"^batch_size=54.*only 53"),
        (dict(batch_size=0), r"^batch_size=0"),
        (dict(log_likelihood=3), r"^log_likelihood=3"),
        (dict(log_prior=None), r"^log_prior=None"),
    ],
)
def test_bad_data_are_named(changes, words):
    with pytest.raises(ValueError, match=words):
        posterior(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(log_likelihood=lambda p, b: jnp.sum(LIKELIHOOD(p, b))), r"^log_likelihood=.*shape \(10,\)"),
        (dict(log_prior=lambda p: p["slope"]), r"^log_prior=.*one float"),
        (dict(log_likelihood=lambda p, s, b: LIKELIHOOD(p, b), state=jnp.zeros(2)), r"^log_likelihood=.*new state"),
        (
            dict(log_likelihood=lambda p, s, b: (LIKELIHOOD(p, b), s[:1]), state=jnp.zeros(2)),
            r"^log_likelihood=.*shapes and types",
        ),
        (dict(log_likelihood=cm.GaussianLikelihood(lambda p, x: x)), r"^apply=.*one mean"),
        (dict(log_prior=cm.GaussianPrior(1.0, {"weight": 2.0})), r"^groups='weight'.*slope"),
    ],
)
def test_bad_functions_are_named_before_the_run(changes, words):
    with pytest.raises(ValueError, match=words):
        cm.sample(posterior(**changes), init=PARAMS, steps=10, kernel=KERNEL)
