"""Where basins lie and how wide they are: a map from each to each other."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from contourmc._core.checks import require, require_finite
from contourmc._core.pytrees import HoldsArrays


@dataclass(frozen=True, eq=False)
class BasinShapes(HoldsArrays, arrays=("count", "means", "factors", "inverses", "log_volumes")):
    """Where each basin lies, and how wide it is: x = μ_b + L_b z, with z about as wide in all directions and basins.

    There may be room for more basins than there are, so that one program serves several numbers of them.

    count: how many there are.
    means: μ_b.  factors: L_b, a matrix for each basin.  inverses: L_b⁻¹.  log_volumes: log |det L_b|.
    """

    count: float
    means: Float[Array, "room size"]
    factors: Float[Array, "room size size"]
    inverses: Float[Array, "room size size"]
    log_volumes: Float[Array, " room"]

    def basin_of(self, x: Float[Array, " size"]) -> Int[Array, ""]:
        """The basin that x belongs to: that with the smallest |L_b⁻¹(x − μ_b)|² + 2 log |det L_b|."""

        # One after the other, as products of a matrix and a vector: these can be part of a single CPU kernel.
        def nearer(best: tuple[Array, Array], basin: Any) -> tuple[tuple[Array, Array], None]:
            index, mean, inverse, log_volume = basin
            z = inverse @ (x - mean)
            distance = jnp.where(index < self.count, jnp.sum(z * z) + 2 * log_volume, jnp.inf)
            closer = distance < best[0]
            return (jnp.where(closer, distance, best[0]), jnp.where(closer, index, best[1])), None

        numbers = jnp.arange(self.means.shape[0], dtype=jnp.int32)
        kind = jnp.result_type(x, self.means)  # which differ for positions of float32 where JAX computes in float64
        start = jnp.asarray(jnp.inf, kind), jnp.zeros((), jnp.int32)
        basins = numbers, self.means, self.inverses, self.log_volumes
        return jax.lax.scan(nearer, start, basins)[0][1]

    def image(self, x: Float[Array, " size"], choice: Float[Array, ""]) -> tuple[Array, Array]:
        """y = μ_b + L_b L_a⁻¹(x − μ_a) in another basin b, and log |det L_b| − log |det L_a|.

        a is the basin of x, and b one of the others, all with the same probability. If y does not belong to b, one
        would not come back from it by the same rule, and the second number is −∞.
        """
        a = self.basin_of(x)
        further = 1 + jnp.floor(choice * (self.count - 1)).astype(jnp.int32)
        b = (a + further) % jnp.asarray(self.count).astype(jnp.int32)
        mean, factor, volume = (self._of(b, leaf) for leaf in (self.means, self.factors, self.log_volumes))
        old_mean, inverse, old_volume = (self._of(a, leaf) for leaf in (self.means, self.inverses, self.log_volumes))
        y = mean + factor @ (inverse @ (x - old_mean))
        return y, jnp.where(self.basin_of(y) == b, volume - old_volume, -jnp.inf)

    @staticmethod
    def _of(basin: Array, leaf: Array) -> Array:
        return jax.lax.dynamic_index_in_dim(leaf, basin, keepdims=False)


def basin_shapes(means: Any, factors: Any) -> BasinShapes:
    """The shapes of two or more basins from their means, (basin, size), and factors L_b, (basin, size, size).

    The room is the next power of 2.

    >>> shapes = cm.basin_shapes(means=[[-1.0], [1.0]], factors=[[[0.1]], [[0.2]]])
    >>> print(shapes.basin_of(jnp.array([0.7])))
    1
    """
    means, factors = np.asarray(means, float), np.asarray(factors, float)
    require(
        means.ndim == 2 and len(means) > 1, "means", means.shape, "give a row of numbers for each of several basins"
    )
    count, size = means.shape
    right = factors.shape == (count, size, size)
    require(right, "factors", factors.shape, f"give a matrix of {size} × {size} for each of {count} basins")
    require_finite("means", means)
    require_finite("factors", factors)
    signs, log_volumes = np.linalg.slogdet(factors)
    require(
        bool(np.all(signs != 0)),
        "factors",
        "a matrix without an inverse",
        "every basin needs a width in all directions",
    )
    room = 2 ** int(np.ceil(np.log2(count)))
    kept = [
        np.concatenate([leaf, np.repeat(leaf[:1], room - count, axis=0)])
        for leaf in (means, factors, np.linalg.inv(factors), log_volumes)
    ]
    kind = jnp.result_type(float)
    return BasinShapes(float(count), *(jnp.asarray(leaf, kind) for leaf in kept))
