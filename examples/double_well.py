"""Four modes in the plane, two of them heavier: contourmc sample examples/double_well.py:energy --init "[1.0, 1.0]"."""

import jax.numpy as jnp


def energy(x):
    """Minus the log density, up to a constant."""
    return 8 * jnp.sum((x**2 - 1) ** 2) + x[0]
