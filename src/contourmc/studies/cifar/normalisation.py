"""Batch normalisation that reads images as seldom as can be: on a GPU it costs as much as the convolutions.

With μ and σ² the mean and the variance of a channel over R pixels, and x̂ = (x − μ)/σ,

    y  = max(0, γ·x̂ + β)                         forward, the maximum only if it is asked for,
    g  = ∂y·[y > 0]                               backward: ∂y is the gradient of y,
    ∂β = Σ g,    ∂γ = Σ g·x̂,
    ∂x = γ/σ·(g − ∂β/R − x̂·∂γ/R).

So x is read twice in either direction, and ∂y twice; what y was follows from x.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jaxtyping import Array, Bool, Float

from contourmc.studies.cifar.channel_sums import channel_sums
from contourmc.studies.cifar.folding import Layout

EPSILON = 1e-5
MOMENTUM = 0.9  # of the running statistics


class Normalisation(nn.Module):
    """By the statistics of the batch, or, if it is not training, by the running ones.

    rectified: whether negative numbers become 0.
    """

    layout: Layout
    train: bool
    dtype: Any
    rectified: bool = False

    @nn.compact
    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n h w c"]:
        channels = self.layout.channels(x)
        scale = self.param("scale", nn.initializers.ones, (channels,))
        bias = self.param("bias", nn.initializers.zeros, (channels,))
        mean = self.variable("batch_stats", "mean", jnp.zeros, (channels,))
        variance = self.variable("batch_stats", "var", jnp.ones, (channels,))
        if not self.train:
            return _apply(x, scale, bias, mean.value, variance.value, self.layout, self.rectified).astype(self.dtype)
        y, *statistics = normalise(x, scale, bias, self.layout, self.rectified)
        if not self.is_initializing():
            for running, new in zip((mean, variance), statistics, strict=True):
                running.value = MOMENTUM * running.value + (1 - MOMENTUM) * jax.lax.stop_gradient(new)
        return y.astype(self.dtype)


def _normalised(
    x: Float[Array, "n h w _"], scale: Float[Array, " c"], bias: Float[Array, " c"], layout: Layout, rectified: bool
) -> tuple[Float[Array, "n h w _"], Float[Array, " c"], Float[Array, " c"]]:
    """y, and the mean and the variance of the batch, through which no gradient passes."""
    count = layout.pixels(x)
    mean, square = (total / count for total in channel_sums(lambda x: (x, x * x), (x,), (), layout))
    variance = jnp.maximum(0.0, square - mean * mean)
    return _apply(x, scale, bias, mean, variance, layout, rectified), mean, variance


def _forward(x: Array, scale: Array, bias: Array, layout: Layout, rectified: bool) -> tuple[Any, Any]:
    found = _normalised(x, scale, bias, layout, rectified)
    return found, (x, scale, bias, *found[1:])


def _backward(layout: Layout, rectified: bool, kept: tuple[Array, ...], cotangents: Any) -> tuple[Array, Array, Array]:
    x, scale, bias, mean, variance = kept
    inverse = jax.lax.rsqrt(variance + EPSILON)
    factor = scale * inverse
    by_channel = mean, factor, bias - mean * factor

    def terms(x: Array, gradient: Array, mean: Array, factor: Array, offset: Array) -> tuple[Array, Array]:
        """g, and g·σx̂."""
        if rectified:
            gradient = jnp.where(x * factor + offset > 0, gradient, 0.0)
        return gradient, gradient * (x - mean)

    sum_bias, sum_away = channel_sums(terms, (x, cotangents[0]), by_channel, layout)
    sum_scale, count = inverse * sum_away, layout.pixels(x)
    wide, gradient = x.astype(jnp.float32), cotangents[0].astype(jnp.float32)
    gradient, _ = terms(wide, gradient, *(layout.spread(each, x) for each in by_channel))
    by_mean, by_spread = layout.spread(sum_bias / count, x), layout.spread(inverse * sum_scale / count, x)
    moved = layout.spread(factor, x) * (gradient - by_mean - (wide - layout.spread(mean, x)) * by_spread)
    return _masked(moved, layout.inside(x)).astype(x.dtype), sum_scale, sum_bias


normalise = jax.custom_vjp(_normalised, nondiff_argnums=(3, 4))
normalise.defvjp(_forward, _backward)


def _apply(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array, layout: Layout, rectified: bool
) -> Float[Array, "n h w _"]:
    factor = scale * jax.lax.rsqrt(variance + EPSILON)
    y = x.astype(jnp.float32) * layout.spread(factor, x) + layout.spread(bias - mean * factor, x)
    return _masked(jnp.maximum(y, 0.0) if rectified else y, layout.inside(x)).astype(x.dtype)


def _masked(x: Array, inside: Bool[np.ndarray, "h w c"] | None) -> Array:
    return x if inside is None else jnp.where(inside, x, 0.0)
