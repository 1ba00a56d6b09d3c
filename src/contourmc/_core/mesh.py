"""Devices as a mesh: chains lie along one of its axes, and the batch of a chain may lie along the other."""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from contourmc._core.checks import require
from contourmc._core.pytrees import is_key

DEVICES = "devices"  # the axis along which chains are dealt to devices
DATA = "data"  # the axis along which the devices of a chain divide its batches


def is_mapped(axis: str) -> bool:
    """Whether the function that is being traced runs on every device along such an axis."""
    return axis in jax.sharding.get_abstract_mesh().manual_axes


def chosen_device() -> Any:
    """The device that the user has chosen by `jax.default_device`; None for all."""
    return getattr(jax.config, "jax_default_device")  # noqa: B009  # the type checker does not know it


def make_mesh(chains: int, batch_parts: int = 1, *, calls_host: bool = False) -> Mesh | None:
    """All devices of all processes, or as many as get equally many chains; None if that is a single one.

    batch_parts: how many devices share a chain, if a process has so many; they belong to one process.
    calls_host: whether the program calls functions on the host. On a CPU, where these wait for a device that may wait
        for another, only one device of each process is used.

    Chains are dealt in the order of processes, so that those of a process are neighbours.
    """
    processes, there = jax.process_count(), jax.local_device_count()
    chosen = chosen_device() is not None and processes == 1
    there = 1 if chosen or (calls_host and jax.default_backend() == "cpu") else there
    remedy = f"each of the {processes} processes needs equally many chains: give a multiple of {processes}"
    require(chains % processes == 0, "chains", chains, remedy)
    shared = batch_parts if there % batch_parts == 0 else 1
    most = there // shared
    rows = max(count for count in range(1, most + 1) if chains // processes % count == 0)
    if processes * rows * shared == 1:
        return None
    own: dict[int, list[Any]] = {}
    for device in jax.devices():
        own.setdefault(device.process_index, []).append(device)
    used = [devices[: rows * shared] for _, devices in sorted(own.items())]
    return Mesh(np.array(used).reshape(processes * rows, shared), (DEVICES, DATA))


def deal(mesh: Mesh | None, tree: Any) -> Any:
    """Stacked arrays, which every process has as a whole, dealt to the devices along their first axis."""
    return _put(mesh, tree, PartitionSpec(DEVICES))


def copy(mesh: Mesh | None, tree: Any) -> Any:
    """Arrays, which every process has, as a whole on every device."""
    return _put(mesh, tree, PartitionSpec())


def _put(mesh: Mesh | None, tree: Any, spec: PartitionSpec) -> Any:
    if mesh is None:
        return tree
    sharding = NamedSharding(mesh, spec)

    def put(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array) and leaf.sharding == sharding:
            return leaf
        if mesh.is_multi_process:
            return spread(leaf)
        return jax.device_put(leaf, sharding)

    def spread(leaf: Any) -> Any:
        """Not by `device_put`, which would compare all numbers between the processes."""
        if is_key(leaf):
            return jax.random.wrap_key_data(spread(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
        values = np.asarray(leaf)
        return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])

    return jax.tree.map(put, tree)
