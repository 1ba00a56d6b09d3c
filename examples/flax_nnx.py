"""A network in Flax NNX: split into its graph, which is fixed, and its parameters, which are the position."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import contourmc as cm

random = np.random.default_rng(0)
x = random.normal(size=(300, 2))
labels = (x[:, 0] * x[:, 1] > 0).astype(int)  # "the same sign", which no linear model can tell


def make(key):
    rngs = nnx.Rngs(key)
    return nnx.Sequential(nnx.Linear(2, 16, rngs=rngs), jnp.tanh, nnx.Linear(16, 2, rngs=rngs))


graph, _ = nnx.split(make(jax.random.key(0)))


def init(key):
    return nnx.split(make(key))[1]


def apply(params, x):
    return nnx.merge(graph, params)(x)


likelihood = cm.CategoricalLikelihood(apply, classes=2)
posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0, {"bias": 0.1}), (x[:200], labels[:200]), batch_size=50)
average = cm.ClassificationAverage(likelihood.predict, x[200:], labels[200:], classes=2)
kernel = cm.csghmc(1e-3, cm.Partition(low=50.0, width=10.0, bins=20))
run = cm.sample(posterior, init=init, steps=1500, kernel=kernel, chains=2, average=average)
print(run.average)
