"""Dropout in Flax NNX, on handwritten digits: the model takes a random key, a new one in every step."""

from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import contourmc as cm

x, x_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)


class Network(nnx.Module):
    def __init__(self, rngs):
        self.hidden, self.output = nnx.Linear(64, 64, rngs=rngs), nnx.Linear(64, 10, rngs=rngs)
        self.dropout = nnx.Dropout(0.2)

    def __call__(self, x, rngs=None):  # without a key, nothing is left out
        x = nnx.relu(self.hidden(x))
        return self.output(self.dropout(x, deterministic=rngs is None, rngs=rngs))


graph, params = nnx.split(Network(nnx.Rngs(0)))


def apply(params, x, key):  # its last parameter is called `key`: so it gets one
    return nnx.merge(graph, params)(x, nnx.Rngs(key))


def evaluate(params, x):
    return nnx.merge(graph, params)(x)


likelihood = cm.CategoricalLikelihood(apply, classes=10, evaluate=evaluate)
posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x / 16, y), batch_size=100)
average = cm.ClassificationAverage(likelihood.predict, x_test / 16, y_test, classes=10, effective=0.5)
kernel = cm.csghmc(2e-4, cm.Partition(low=1000.0, width=50.0, bins=40))
run = cm.sample(posterior, init=params, steps=2000, kernel=kernel, chains=2, average=average)
print(run.average)
