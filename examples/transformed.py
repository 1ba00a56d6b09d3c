"""Directions of travel, most one way and some the other, without a modelling language.

The density of a direction is w·vonMises(angle, κ) + (1 − w)·vonMises(angle + 180°, κ), with the angle on a circle, w
between 0 and 1, and κ above 0. Turning the angle round and exchanging the shares changes nothing: two modes, each with
half of the mass.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e

import contourmc as cm

random = np.random.default_rng(0)
heading = np.where(random.uniform(size=60) < 0.75, 64.0, 244.0)
DIRECTIONS = np.radians(heading) + random.vonmises(0.0, 3.0, 60)


def energy(p):
    """Minus the log posterior; κ has the prior Exponential(0.1), and the others are uniform."""
    along = p["concentration"] * jnp.cos(DIRECTIONS - p["angle"])
    shares = jnp.log(jnp.array([p["share"], 1 - p["share"]]))
    likelihood = jnp.logaddexp(shares[0] + along, shares[1] - along) - p["concentration"]
    return 0.1 * p["concentration"] - jnp.sum(likelihood - jnp.log(2 * jnp.pi * i0e(p["concentration"])))


target = cm.transformed(
    energy, {"angle": cm.periodic(2 * np.pi), "share": cm.interval(0, 1), "concentration": cm.positive}
)
run = cm.sample(target, init={"angle": 0.0, "share": 0.5, "concentration": 1.0}, steps=50_000)
print(run.summary(), *run.modes(), run.diagnose(), sep="\n")
