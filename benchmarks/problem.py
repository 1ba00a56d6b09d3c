"""What all benchmarks sample: the mixture of the paper's simulations, 0.4·N(−6, 1) + 0.6·N(4, 1)."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

import contourmc as cm
from contourmc.kernels.base import Kernel

BINS, LOW, WIDTH = 50, 2.0, 1.0
STEP_SIZE, ZETA = 0.1, 0.75
GRADIENT_VARIANCE = 0.01
THIN = 100  # steps for each kept draw


def energy(x: Float[Array, ""]) -> Float[Array, ""]:
    """Minus the log density."""
    left, right = math.log(0.4) - (x + 6) ** 2 / 2, math.log(0.6) - (x - 4) ** 2 / 2
    return 0.5 * math.log(2 * math.pi) - jnp.logaddexp(left, right)


MIXTURE = cm.NoisyEnergy(energy, gradient_variance=GRADIENT_VARIANCE)


def csgld(bins: int = BINS) -> Kernel:
    """CSGLD as all benchmarks run it."""
    return cm.csgld(STEP_SIZE, cm.Partition(low=LOW, width=WIDTH, bins=bins), zeta=ZETA)
