"""The kinds of run that are killed and resumed: one of every sort that has something of its own in a checkpoint.

Each is a function of `checkpoint`, a folder or None, which makes the whole run; all take a second or two.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import contourmc as cm

Run = Callable[[Path | None], cm.Samples]
ROWS, BATCH = 512, 32
EVERY = 0.0  # seconds between two checkpoints
SHARE = 1.0  # of the steps; tests make fewer


class Weights(NamedTuple):
    """A position of a class of its own."""

    slope: Any
    offset: Any


def wells(x: Any) -> Any:
    return 4 * jnp.sum((x**2 - 1) ** 2)


def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, 3)).astype(np.float32)
    return x, (x @ np.array([1.0, -2.0, 0.5], np.float32) > 0).astype(np.int32)


def log_likelihood(weights: Weights, batch: Any) -> Any:
    x, y = batch
    logits = x @ weights.slope + weights.offset
    return -jax.nn.softplus(jnp.where(y == 1, -logits, logits))


def with_state(weights: Weights, state: Any, batch: Any) -> Any:
    """A running mean of the inputs is the state."""
    x, y = batch
    mean = 0.9 * state + 0.1 * x.mean(axis=0)
    return log_likelihood(weights, (x - mean, y)), mean


def log_prior(weights: Weights) -> Any:
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in weights)


def predict(weights: Weights, x: Any) -> Any:
    logits = x @ weights.slope + weights.offset
    return jnp.stack([jnp.zeros_like(logits), logits], axis=-1)


START = Weights(np.zeros(3, np.float32), np.float32(0.0))
KERNEL = cm.csghmc(2e-4, partition=cm.Partition(low=50, width=10, bins=40), zeta=10.0)


def posterior(**options: Any) -> cm.Posterior:
    given: dict[str, Any] = dict(log_likelihood=log_likelihood, data=data()) | options
    return cm.Posterior(log_prior=log_prior, batch_size=BATCH, **given)


def of_posterior(
    target: Any, checkpoint: Path | None, steps: int = 60_000, kernel: cm.Kernel = KERNEL, **options: Any
) -> cm.Samples:
    return cm.sample(
        target, init=START, steps=int(SHARE * steps), kernel=kernel, chains=2, thin=20, seed=5, checkpoint=checkpoint,
        checkpoint_every=EVERY, **options,
    )  # fmt: skip


def automatic(checkpoint: Path | None) -> cm.Samples:
    return cm.sample(
        wells, init=jnp.ones(3), steps=int(SHARE * 60_000), seed=1, thin=5, checkpoint=checkpoint,
        checkpoint_every=EVERY,
    )  # fmt: skip


def flattened(checkpoint: Path | None) -> cm.Samples:
    kernel = cm.csgld(0.01, partition=cm.Partition(low=0, width=0.5, bins=40), zeta=0.75)
    return cm.sample(
        lambda x: wells(x["a"]) + wells(x["b"]), init={"a": jnp.ones(2), "b": 1.0}, kernel=kernel,
        steps=int(SHARE * 400_000), chains=3, seed=2, thin=40, checkpoint=checkpoint, checkpoint_every=EVERY,
    )  # fmt: skip


def exchanging(checkpoint: Path | None) -> cm.Samples:
    kernel = cm.replica_exchange(cm.sgld(0.01, 1.0), cm.sgld(0.01, 3.0))
    return cm.sample(
        wells, init=jnp.ones(2), steps=int(SHARE * 400_000), kernel=kernel, seed=3, thin=50, checkpoint=checkpoint,
        checkpoint_every=EVERY,
    )  # fmt: skip


def averaged(checkpoint: Path | None) -> cm.Samples:
    x, y = data()
    average = cm.ClassificationAverage(predict, x[:50], y[:50])
    return of_posterior(posterior(), checkpoint, average=average, store=False)


def trained(checkpoint: Path | None) -> cm.Samples:
    """By a learning rate; its bins follow the energies, and its chains share θ."""
    x, y = data()
    average = cm.ClassificationAverage(predict, x[:50], y[:50])
    return cm.sample(
        posterior(), init=START, steps=int(SHARE * 60_000), learning_rate=0.1, chains=2, thin=20, seed=7,
        average=average, checkpoint=checkpoint, checkpoint_every=EVERY,
    )  # fmt: skip


def stateful(checkpoint: Path | None) -> cm.Samples:
    return of_posterior(posterior(log_likelihood=with_state, state=np.zeros(3, np.float32)), checkpoint)


def exchanging_states(checkpoint: Path | None) -> cm.Samples:
    kernel = cm.replica_exchange(cm.sghmc(2e-4, 1.0), cm.sghmc(2e-4, 3.0))
    target = posterior(log_likelihood=with_state, state=np.zeros(3, np.float32))
    return of_posterior(target, checkpoint, steps=30_000, kernel=kernel)


def snapshots(checkpoint: Path | None) -> cm.Samples:
    return of_posterior(posterior(snapshot_epochs=3), checkpoint)


def mapped(checkpoint: Path | None) -> cm.Samples:
    file = Path(gettempdir()) / "contourmc-torture.npy"
    x, y = data()
    if not file.exists():
        np.save(file, x)
    return of_posterior(posterior(data=(np.load(file, mmap_mode="r"), y)), checkpoint, steps=10_000)


def several(checkpoint: Path | None) -> cm.Samples:
    x, y = data()
    halves = [posterior(data=(x[rows], y[rows])) for rows in (slice(0, 256), slice(256, 512))]
    return cm.sample(
        halves, init=START, steps=int(SHARE * 60_000), kernel=KERNEL, thin=20, seed=6, checkpoint=checkpoint,
        checkpoint_every=EVERY,
    )  # fmt: skip


class Loader:
    """Shuffled batches, one epoch after the other, with a state as torchdata's loaders have it."""

    def __init__(self) -> None:
        self.epoch = self.place = 0

    def __iter__(self) -> Iterator[Any]:
        x, y = data()
        while True:
            order = np.random.default_rng(self.epoch).permutation(ROWS).reshape(-1, BATCH)
            while self.place < len(order):
                rows = order[self.place]
                self.place += 1
                yield x[rows], y[rows]
            self.epoch, self.place = self.epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "place": self.place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.place = state["epoch"], state["place"]


def streamed(checkpoint: Path | None) -> cm.Samples:
    def batches() -> Iterator[Any]:
        return iter(Loader())

    target = cm.StreamedPosterior(log_likelihood, log_prior, batches, ROWS)
    return of_posterior(target, checkpoint, steps=10_000)


def loaded(checkpoint: Path | None) -> cm.Samples:
    target = cm.StreamedPosterior(log_likelihood, log_prior, Loader, ROWS)
    return of_posterior(target, checkpoint, steps=10_000)


KINDS: dict[str, Run] = {
    "automatic": automatic,
    "a kernel": flattened,
    "replica exchange": exchanging,
    "average": averaged,
    "a learning rate": trained,
    "state": stateful,
    "states of replicas": exchanging_states,
    "snapshots": snapshots,
    "memory-mapped data": mapped,
    "list of targets": several,
    "loader": streamed,
    "loader with a state": loaded,
}
