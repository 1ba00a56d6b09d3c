"""ResNet-20 for images of 32 × 32 (He et al. 2016), as a likelihood with batch-norm statistics beside the parameters.

Linen, since its modules are pure functions of parameters and statistics, which is what a posterior takes.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from contourmc.studies.cifar.sets import CIFAR10, Colour


class Convolution(nn.Module):
    """3 × 3, without bias; of plain images, or of `folded` ones, in which 2 × 2 pixels are one with four times the
    channels: the same function of the same kernel. A GPU's matrix units are made for 64 channels rather than 16.

    A folded image gives a folded one, or with stride 2, which looks at every second pixel, a plain one.
    """

    channels: int
    stride: int = 1
    folded: bool = False
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n _ _ _"]:
        before = x.shape[-1] // 4 if self.folded else x.shape[-1]
        kernel = self.param("kernel", nn.initializers.he_normal(), (3, 3, before, self.channels))
        stride = self.stride
        if self.folded:
            kernel, stride = _fold_kernel(kernel, outputs=2 if stride == 1 else 1), 1
        return jax.lax.conv_general_dilated(
            x, kernel.astype(self.dtype), (stride, stride), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )


class Normalisation(nn.Module):
    """Batch normalisation by channel; a folded image has four pixels for each channel in a place."""

    folded: bool
    train: bool
    dtype: Any

    @nn.compact
    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n h w c"]:
        pixels = x.reshape(*x.shape[:-1], 4, -1) if self.folded else x
        return nn.BatchNorm(not self.train, momentum=0.9, dtype=self.dtype)(pixels).reshape(x.shape)


class Block(nn.Module):
    """Two convolutions, and the input added to what comes of them."""

    channels: int
    stride: int
    folded: bool
    train: bool
    dtype: Any

    @nn.compact
    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n _ _ _"]:
        after = self.folded and self.stride == 1  # stride 2 unfolds
        residual = Convolution(self.channels, self.stride, self.folded, self.dtype)(x)
        residual = nn.relu(Normalisation(after, self.train, self.dtype)(residual))
        residual = Convolution(self.channels, folded=after, dtype=self.dtype)(residual)
        residual = Normalisation(after, self.train, self.dtype)(residual)
        if self.stride > 1:  # every second pixel, with channels of zeros added
            x = x[..., : x.shape[-1] // 4] if self.folded else x[:, ::2, ::2]
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
        x = fold(pixels.astype(self.dtype)) if self.folded else pixels.astype(self.dtype)
        x = nn.relu(Normalisation(self.folded, train, self.dtype)(Convolution(16, 1, self.folded, self.dtype)(x)))
        for stage in range(3):
            for block in range(self.depth):
                begins = stage > 0 and block == 0
                folded = self.folded and (stage == 0 or (stage == 1 and begins))
                x = Block(16 * 2**stage, 2 if begins else 1, folded, train, self.dtype)(x)
        return nn.Dense(self.classes)(jnp.mean(x.astype(jnp.float32), axis=(1, 2)))


def fold(images: Float[Array, "n h w c"]) -> Float[Array, "n _ _ _"]:
    """Channels (p, q, c) in place (y, x) from channel c of the pixels (2y + p, 2x + q)."""
    n, height, width, channels = images.shape
    squares = images.reshape(n, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    return squares.reshape(n, height // 2, width // 2, 4 * channels)


def _fold_kernel(kernel: Float[Array, "3 3 c d"], outputs: int) -> Float[Array, "3 3 _ _"]:
    """The kernel on folded images: the step from pixel 2(y + a − 1) + p to 2y + r is its row i = 2(a − 1) + p − r + 1.

    outputs: how many of the pixels r = 0, 1 there are along each side of a square.
    """
    a, p, r, i = np.ogrid[:3, :2, :outputs, :3]
    row = jnp.asarray(i == 2 * (a - 1) + p - r + 1, kernel.dtype)
    spread = jnp.einsum("apri,bqsj,ijcd->abpqcrsd", row, row, kernel)
    return spread.reshape(3, 3, 4 * kernel.shape[2], outputs**2 * kernel.shape[3])


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
