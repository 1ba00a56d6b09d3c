"""Random crops, flips and erased rectangles of images, drawn anew for every image in every step."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, UInt8

from contourmc.studies.cifar.sets import CIFAR10, Colour

PADDING = 4
ERASED_AREA = (0.02, 0.4)  # as a share of the image
ERASED_RATIO = (0.3, 1 / 0.3)  # height to width


@dataclass(frozen=True)
class Augmentation:
    """crop: shift by up to 4 pixels each way, with black beyond the edges.  flip: mirror every second image.
    erase: paint a rectangle of 2 to 40% of every second image in one colour (Zhong et al. 2020).
    colour: of the rectangle, the mean one of the data set.
    """

    crop: bool = True
    flip: bool = True
    erase: bool = True
    colour: Colour = CIFAR10.mean

    def __call__(self, key: PRNGKeyArray, batch: tuple[UInt8[Array, "n h w 3"], Any]) -> tuple[Array, Any]:
        images, labels = batch
        size, height, width, _ = images.shape
        shift_key, flip_key, erase_key = jax.random.split(key, 3)
        rows, columns = jnp.arange(height)[None], jnp.arange(width)[None]
        if self.flip:
            mirrored = jax.random.bernoulli(flip_key, shape=(size, 1))
            columns = jnp.where(mirrored, width - 1 - columns, columns)
        if self.crop:
            down, right = jax.random.randint(shift_key, (2, size, 1), -PADDING, PADDING + 1)
            rows, columns = rows + down, columns + right
        rows, columns = jnp.broadcast_to(rows, (size, height)), jnp.broadcast_to(columns, (size, width))
        # One gather for both; what lies outside of the image is black.
        place = jnp.arange(size)[:, None, None], rows[:, :, None], columns[:, None, :]
        images = images.at[place].get(mode="fill", fill_value=0, wrap_negative_indices=False)
        return (self._erased(erase_key, images) if self.erase else images), labels

    def _erased(self, key: PRNGKeyArray, images: UInt8[Array, "n h w 3"]) -> UInt8[Array, "n h w 3"]:
        size, height, width, _ = images.shape
        chosen_key, area_key, ratio_key, place_key = jax.random.split(key, 4)
        chosen = jax.random.bernoulli(chosen_key, shape=(size,))
        area = jax.random.uniform(area_key, (size,), minval=ERASED_AREA[0], maxval=ERASED_AREA[1]) * height * width
        low, high = jnp.log(jnp.array(ERASED_RATIO))
        ratio = jnp.exp(jax.random.uniform(ratio_key, (size,), minval=low, maxval=high))
        tall = jnp.minimum(jnp.round(jnp.sqrt(area * ratio)), height)
        wide = jnp.minimum(jnp.round(jnp.sqrt(area / ratio)), width)
        where = jax.random.uniform(place_key, (2, size))
        top, left = jnp.floor(where[0] * (height - tall + 1)), jnp.floor(where[1] * (width - wide + 1))

        def within(count: int, begin: Array, length: Array) -> Array:
            place = jnp.arange(count)[None]
            return (place >= begin[:, None]) & (place < (begin + length)[:, None])

        erased = within(height, top, tall)[:, :, None] & within(width, left, wide)[:, None, :]
        colour = jnp.round(jnp.array(self.colour)).astype(images.dtype)
        return jnp.where((erased & chosen[:, None, None])[..., None], colour, images)
