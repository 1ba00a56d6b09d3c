"""Images in which 2 × 2 pixels are one place with four times the channels: a GPU's matrix units are made for 64
channels rather than 16.

A square y of a `folded` image has the pixels 2y and 2y + 1 of each side, one of a `shifted` image 2y − 1 and 2y, of
which the first and the last lie half outside. A 3 × 3 convolution from one of the two to the other needs 2 × 2
squares: from square y + a, pixel p, to square y, pixel r, leads row i = 2a + p − r of its kernel. Between images of the
same kind it would need 3 × 3, and more than twice the work.
"""

from enum import Enum

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float


class Layout(Enum):
    """How the pixels of an image lie in an array."""

    PLAIN = "plain"
    FOLDED = "folded"
    SHIFTED = "shifted"

    @property
    def squares(self) -> int:
        """How many pixels a place holds."""
        return 1 if self is Layout.PLAIN else 4

    def channels(self, x: Float[Array, "n h w c"]) -> int:
        return x.shape[-1] // self.squares

    def pixels(self, x: Float[Array, "n h w c"]) -> int:
        """How many there are in a batch."""
        n, height, width, _ = x.shape
        outside = 1 if self is Layout.SHIFTED else 0
        return n * (height - outside) * (width - outside) * self.squares

    def spread(self, by_channel: Float[Array, " c"], x: Float[Array, "n h w _"]) -> Float[Array, " _"]:
        """Numbers by channel, for each pixel of a place."""
        return jnp.tile(by_channel, x.shape[-1] // by_channel.shape[0])

    def inside(self, x: Float[Array, "n h w c"]) -> Bool[np.ndarray, "h w c"] | None:
        """Which pixels belong to the image; None for all."""
        if self is not Layout.SHIFTED:
            return None
        _, height, width, channels = x.shape
        rows, columns = (_inside(count) for count in (height, width))
        square = rows[:, None, :, None] & columns[None, :, None, :]
        return np.repeat(square.reshape(height, width, 4), channels // 4, axis=-1)


def _inside(count: int) -> Bool[np.ndarray, "count 2"]:
    pixel = 2 * np.arange(count)[:, None] - 1 + np.arange(2)
    return (pixel >= 0) & (pixel < 2 * (count - 1))


def fold(images: Float[Array, "n h w c"], layout: Layout) -> Float[Array, "n _ _ _"]:
    """Channels (p, q, c) of a place from channel c of its pixels (p, q)."""
    if layout is Layout.PLAIN:
        return images
    if layout is Layout.SHIFTED:
        images = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    n, height, width, channels = images.shape
    squares = images.reshape(n, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    return squares.reshape(n, height // 2, width // 2, 4 * channels)


def fold_kernel(kernel: Float[Array, "3 3 c d"], *, strided: bool = False) -> Float[Array, "2 2 _ _"]:
    """The kernel from folded to shifted images, or from shifted to folded ones.

    strided: only what leads to pixels r = 1, which are every second pixel of the image, from 0 on, if it was folded.
    """
    a, p, r, i = np.ogrid[:2, :2, 1 if strided else 0 : 2, :3]
    row = jnp.asarray(i == 2 * a + p - r, kernel.dtype)
    spread = jnp.einsum("apri,bqsj,ijcd->abpqcrsd", row, row, kernel)
    return spread.reshape(2, 2, 4 * kernel.shape[2], -1)


def convolve(
    x: Float[Array, "n h w c"], kernel: Float[Array, "a b c d"], padding: int, stride: int = 1
) -> Float[Array, "n _ _ d"]:
    """With zeros around the image."""
    around = ((padding, padding),) * 2
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), around, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )  # fmt: skip


@jax.custom_vjp
def widen(x: Float[Array, "n h w c"], kernel: Float[Array, "2 2 c d"]) -> Float[Array, "n _ _ d"]:
    """From folded to shifted images, which have one place more on either side.

    XLA has no fast program for the gradient of its kernel. But it is the gradient of the kernel of the way back, from
    shifted to folded images, turned round: for both it is the sum of x[y + a − 1]·g[y] over all y, with gradient g.
    """
    return convolve(x, kernel, 1)


def _widen_forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return convolve(x, kernel, 1), (x, kernel)


def _widen_backward(kept: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = kept
    back = jnp.flip(kernel, (0, 1)).swapaxes(2, 3)
    to_folded, by_kernel = jax.vjp(lambda way_back: convolve(gradient, way_back, 0), back)
    return to_folded, jnp.flip(by_kernel(x)[0], (0, 1)).swapaxes(2, 3)


widen.defvjp(_widen_forward, _widen_backward)
