"""ResNet-20 for images of 32 × 32 (He et al. 2016), as a likelihood with batch-norm statistics beside the parameters.

Linen, since its modules are pure functions of parameters and statistics, which is what a posterior takes.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from contourmc.studies.cifar.folding import Layout, convolve, fold, fold_kernel, widen
from contourmc.studies.cifar.normalisation import Normalisation
from contourmc.studies.cifar.sets import CIFAR10, Colour


class Convolution(nn.Module):
    """3 × 3, without bias; of plain images, or from folded to shifted ones and back, and with stride 2 from folded to
    plain ones: the same function of the same kernel.
    """

    channels: int
    stride: int = 1
    layout: Layout = Layout.PLAIN
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n _ _ _"]:
        kernel = self.param("kernel", nn.initializers.he_normal(), (3, 3, self.layout.channels(x), self.channels))
        if self.layout is Layout.PLAIN:
            return convolve(x, kernel.astype(self.dtype), 1, self.stride)
        kernel = fold_kernel(kernel, strided=self.stride == 2).astype(self.dtype)
        if self.layout is Layout.FOLDED and self.stride == 1:
            return widen(x, kernel)
        if self.layout is Layout.FOLDED:
            x = jnp.pad(x, ((0, 0), (1, 0), (1, 0), (0, 0)))
        return convolve(x, kernel, 0)


class Block(nn.Module):
    """Two convolutions, and the input added to what comes of them."""

    channels: int
    stride: int
    layout: Layout
    train: bool
    dtype: Any

    @nn.compact
    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n _ _ _"]:
        folded = self.layout is Layout.FOLDED
        between = Layout.SHIFTED if folded and self.stride == 1 else Layout.PLAIN  # stride 2 unfolds
        after = self.layout if self.stride == 1 else Layout.PLAIN
        residual = Convolution(self.channels, self.stride, self.layout, self.dtype)(x)
        residual = Normalisation(between, self.train, self.dtype, rectified=True)(residual)
        residual = Convolution(self.channels, layout=between, dtype=self.dtype)(residual)
        residual = Normalisation(after, self.train, self.dtype)(residual)
        if self.stride > 1:  # every second pixel, with channels of zeros added
            x = x[..., : x.shape[-1] // 4] if folded else x[:, ::2, ::2]
            added = self.channels - x.shape[-1]
            x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (added // 2, added - added // 2)))
        return nn.relu(x + residual)


class ResNet(nn.Module):
    """Three stages of `depth` blocks with 16, 32 and 64 channels; depth 3 is ResNet-20, with 269,722 parameters
    for ten classes.

    dtype: of the computation; parameters, statistics and logits are float32.
    folded: whether the first stage computes on folded images, which is faster on a GPU and slower on a CPU.
    mean, deviation: of the pixels of the training set, by channel.
    """

    depth: int = 3
    dtype: Any = jnp.bfloat16
    folded: bool = False
    classes: int = CIFAR10.classes
    mean: Colour = CIFAR10.mean
    deviation: Colour = CIFAR10.deviation

    @nn.compact
    def __call__(self, images: UInt8[Array, "n 32 32 3"], train: bool) -> Float[Array, "n classes"]:
        pixels = (images.astype(jnp.float32) - jnp.array(self.mean)) / jnp.array(self.deviation)
        plain = Layout.PLAIN
        first, then = (Layout.SHIFTED, Layout.FOLDED) if self.folded else (plain, plain)
        x = Convolution(16, 1, first, self.dtype)(fold(pixels.astype(self.dtype), first))
        x = Normalisation(then, train, self.dtype, rectified=True)(x)
        for stage in range(3):
            for block in range(self.depth):
                begins = stage > 0 and block == 0
                layout = then if stage == 0 or (stage == 1 and begins) else plain
                x = Block(16 * 2**stage, 2 if begins else 1, layout, train, self.dtype)(x)
        return nn.Dense(self.classes)(jnp.mean(x.astype(jnp.float32), axis=(1, 2)))


@dataclass(frozen=True)
class ImageLikelihood:
    """p(label | image) by a network: what `Posterior` and `ClassificationAverage` take."""

    network: ResNet

    def init(self, key: PRNGKeyArray) -> tuple[Any, Any]:
        """Parameters and statistics at the start."""
        variables = self.network.init(key, jnp.zeros((1, 32, 32, 3), jnp.uint8), True)
        return variables["params"], variables["batch_stats"]

    def __call__(
        self, params: Any, statistics: Any, batch: tuple[UInt8[Array, "n 32 32 3"], Int[Array, " n"]]
    ) -> tuple[Float[Array, " n"], Any]:
        """Log likelihoods by the statistics of the batch, and the running statistics with it."""
        images, labels = batch
        variables = {"params": params, "batch_stats": statistics}
        logits, new = self.network.apply(variables, images, True, mutable=["batch_stats"])
        log_probabilities = jax.nn.log_softmax(logits)
        return jnp.take_along_axis(log_probabilities, labels[:, None], axis=1)[:, 0], new["batch_stats"]

    def predict(self, params: Any, statistics: Any, images: UInt8[Array, "n 32 32 3"]) -> Float[Array, "n classes"]:
        """The logits, by the running statistics."""
        return self.network.apply({"params": params, "batch_stats": statistics}, images, False)  # type: ignore[return-value]
