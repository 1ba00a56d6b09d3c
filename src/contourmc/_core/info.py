"""What a step reports about the point it started from."""

from typing import NamedTuple

from jaxtyping import Array, Float, Int


class Info(NamedTuple):
    """What a step reports about the point it started from.

    energy: Ũ(x_k), the energy that came with the gradient.
    bin: the energy bin of x_k; 0 for a kernel without a partition.
    multiplier: 1 + ζτ·s, by which the gradient was multiplied; 1 for a kernel without flattening.
    log_weight: the logarithm of the importance weight of x_k; 0 for an unweighted kernel.

    >>> kernel = cm.csgld(0.002, cm.Partition(low=-0.3, width=0.4, bins=40))
    >>> state, info = kernel.step(jax.random.key(0), kernel.init(jnp.array(1.0)), energy=0.5, gradient=0.5)
    >>> print(info.energy, info.bin, info.multiplier)
    0.5 2 1.0
    """

    energy: Float[Array, ""]
    bin: Int[Array, ""]
    multiplier: Float[Array, ""]
    log_weight: Float[Array, ""]
