"""A random order of the data for every epoch, computed one entry at a time.

Sorting random numbers gives a whole permutation, which costs time for all the data in each epoch, and memory in the
state. A cipher on the numbers 0 … N−1 gives the entries that a step needs and no others: write a place as (l, r)
with l < a, r < b, a·b ≥ N, and shift each half in turn by a random function of the other,

    l ← l + f_{2t}(r)  mod a,     r ← r + f_{2t+1}(l)  mod b,     t = 1 … rounds,

which permutes 0 … a·b−1 (a Feistel network on a rectangle; Black & Rogaway 2002). A result of N or more goes through
it again until it is below N, which leaves a permutation of 0 … N−1.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, UInt32

_ROUNDS = 6  # with 2, pairs of entries are visibly dependent; with 4, only orders of 5 or 6 things are


@partial(jax.jit, static_argnames="size")
def shuffled(key: PRNGKeyArray, places: Int[Array, "..."], size: int) -> Int[Array, "..."]:
    """The entries at the given places of 0 … size−1 in the random order that belongs to the key."""
    a = max(1, math.isqrt(size - 1) + 1)  # a·b exceeds the size by less than its root: few need another pass
    b = -(-size // a)
    keys = jax.random.bits(key, (_ROUNDS, 2), jnp.uint32)

    def one_round(i: Array, halves: tuple[Array, Array]) -> tuple[Array, Array]:
        high, low = halves
        high = _shift(high, low, keys[i, 0], a)
        return high, _shift(low, high, keys[i, 1], b)

    def once(place: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
        # A loop: if the rounds were written out, the compiler would fuse them all, which takes it minutes.
        high, low = jax.lax.fori_loop(0, _ROUNDS, one_round, (place // b, place % b))
        return high * b + low

    def again(place: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
        return jnp.where(place < size, place, once(place))

    inside = jax.lax.while_loop(lambda place: jnp.any(place >= size), again, once(places.astype(jnp.uint32)))
    return inside.astype(jnp.int32)


def _shift(half: Array, other: Array, key: Array, modulus: int) -> UInt32[Array, "..."]:
    """half + f(other) mod `modulus`, f by the mixing function of MurmurHash3; no division, which is slow."""
    mixed = (other ^ key) * jnp.uint32(0x9E3779B9)
    mixed = (mixed ^ (mixed >> 16)) * jnp.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> 13)) * jnp.uint32(0xC2B2AE35)
    total = half + (((mixed ^ (mixed >> 16)) >> 16) * jnp.uint32(modulus) >> 16)
    return jnp.where(total < modulus, total, total - jnp.uint32(modulus))
