"""What the benchmarks sample: the paper's mixture 0.4·N(−6, 1) + 0.6·N(4, 1), and a costly posterior."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import contourmc as cm
from contourmc.targets.energies import Energy

BINS, LOW, WIDTH = 50, 2.0, 1.0
STEP_SIZE, ZETA = 0.1, 0.75
GRADIENT_VARIANCE = 0.01
THIN = 100  # steps for each kept draw


def energy(x: Float[Array, ""]) -> Float[Array, ""]:
    """Minus the log density of the mixture."""
    left, right = math.log(0.4) - (x + 6) ** 2 / 2, math.log(0.6) - (x - 4) ** 2 / 2
    return 0.5 * math.log(2 * math.pi) - jnp.logaddexp(left, right)


MIXTURE = cm.NoisyEnergy(energy, gradient_variance=GRADIENT_VARIANCE)


def csgld(bins: int = BINS) -> cm.Kernel:
    """CSGLD on the mixture; `reference.c` holds the same settings."""
    return cm.csgld(STEP_SIZE, cm.Partition(low=LOW, width=WIDTH, bins=bins), zeta=ZETA)


def logistic_regression(rows: int, columns: int) -> Energy:
    """A posterior whose gradient takes two passes over a matrix: what a step costs in earnest."""
    random = np.random.default_rng(0)
    features = random.normal(size=(rows, columns)) / columns**0.5
    odds = np.exp(features @ random.normal(scale=2, size=columns))
    labels = jnp.asarray(random.random(rows) < odds / (1 + odds), float)
    matrix = jnp.asarray(features, float)

    def energy(coefficients: Float[Array, " columns"]) -> Float[Array, ""]:
        logits = matrix @ coefficients
        prior = jnp.sum(coefficients**2) / (2 * 2**2)
        return jnp.sum(jax.nn.softplus(logits) - labels * logits) + prior

    return energy
