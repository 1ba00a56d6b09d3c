"""A list of targets, one for each chain: the same as running each alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

RANDOM = np.random.default_rng(0)
COUNT = 3
X = RANDOM.normal(size=(COUNT, 40, 2))
Y = X @ [1.0, -2.0] + 0.5 * RANDOM.normal(size=(COUNT, 40))
PARAMS = {"slope": jnp.array([0.3, 0.1]), "bias": jnp.float32(0.2)}
PARTITION = cm.Partition(low=40.0, width=10.0, bins=20)
KERNEL = cm.csghmc(1e-4, PARTITION)


def line(params, x):
    return x @ params["slope"] + params["bias"]


LIKELIHOOD = cm.GaussianLikelihood(line, noise=0.5)
PRIOR = cm.GaussianPrior(1.0)


def posterior(x, y, **changes):
    return cm.Posterior(**(dict(log_likelihood=LIKELIHOOD, log_prior=PRIOR, data=(x, y), batch_size=10) | changes))


# The first 30 observations of each to learn from, the others to predict.
TARGETS = [posterior(x[:30], y[:30]) for x, y in zip(X, Y, strict=True)]
AVERAGES = [cm.RegressionAverage(LIKELIHOOD.predict, x[30:], y[30:], 0.4) for x, y in zip(X, Y, strict=True)]


def run(target, **changes):
    settings = dict(init=PARAMS, steps=400, kernel=KERNEL, burn_in=40, thin=3, seed=5)
    return cm.sample(target, **(settings | changes))


@pytest.fixture(scope="module")
def together():
    return run(TARGETS, average=AVERAGES)


def test_each_chain_runs_as_if_its_target_were_the_only_one(together):
    assert together.chains == COUNT
    assert together.settings["target"]["data"] == ["float32[30,2]", "float32[30]"]  # of the first
    for i in range(COUNT):
        alone = run(TARGETS[i], average=AVERAGES[i], chains=COUNT)
        for name in ("draws", "energies", "log_weights"):
            pair = getattr(together, name), getattr(alone, name)
            jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b[i], rtol=1e-4, atol=1e-4), *pair)
        own, same = together.average[i], alone.average.chain(i)
        np.testing.assert_array_equal(own.truth, np.float32(Y[i, 30:]))
        np.testing.assert_allclose([own.rmse, own.nll], [same.rmse, same.nll], rtol=1e-3)
        assert own.effective_models == pytest.approx(same.effective_models, rel=1e-3)
        assert own.models == 120


def test_a_list_of_one(together):
    one = run(TARGETS[:1], average=AVERAGES[:1])
    np.testing.assert_allclose(one.draws["slope"][0], together.draws["slope"][0], rtol=1e-4, atol=1e-4)
    assert one.average[0].rmse == pytest.approx(together.average[0].rmse, rel=1e-3)


def test_a_state_of_the_target_is_that_of_each_chain():
    def log_likelihood(params, state, batch):
        return LIKELIHOOD(params, batch), state + 1.0

    starts = (0.0, 100.0)
    targets = [posterior(X[0], Y[0], log_likelihood=log_likelihood, state=jnp.float32(start)) for start in starts]
    result = run(targets)
    np.testing.assert_array_equal(result.target_states[:, 0], [43.0, 143.0])


def test_a_failure_names_the_chain_and_its_last_energy():
    """Data a thousand times as large in chain 1 alone: its steps are too large."""
    targets = [TARGETS[0], posterior(1000 * X[1, :30], Y[1, :30]), TARGETS[2]]
    with pytest.raises(cm.DivergenceError, match=r"^chain 1 .* at step \d+; the last finite energy") as failure:
        run(targets, kernel=cm.sgld(1e-3))
    assert failure.value.samples.chains == COUNT


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("target", "changes", "words"),
    [
        (TARGETS, dict(chains=4), r"^chains=4.*3 targets"),
        (TARGETS, dict(average=AVERAGES[:2]), r"^average=2.*3 targets"),
        (TARGETS, dict(average=AVERAGES[0]), r"^average='RegressionAverage'.*3 targets"),
        (TARGETS, dict(kernel=None), r"^kernel=None.*list of targets"),
        (TARGETS[0], dict(average=AVERAGES), r"^average=.*list of targets"),
        ([], {}, r"^target=\[\]"),
        ([*TARGETS, posterior(X[0], Y[0])], {}, r"^target\[3\]=.*same shapes"),
        ([TARGETS[0], posterior(X[1, :30], Y[1, :30], batch_size=9)], {}, r"^target\[1\]=.*like target\[0\]"),
        ([TARGETS[0], 3], {}, r"^target=3"),
        (
            TARGETS[:2],
            dict(average=[AVERAGES[0], cm.RegressionAverage(LIKELIHOOD.predict, X[1], Y[1], 0.4)]),
            r"^average\[1\]=.*same shapes",
        ),
        (
            [TARGETS[0], posterior(X[1, :30], Y[1, :30] * 1e30)],
            {},
            r"^init='a start of chain 1 with energy inf'",
        ),
    ],
)
def test_lists_that_do_not_fit_are_named(target, changes, words):
    with pytest.raises(ValueError, match=words):
        run(target, **changes)
