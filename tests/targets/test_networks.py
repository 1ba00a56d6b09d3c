"""Networks with a state, and large ones; those of Flax and Equinox are among the examples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.engine import plan

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 2))
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)


def plain():
    def init(key):
        first, second = jax.random.split(key)
        return {
            "hidden": {"kernel": jax.random.normal(first, (2, 16)), "bias": jnp.zeros(16)},
            "output": {"kernel": jax.random.normal(second, (16, 2)) / 4, "bias": jnp.zeros(2)},
        }

    def apply(params, x):
        hidden, output = params["hidden"], params["output"]
        return jnp.tanh(x @ hidden["kernel"] + hidden["bias"]) @ output["kernel"] + output["bias"]

    return init, apply


def test_batch_norm_of_linen():
    nn = pytest.importorskip("flax.linen")

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = jnp.tanh(nn.BatchNorm(use_running_average=not train, momentum=0.9)(nn.Dense(16)(x)))
            return nn.Dense(2)(x)

    model = Network()
    variables = model.init(jax.random.key(0), jnp.zeros((1, 2)), train=False)

    def log_likelihood(params, state, batch):
        x, labels = batch
        variables = {"params": params, "batch_stats": state}
        logits, new = model.apply(variables, x, train=True, mutable="batch_stats")
        return jax.nn.log_softmax(logits)[jnp.arange(len(x)), labels], new["batch_stats"]

    def predict(params, state, x):
        return model.apply({"params": params, "batch_stats": state}, x, train=False)

    posterior = cm.Posterior(
        log_likelihood, cm.GaussianPrior(1.0), (X, LABELS), batch_size=50, state=variables["batch_stats"]
    )
    average = cm.ClassificationAverage(predict, X, LABELS, classes=2)
    settings = dict(init=variables["params"], steps=1000, chains=2, thin=20, average=average)
    run = cm.sample(posterior, kernel=cm.sghmc(1e-3), **settings)
    assert run.average.accuracy > 0.9
    assert run.target_states["BatchNorm_0"]["mean"].shape == (2, 45, 16)
    np.testing.assert_allclose(average.over(run).probabilities, run.average.probabilities, atol=1e-5)


def test_a_large_network_keeps_draws_alone(monkeypatch):
    """A position of more than `plan.LARGE` numbers: the same run, with means from the kept draws."""
    init, apply = plain()
    posterior = cm.Posterior(cm.CategoricalLikelihood(apply, 2), cm.GaussianPrior(1.0), (X, LABELS), batch_size=50)
    kernel = cm.csgld(1e-3, cm.Partition(low=50.0, width=10.0, bins=20))
    settings = dict(init=init, steps=400, kernel=kernel, chains=2, thin=30, burn_in=25)
    small = cm.sample(posterior, **settings)
    monkeypatch.setattr(plan, "LARGE", 10)
    large = cm.sample(posterior, **settings)
    assert large.trajectory.means is None
    assert small.trajectory.means is not None
    np.testing.assert_array_equal(large.steps, small.steps)
    np.testing.assert_allclose(large.draws["hidden"]["kernel"], small.draws["hidden"]["kernel"], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(large.energies, small.energies, rtol=1e-3)
    mean = np.einsum("cd,cdij->ij", large.weights, large.draws["output"]["kernel"])
    np.testing.assert_allclose(large.mean()["output"]["kernel"], mean, rtol=1e-5)
    assert large.variance()["output"]["kernel"].shape == (16, 2)
    assert np.isfinite(large.standard_error(by="chains")["output"]["bias"]).all()
    assert np.isfinite(large.standard_error(by="batches")["output"]["bias"]).all()
    assert "draws" in str(large.diagnose())


def test_a_module_of_nnx_as_a_start_names_its_split():
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match=r"^init='Linear' is not possible.*nnx\.split\(model\)"):
        cm.sample(lambda model: 0.0, init=model, steps=10, kernel=cm.sgld(0.1))
