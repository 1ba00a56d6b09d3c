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

from contourmc.studies.cifar.folding import Layout

EPSILON = 1e-5
MOMENTUM = 0.9  # of the running statistics
WIDTH = 64  # numbers side by side that a GPU sums up well; channels are fewer


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
    inside = layout.inside(x)
    wide = _masked(x.astype(jnp.float32), inside)
    count = layout.pixels(x)
    mean = _sum(wide, layout) / count
    variance = jnp.maximum(0.0, _sum(wide * wide, layout) / count - mean * mean)
    return _apply(x, scale, bias, mean, variance, layout, rectified), mean, variance


def _forward(x: Array, scale: Array, bias: Array, layout: Layout, rectified: bool) -> tuple[Any, Any]:
    found = _normalised(x, scale, bias, layout, rectified)
    return found, (x, scale, bias, *found[1:])


def _backward(layout: Layout, rectified: bool, kept: tuple[Array, ...], cotangents: Any) -> tuple[Array, Array, Array]:
    x, scale, bias, mean, variance = kept
    inside, inverse = layout.inside(x), jax.lax.rsqrt(variance + EPSILON)
    gradient = _masked(cotangents[0].astype(jnp.float32), inside)
    if rectified:
        gradient = jnp.where(_apply(x, scale, bias, mean, variance, layout, False) > 0, gradient, 0.0)
    away = x.astype(jnp.float32) - layout.spread(mean, x)
    sum_bias, sum_scale = _sum(gradient, layout), inverse * _sum(gradient * away, layout)
    count, factor = layout.pixels(x), scale * inverse
    by_mean, by_spread = layout.spread(sum_bias / count, x), layout.spread(inverse * sum_scale / count, x)
    moved = layout.spread(factor, x) * (gradient - by_mean - away * by_spread)
    return _masked(moved, inside).astype(x.dtype), sum_scale, sum_bias


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


def _sum(x: Float[Array, "n h w _"], layout: Layout) -> Float[Array, " c"]:
    """By channel, over all pixels: first of rows of 64 numbers, in which the channels recur, then of what is left."""
    channels = layout.channels(x)
    width = WIDTH if x.size % WIDTH == 0 and WIDTH % channels == 0 else x.shape[-1]
    return jnp.sum(jnp.sum(x.reshape(-1, width), axis=0).reshape(-1, channels), axis=0)
