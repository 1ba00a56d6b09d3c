"""Batch norm in Flax Linen, on handwritten digits: its statistics are the state beside the parameters."""

import jax
from flax import linen as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import contourmc as cm

x, x_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Dense(64)(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        return nn.Dense(10)(nn.relu(x))


network = Network()
variables = network.init(jax.random.key(0), x[:1], train=False)


def apply(params, statistics, x):  # in training: by the statistics of the batch, and the new running ones
    outputs, new = network.apply({"params": params, "batch_stats": statistics}, x, True, mutable=["batch_stats"])
    return outputs, new["batch_stats"]


def evaluate(params, statistics, x):  # on the test set: by the running statistics, which are kept with each draw
    return network.apply({"params": params, "batch_stats": statistics}, x, False)


likelihood = cm.CategoricalLikelihood(apply, classes=10, evaluate=evaluate)
posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x, y), batch_size=100, state=variables["batch_stats"])
average = cm.ClassificationAverage(likelihood.predict, x_test, y_test, classes=10, effective=0.5)
kernel = cm.csghmc(1e-5, cm.Partition(low=1000.0, width=50.0, bins=40))
run = cm.sample(posterior, init=variables["params"], steps=2000, kernel=kernel, chains=2, average=average)
print(run.average)
