"""Your own Bayesian neural network: the posterior on mini-batches, and its average on a test set."""

import jax
import jax.numpy as jnp
import numpy as np

import contourmc as cm


def init(key):
    first, second = jax.random.split(key)
    return {
        "hidden": {"kernel": jax.random.normal(first, (1, 50)), "bias": jnp.zeros(50)},
        "output": {"kernel": jax.random.normal(second, (50, 1)) / 7, "bias": jnp.zeros(1)},
    }


def network(params, x):
    hidden = jnp.tanh(x @ params["hidden"]["kernel"] + params["hidden"]["bias"])
    return hidden @ params["output"]["kernel"] + params["output"]["bias"]


random = np.random.default_rng(0)
x = random.uniform(-3, 3, size=(500, 1))
y = np.sin(2 * x) + 0.1 * random.normal(size=x.shape)
train, test = slice(0, 400), slice(400, 500)

likelihood = cm.GaussianLikelihood(network, noise=0.1)
posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), data=(x[train], y[train]), batch_size=50)
average = cm.RegressionAverage(likelihood.predict, x[test], y[test, 0])

run = cm.sample(posterior, init=init, steps=10_000, learning_rate=5e-4, temperature=1.0, chains=4, average=average)
print(run.average)
print("90% intervals hold", run.average.coverage(0.9), "of the test set")
