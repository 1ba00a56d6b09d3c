"""A network in Flax Linen: its `apply` is the model, and its "params" are the position."""

import jax.numpy as jnp
import numpy as np
from flax import linen as nn

import contourmc as cm

random = np.random.default_rng(0)
x = random.normal(size=(300, 2))
labels = (x[:, 0] * x[:, 1] > 0).astype(int)  # "the same sign", which no linear model can tell

network = nn.Sequential([nn.Dense(16), jnp.tanh, nn.Dense(2)])


def init(key):
    return network.init(key, x[:1])["params"]


def apply(params, x):
    return network.apply({"params": params}, x)


likelihood = cm.CategoricalLikelihood(apply, classes=2)
posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0, {"bias": 0.1}), (x[:200], labels[:200]), batch_size=50)
average = cm.ClassificationAverage(likelihood.predict, x[200:], labels[200:], classes=2)
kernel = cm.csghmc(1e-3, cm.Partition(low=50.0, width=10.0, bins=20))
run = cm.sample(posterior, init=init, steps=1500, kernel=kernel, chains=2, average=average)
print(run.average)
