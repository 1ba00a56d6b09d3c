"""A network in Equinox: a pytree, whose arrays are the position."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import contourmc as cm

random = np.random.default_rng(0)
x = random.normal(size=(300, 2))
labels = (x[:, 0] * x[:, 1] > 0).astype(int)  # "the same sign", which no linear model can tell


def make(key):
    return eqx.nn.MLP(2, 2, width_size=16, depth=1, activation=jnp.tanh, key=key)


fixed = eqx.filter(make(jax.random.key(0)), eqx.is_inexact_array, inverse=True)


def init(key):
    return eqx.filter(make(key), eqx.is_inexact_array)


def apply(params, x):
    return jax.vmap(eqx.combine(params, fixed))(x)


likelihood = cm.CategoricalLikelihood(apply, classes=2)
posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0, {"bias": 0.1}), (x[:200], labels[:200]), batch_size=50)
average = cm.ClassificationAverage(likelihood.predict, x[200:], labels[200:], classes=2)
kernel = cm.csghmc(1e-3, cm.Partition(low=50.0, width=10.0, bins=20))
run = cm.sample(posterior, init=init, steps=1500, kernel=kernel, chains=2, average=average)
print(run.average)
