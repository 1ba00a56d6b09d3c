"""The kinds of run that are made on different numbers of devices and processes.

Each is a function of the number of steps and of `checkpoint`, a folder or None, which makes a run of eight chains.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import contourmc as cm
from benchmarks.torture.kinds import (
    BATCH,
    KERNEL,
    ROWS,
    START,
    data,
    log_likelihood,
    log_prior,
    posterior,
    predict,
    wells,
)

Run = Callable[[int, Path | None], cm.Samples]
CHAINS = 8
PARTITION = cm.Partition(low=0.0, width=0.5, bins=40)


def _run(target: Any, init: Any, steps: int, checkpoint: Path | None, **options: Any) -> cm.Samples:
    return cm.sample(
        target, init=init, steps=steps, chains=CHAINS, seed=1, checkpoint=checkpoint, checkpoint_every=0.2, **options
    )


def flattened(steps: int, checkpoint: Path | None) -> cm.Samples:
    return _run(wells, jnp.ones(3), steps, checkpoint, kernel=cm.csgld(0.01, PARTITION, zeta=0.75))


def automatic(steps: int, checkpoint: Path | None) -> cm.Samples:
    return _run(wells, jnp.ones(3), steps, checkpoint)


def shared(steps: int, checkpoint: Path | None) -> cm.Samples:
    return _run(wells, jnp.ones(3), steps, checkpoint, kernel=cm.csgld(0.01, PARTITION, zeta=0.75, shared=True))


def averaged(steps: int, checkpoint: Path | None) -> cm.Samples:
    x, y = data()
    average = cm.ClassificationAverage(predict, x[:50], y[:50])
    return _run(posterior(), START, steps, checkpoint, kernel=KERNEL, average=average, thin=20)


def in_parts(steps: int, checkpoint: Path | None) -> cm.Samples:
    return _run(posterior(batch_parts=2), START, steps, checkpoint, kernel=KERNEL, thin=20)


def diverging(steps: int, checkpoint: Path | None) -> cm.Samples:
    """Chain 5, in the second of two processes, falls off an edge."""
    starts = np.where(np.arange(CHAINS) == 5, 2.0, 0.0).astype(np.float32)

    def edge(x: Any) -> Any:
        return jnp.where(x > 3, jnp.nan, jnp.where(x > 1, -5 * x, x**2))

    try:
        _run(edge, starts, steps, checkpoint, kernel=cm.sgld(0.01), per_chain_init=True, thin=1, burn_in=0)
    except cm.DivergenceError as error:
        return error.samples
    raise RuntimeError("no chain has diverged")


def unreadable(steps: int, checkpoint: Path | None) -> cm.Samples:
    """The data of the last process end in the middle of the run."""

    def batches() -> Iterator[Any]:
        x, y = data()
        last = jax.process_index() == jax.process_count() - 1
        for number in range(steps):
            if last and number == steps // 2:
                raise OSError("the disk is gone")
            yield x[:BATCH], y[:BATCH]

    try:
        _run(cm.StreamedPosterior(log_likelihood, log_prior, batches, ROWS), START, steps, checkpoint, kernel=KERNEL)
    except cm.DataError as error:
        return error.samples
    raise RuntimeError("all data have been read")


KINDS: dict[str, Run] = {
    "a kernel": flattened,
    "automatic": automatic,
    "shared theta": shared,
    "average": averaged,
    "batch in parts": in_parts,
    "divergence": diverging,
    "unreadable data": unreadable,
}
