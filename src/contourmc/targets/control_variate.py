"""Energies of all observations at an earlier position, as a control variate for those of a batch (paper §2.4).

With U_i(x) = −log p(data_i | x), a snapshot of U_i(s) for every i at an earlier position s, and a batch of n of N,

    Ũ(x) = (N/n)·Σ_{i in the batch} (U_i(x) − U_i(s)) + Σ_i U_i(s) − log prior(x).

The mean over batches is that of (N/n)·Σ U_i(x) − log prior(x), whatever s is; the variance is that of the
differences, which vanishes at s. The gradient does not change, as s is fixed.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Snapshot(NamedTuple):
    """energies: U_i(s) of every observation.  total: their sum."""

    energies: Float[Array, "..."]
    total: Float[Array, "..."]


class WithSnapshot(NamedTuple):
    """The state of a posterior with snapshots: the state of the model, which belongs to a draw, and the snapshot."""

    model: Any
    snapshot: Snapshot


def no_snapshot(size: int) -> Snapshot:
    return Snapshot(jnp.zeros(size, jnp.result_type(float)), jnp.zeros((), jnp.result_type(float)))


def take_snapshot(energies: Float[Array, " size"]) -> Snapshot:
    energies = energies.astype(jnp.result_type(float))
    return Snapshot(energies, jnp.sum(energies))


def correction(snapshot: Snapshot, chosen: Int[Array, " batch"]) -> Float[Array, ""]:
    """What to add to the energy of a batch: Σ_i U_i(s) − (N/n)·Σ_{i in the batch} U_i(s)."""
    scale = snapshot.energies.shape[0] / chosen.shape[0]
    return snapshot.total - scale * jnp.sum(snapshot.energies[chosen])
