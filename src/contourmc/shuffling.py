"""A random order of the data for every epoch, one entry at a time.

Sorting random numbers would give a whole permutation, at the cost of all the data for each epoch, and of
memory to carry it along. A cipher on the numbers 0 … N−1 gives the entries that a step needs and no others:
write a place as (l, r) with l < a, r < b, a·b ≥ N, and let each half be shifted in turn by a
random function of the other,

    l ← l + f_{2t}(r)  mod a,     r ← r + f_{2t+1}(l)  mod b,     t = 1 … rounds,

which permutes 0 … a·b−1 (a Feistel network on a rectangle; Black & Rogaway 2002). What falls at N or
beyond is sent through again until it does not, which leaves a permutation of 0 … N−1.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, UInt32

_ROUNDS = 6  # with 2, pairs of entries are visibly dependent; with 4, only orders of 5 or 6 things are


def shuffled(key: PRNGKeyArray, places: Int[Array, "..."], size: int) -> Int[Array, "..."]:
    """What stands in the given places when 0 … size−1 are put in the random order that belongs to the key."""
    a = max(1, math.isqrt(size - 1) + 1)  # a·b exceeds the size by less than its root: few are sent again
    b = -(-size // a)
    keys = jax.random.bits(key, (_ROUNDS, 2), jnp.uint32)

    def exchange(i: Array, halves: tuple[Array, Array]) -> tuple[Array, Array]:
        left, right = halves
        left = _shift(left, right, keys[i, 0], a)
        return left, _shift(right, left, keys[i, 1], b)

    def once(place: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
        # A loop, for written out the compiler would fuse all rounds, and take minutes.
        left, right = jax.lax.fori_loop(0, _ROUNDS, exchange, (place // b, place % b))
        return left * b + right

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
