"""A mixture of three Gaussians in NumPyro, for the velocities of 82 galaxies: six labellings, equally probable.

NUTS stays in the labelling where it starts; here every run finds all six.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import contourmc as cm

# Roeder (1990), in 1,000 km/s.
VELOCITIES = np.array([
    9.172, 9.350, 9.483, 9.558, 9.775, 10.227, 10.406, 16.084, 16.170, 18.419, 18.552, 18.600, 18.927, 19.052, 19.070,
    19.330, 19.343, 19.349, 19.440, 19.473, 19.529, 19.541, 19.547, 19.663, 19.846, 19.856, 19.863, 19.914, 19.918,
    19.973, 19.989, 20.166, 20.175, 20.179, 20.196, 20.215, 20.221, 20.415, 20.629, 20.795, 20.821, 20.846, 20.875,
    20.986, 21.137, 21.492, 21.701, 21.814, 21.921, 21.960, 22.185, 22.209, 22.242, 22.249, 22.314, 22.374, 22.495,
    22.746, 22.747, 22.888, 22.914, 23.206, 23.241, 23.263, 23.484, 23.538, 23.542, 23.666, 23.706, 23.711, 24.129,
    24.285, 24.289, 24.366, 24.717, 24.990, 25.633, 26.960, 26.995, 32.065, 32.789, 34.279,
])  # fmt: skip


def model(velocities):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.full(3, 2.0)))
    with numpyro.plate("component", 3):
        mean = numpyro.sample("mean", dist.Normal(20.0, 10.0))
        scale = numpyro.sample("scale", dist.LogNormal(0.5, 0.5))
    numpyro.deterministic("range", mean.max() - mean.min())
    with numpyro.plate("galaxy", len(velocities)):
        mixture = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(mean, scale))
        numpyro.sample("velocity", mixture, obs=velocities)


run = cm.sample(cm.from_numpyro(model, VELOCITIES), steps=100_000, chains=8)
print(run.summary(), *run.modes(), run.diagnose(), run.log_evidence(), sep="\n")
