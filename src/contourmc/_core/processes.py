"""Several processes that make one run together, each with its own devices: what they tell one another.

All of them call these functions in the same order. With a single process they do next to nothing.
"""

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from contourmc._core.pytrees import is_key

Value = TypeVar("Value")
_LEAST_BYTES, _MOST_BYTES = 1024, 2**26  # of a message


def distributed(
    coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> None:
    """Make this process one of several that make their runs together. Call it first, in each of them.

    Under Slurm, Open MPI and Kubernetes, and on TPUs, nothing has to be given; elsewhere all three: the address
    (`host:port`) of the first process, how many there are, and the number of this one, from 0. Then every process makes
    the same calls, such as `sample(…)`, and gets the same result. See docs/scaling.md.

    >>> cm.distributed("localhost:9876", num_processes=1, process_id=0)
    >>> print(jax.process_index(), jax.process_count())
    0 1
    """
    given = (coordinator_address, num_processes, process_id)
    some = sum(value is not None for value in given)
    if some not in (0, len(given)):
        remedy = "give coordinator_address, num_processes and process_id, or none of them"
        raise ValueError(f"{remedy} where the cluster tells (Slurm, Open MPI, Kubernetes)")
    try:
        jax.distributed.initialize(*given)
        any_process(False)  # while they wait for one another: a first exchange later on would give up after 30 s
    except (RuntimeError, ValueError) as error:
        remedy = "call it once, before anything else that uses JAX, with the same address in all processes"
        raise RuntimeError(f"the processes could not be brought together: {error}; {remedy}") from error


def several() -> bool:
    """Whether there is more than one process."""
    return jax.process_count() > 1


def process() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    return jax.process_index(), jax.process_count()


def is_first() -> bool:
    """Whether this is the process that writes files and shows progress."""
    return jax.process_index() == 0


def whole(tree: Any) -> Any:
    """All of stacked arrays, on the host, also of those whose rows are in other processes; random keys stay keys."""
    leaves = jax.tree.leaves(tree)
    if all(not isinstance(leaf, jax.Array) or leaf.is_fully_addressable for leaf in leaves):
        return jax.tree.map(on_host, tree)
    return joined_rows(jax.tree.map(own, tree))


def own(leaf: Any) -> Any:
    """The rows of a stacked array that are in this process, on the host; random keys stay keys."""
    if is_key(leaf):
        return _as_keys(own(jax.random.key_data(leaf)), leaf)
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        parts = {shard.index[0].start or 0: shard.data for shard in leaf.addressable_shards}
        return np.concatenate([np.asarray(parts[begin]) for begin in sorted(parts)])
    return np.asarray(leaf)


def joined_rows(tree: Any) -> Any:
    """Stacked arrays on the host of all processes, one after the other along the first axis, in a single exchange."""
    if not several():
        return tree
    leaves, structure = jax.tree.flatten(tree)
    arrays = [np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf) for leaf in leaves]
    message = b"".join(array.tobytes() for array in arrays)
    # In pieces: they pass through the memory of the devices, once for each process.
    pieces = [message[begin : begin + _MOST_BYTES] for begin in range(0, max(1, len(message)), _MOST_BYTES)]
    received = np.concatenate([_utilities().process_allgather(_padded(piece))[:, : len(piece)] for piece in pieces], 1)
    joined, begin = [], 0
    for leaf, array in zip(leaves, arrays, strict=True):
        parts = np.ascontiguousarray(received[:, begin : begin + array.nbytes]).view(array.dtype)
        rows = parts.reshape(len(parts) * array.shape[0], *array.shape[1:])
        joined.append(_as_keys(rows, leaf) if is_key(leaf) else rows)
        begin += array.nbytes
    return structure.unflatten(joined)


def on_host(leaf: Any) -> Any:
    """As a NumPy array; random keys, which NumPy does not know, stay as they are."""
    return leaf if is_key(leaf) else np.asarray(leaf)


def _as_keys(numbers: np.ndarray, like: Any) -> Any:
    return jax.random.wrap_key_data(jnp.asarray(numbers), impl=str(jax.random.key_impl(like)))


def _padded(message: bytes) -> np.ndarray:
    """As an array with one of few different sizes: each needs a program of its own."""
    packet = np.zeros(max(_LEAST_BYTES, 2 ** (len(message) - 1).bit_length()), np.uint8)
    packet[: len(message)] = np.frombuffer(message, np.uint8)
    return packet


def own_rows(leaf: Any) -> Any:
    """This process's part, along the first axis, of an array that all have."""
    each = leaf.shape[0] // jax.process_count()
    return leaf[jax.process_index() * each : (jax.process_index() + 1) * each] if several() else leaf


def any_process(flag: bool) -> bool:
    """Whether it is true in any process."""
    return bool(largest(int(flag)))


def largest(number: int) -> int:
    """The largest of the numbers that the processes give."""
    return int(np.max(_utilities().process_allgather(np.array([number], np.int32)))) if several() else number


def from_first(make: Callable[[], Value]) -> Value:
    """What a function gives in the first process, or the error that it raises there; the others do not call it."""
    if not several():
        return make()
    result: tuple[Any, BaseException | None] = None, None
    if is_first():
        try:
            result = make(), None
        except Exception as error:
            result = None, error
    try:
        message = pickle.dumps(result)
    except Exception as problem:  # some errors cannot be pickled
        message = pickle.dumps((None, RuntimeError(f"{result[1] or problem}")))
    value, error = pickle.loads(_broadcast(message))
    if error is not None:
        raise error
    return value


def in_all(do: Callable[[], Value]) -> Value:
    """Call a function in every process. If it raises in one of them, all raise, after all have come to its end."""
    result, failure = None, None
    try:
        result = do()
    except Exception as error:
        failure = error
    if any_process(failure is not None):
        raise failure or OSError("another process of the run has failed")
    return result  # pyright: ignore[reportReturnType]  # that of the function, which has not raised


def as_in_first(tree: Value) -> Value:
    """A pytree that all processes have computed, with the numbers of the first, where they may be rounded otherwise."""
    if not several():
        return tree
    leaves, structure = jax.tree.flatten(tree)
    numbers, shape = from_first(lambda: (jax.tree.map(np.asarray, leaves), str(structure)))
    if shape != str(structure):
        raise RuntimeError("the processes came to different conclusions: run them on machines of the same kind")
    kept = [
        first.item() if isinstance(leaf, (int, float)) else first for first, leaf in zip(numbers, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, kept)


def _broadcast(message: bytes) -> bytes:
    """The message of the first process; what fits into a packet takes a single exchange."""
    begin = _LEAST_BYTES - 8
    packet = _padded(len(message).to_bytes(8, "little") + message[:begin])
    packet = np.asarray(_utilities().broadcast_one_to_all(packet), np.uint8)
    size, received = int.from_bytes(packet[:8].tobytes(), "little"), packet[8:].tobytes()
    if size > begin:
        rest = _padded(message[begin:] if is_first() else bytes(size - begin))
        received += np.asarray(_utilities().broadcast_one_to_all(rest), np.uint8).tobytes()
    return received[:size]


def _utilities() -> Any:
    from jax.experimental import multihost_utils  # not above: it slows down `import contourmc`

    return multihost_utils
