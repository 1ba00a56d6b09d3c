"""What a step reports about the point it started from."""

from typing import NamedTuple

from jaxtyping import Array, Float, Int


class Info(NamedTuple):
    """What a step reports about the point it started from.

    energy: Ũ(x_k), the energy that came with the gradient.
    bin: the energy bin of x_k; 0 for a kernel without a partition.
    multiplier: 1 + ζτ·s, by which the gradient was multiplied; 1 for a kernel without flattening.
    log_weight: the logarithm of the importance weight of x_k; 0 for an unweighted kernel.
    """

    energy: Float[Array, ""]
    bin: Int[Array, ""]
    multiplier: Float[Array, ""]
    log_weight: Float[Array, ""]
