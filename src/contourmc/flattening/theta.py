"""The flattening of the energy landscape: log θ, Ψ and its slope. The rules that learn θ are in rules.py.

θ(i) estimates the probability of energy bin i. The sampler does not draw from π but from

    ϖ(x) ∝ π(x) / Ψ^ζ(U(x)),        ∇ log ϖ = −(1 + ζτ·s(U)) ∇U / τ,     s = d log Ψ / du,

where log Ψ interpolates log θ. Each draw then carries the importance weight Ψ^ζ(U(x)).

Everything is kept as logarithms, up to a common offset:  log θ(i) = levels(i) + offset.
Learning multiplies all of θ by one number and adds to one bin; with the offset this costs the same
for 10 bins and for 10,000. `normalised` folds the offset back in before rounding errors build up.
"""

from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from contourmc.flattening.partition import Partition

Scheme = Literal["smooth", "left", "centred", "right", "step"]

# Where in bin i log Ψ equals log θ(i), as a shift of the level: at its upper edge, centre or lower edge.
_KNOT_SHIFT = {"left": 0.0, "centred": 0.5, "right": 1.0}


class LogTheta(NamedTuple):
    """log θ of every bin: `levels + offset`.

    levels: log θ(i) up to the common offset.
    offset: the common part; 0 after `normalised`.
    """

    levels: Float[Array, " bins"]
    offset: Float[Array, ""]


def log_theta(probabilities: Float[Array, " bins"]) -> LogTheta:
    """log θ from given probabilities; that of an empty bin is the logarithm of the smallest float, not −∞."""
    tiny = jnp.finfo(probabilities.dtype).tiny
    return LogTheta(jnp.log(jnp.maximum(probabilities, tiny)), jnp.zeros((), probabilities.dtype))


def normalised(theta: LogTheta) -> LogTheta:
    """The same θ with Σθ = 1 and offset 0."""
    total = jax.nn.logsumexp(theta.levels)
    return LogTheta(theta.levels - total, jnp.zeros_like(theta.offset))


def at_bin(theta: LogTheta, index: Int[Array, ""]) -> Float[Array, ""]:
    """log θ(index)."""
    return jax.lax.dynamic_index_in_dim(theta.levels, index, keepdims=False) + theta.offset


def interpolate(
    theta: LogTheta, partition: Partition, energy: Float[Array, ""], scheme: Scheme
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """log Ψ(u) and its slope s(u) = d log Ψ / du.

    log Ψ is continuous. For three schemes it is piecewise linear and meets log θ(i) at the upper edge of bin i
    (`left`, the paper's eq. 5 and 6), its centre (`centred`) or its lower edge (`right`, the supplement):

        `left`     s = (log θ(J) − log θ(J−1)) / Δu
        `right`    s = (log θ(J+1) − log θ(J)) / Δu
        `centred`  one of the two, whichever half of the bin u lies in
        `smooth`   from the first at the lower edge of bin J linearly to the second at its upper edge
        `step`     log Ψ = log θ(J), s = 0: the naïve choice, which does not flatten anything.

    `smooth` is ours, the quadratic spline with the coefficients log θ: the force does not jump between bins, nor at
    the ends, which makes the error of a finite step smaller.

    The paper's index (J − 1) ∨ 1 makes the slope of `left` 0 in bin 0; the supplement's (J + 1) ∧ m makes the slope of
    `right` 0 in the last bin, and continues the line between log θ(0) and log θ(1) through all of bin 0, which often
    holds the stationary points. `centred` and `smooth` have slope 0 in both unbounded bins.

    The last bin of `left` is where we differ: there log Ψ is constant and s = 0. The paper has the slope
    (log θ(m−1) − log θ(m−2))/Δu there, although nothing bounds the energy. On its own mixture a few visits raise θ(m−1)
    far above θ(m−2), the multiplier is about 40, and a chain overshoots further and further, to infinity.
    """
    level, last = partition.level(energy), partition.bins - 2
    flat_below = scheme != "right"
    if scheme == "step" or (last == 0 and flat_below):  # without inner bins there is nothing to interpolate
        index = partition.index(energy) if scheme == "step" else jnp.zeros_like(energy, jnp.int32)
        return at_bin(theta, index), jnp.zeros_like(energy)
    inner = jnp.clip(level, 0 if flat_below else None, last)
    if scheme == "smooth":
        below = jnp.clip(jnp.ceil(inner), 1, last) - 1
        read, fraction = partial(_spline, last=last), inner - below
    else:
        knot = inner + _KNOT_SHIFT[scheme]
        below = jnp.clip(jnp.ceil(knot) - 1, 0, last)
        read, fraction = _line, knot - below
    # A branch, not a `where`: XLA then reads `levels` once, before a rule writes to them in place. Reads that it may
    # repeat elsewhere would make it copy all of θ in every step.
    log_psi, slope = jax.lax.cond(
        (level > 0) & (level <= last) if flat_below else level <= last,
        partial(read, per_width=partition.per_width),
        partial(read, per_width=0.0),
        theta.levels,
        below.astype(jnp.int32),
        fraction,
    )
    return log_psi + theta.offset, slope


def _line(levels: Array, below: Array, fraction: Array, *, per_width: float | Array) -> tuple[Array, Array]:
    """The value and slope between two knots."""
    pair = jax.lax.dynamic_slice_in_dim(levels, below, 2)
    difference = pair[1] - pair[0]
    return pair[0] + difference * fraction, difference * per_width


def _spline(
    levels: Array, below: Array, fraction: Array, *, per_width: float | Array, last: int
) -> tuple[Array, Array]:
    """The value and slope in the bin after `below`; the outer slopes of the first and last inner bin are 0."""
    trio = jax.lax.dynamic_slice_in_dim(levels, below, 3)
    lower = jnp.where(below == 0, 0.0, trio[1] - trio[0])
    upper = jnp.where(below == last - 1, 0.0, trio[2] - trio[1])
    rest = 1 - fraction
    value = trio[1] + 0.5 * (fraction * fraction * upper - rest * rest * lower)
    return value, (rest * lower + fraction * upper) * per_width
