"""ResNet-20 for images of 32 × 32 (He et al. 2016), as a likelihood with batch-norm statistics beside the parameters.

Linen, since its modules are pure functions of parameters and statistics, which is what a posterior takes.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

# Of the pixels of the training set, by channel.
MEAN = (125.3, 123.0, 113.9)
DEVIATION = (63.0, 62.1, 66.7)
CLASSES = 10


class Block(nn.Module):
    """Two convolutions, and the input added to what comes of them."""

    channels: int
    stride: int
    dtype: Any

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        convolve = partial(_Convolution, dtype=self.dtype)
        normalise = partial(nn.BatchNorm, not train, momentum=0.9, dtype=self.dtype)
        residual = nn.relu(normalise()(convolve(self.channels, self.stride)(x)))
        residual = normalise()(convolve(self.channels)(residual))
        if self.stride > 1:  # every second pixel, with channels of zeros added
            x = x[:, :: self.stride, :: self.stride]
            added = self.channels - x.shape[-1]
            x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (added // 2, added - added // 2)))
        return nn.relu(x + residual)


class ResNet(nn.Module):
    """Three stages of `depth` blocks with 16, 32 and 64 channels; depth 3 is ResNet-20, with 269,722 parameters.

    dtype: of the computation; parameters, statistics and logits are float32.
    """

    depth: int = 3
    width: int = 16
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, images: UInt8[Array, "n 32 32 3"], train: bool) -> Float[Array, "n 10"]:
        pixels = (images.astype(jnp.float32) - jnp.array(MEAN)) / jnp.array(DEVIATION)
        x = _Convolution(self.width, dtype=self.dtype)(pixels.astype(self.dtype))
        x = nn.relu(nn.BatchNorm(not train, momentum=0.9, dtype=self.dtype)(x))
        for stage in range(3):
            for block in range(self.depth):
                x = Block(self.width * 2**stage, 2 if stage > 0 and block == 0 else 1, self.dtype)(x, train)
        return nn.Dense(CLASSES)(jnp.mean(x.astype(jnp.float32), axis=(1, 2)))


def _Convolution(channels: int, stride: int = 1, *, dtype: Any) -> nn.Conv:  # noqa: N802
    initial = nn.initializers.he_normal()
    return nn.Conv(channels, (3, 3), stride, padding=1, use_bias=False, dtype=dtype, kernel_init=initial)


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

    def predict(self, params: Any, statistics: Any, images: UInt8[Array, "n 32 32 3"]) -> Float[Array, "n 10"]:
        """The logits, by the running statistics."""
        return self.network.apply({"params": params, "batch_stats": statistics}, images, False)  # type: ignore[return-value]
