"""Sums over all pixels of a batch, by channel: what batch norm needs of images, in a kernel of its own on a GPU.

There XLA's program for such sums reads memory at about half of the speed at which it can be read.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float

from contourmc.studies.cifar.folding import Layout

WIDTH = 64  # numbers in a row, in which the channels, which are fewer, recur
ROWS, WARPS = 256, 8  # of a program of the GPU

Terms = Callable[..., tuple[Array, Array]]


def channel_sums(
    terms: Terms,
    images: tuple[Float[Array, "n h w _"], ...],
    by_channel: tuple[Float[Array, " c"], ...],
    layout: Layout,
    *,
    own_kernel: bool | None = None,
) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """The sums of two terms, which are functions of the numbers of images and of numbers by channel.

    own_kernel: on a GPU, unless given.
    """
    first = images[0]
    channels = layout.channels(first)
    in_rows = first.size % WIDTH == 0 and WIDTH % channels == 0
    if own_kernel is None:
        own_kernel = jax.default_backend() == "gpu"
    if own_kernel and in_rows:
        sums = _by_kernel(terms, images, by_channel, layout)
    else:
        width = WIDTH if in_rows else first.shape[-1]
        values = terms(*(each.astype(jnp.float32) for each in images), *(layout.spread(v, first) for v in by_channel))
        inside = layout.inside(first)
        kept = (value if inside is None else jnp.where(inside, value, 0.0) for value in values)
        sums = jnp.stack([jnp.sum(value.reshape(-1, width), axis=0) for value in kept])
    of_bias, of_scale = jnp.sum(sums.reshape(2, -1, channels), axis=1)
    return of_bias, of_scale


def _by_kernel(
    terms: Terms, images: tuple[Array, ...], by_channel: tuple[Array, ...], layout: Layout
) -> Float[Array, "2 64"]:
    rows = images[0].size // WIDTH
    programs = pl.cdiv(rows, ROWS)
    call = pl.pallas_call(
        partial(_kernel, terms, layout, images[0].shape, len(images)),
        out_shape=jax.ShapeDtypeStruct((programs, 2, WIDTH), jnp.float32),
        grid=(programs,),
        compiler_params=triton.CompilerParams(num_warps=WARPS),
        interpret=jax.default_backend() == "cpu",
        name="channel_sums",
    )
    flat = [each.reshape(rows, WIDTH) for each in images]
    spread = [jnp.tile(each, WIDTH // each.shape[0]) for each in by_channel]
    return jnp.sum(call(*flat, *spread), axis=0)


def _kernel(terms: Terms, layout: Layout, shape: tuple[int, ...], count: int, *refs) -> None:
    """The sums of the rows of one program."""
    *given, sums = refs
    program = pl.program_id(0)
    here = pl.ds(program * ROWS, ROWS)
    row = program * ROWS + jnp.arange(ROWS)
    there = jnp.broadcast_to((row < given[0].shape[0])[:, None], (ROWS, WIDTH))
    images = (triton.load(ref.at[here, :], mask=there, other=0.0).astype(jnp.float32) for ref in given[:count])
    by_channel = (ref[:][None] for ref in given[count:])
    kept = there if layout is not Layout.SHIFTED else there & _inside(row, shape)
    for i, value in enumerate(terms(*images, *by_channel)):
        sums[program, i, :] = jnp.sum(jnp.where(kept, value, 0.0), axis=0)


def _inside(row: Array, shape: tuple[int, ...]) -> Bool[Array, "rows 64"]:
    """`Layout.inside` for rows of shifted images, each of which is a place with four pixels."""
    _, height, width, channels = shape
    y, x = (row // width % height)[:, None], (row % width)[:, None]
    lane = jnp.arange(WIDTH)[None]
    p, q = lane // (channels // 2), lane // (channels // 4) % 2
    above, below = (y == 0) & (p == 0), (y == height - 1) & (p == 1)
    left, right = (x == 0) & (q == 0), (x == width - 1) & (q == 1)
    return ~(above | below | left | right)
