"""The posterior of a model on data that come as a stream of batches."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PRNGKeyArray

from contourmc._core.checks import require, require_count
from contourmc._core.pytrees import Position
from contourmc.data.batch_stream import BatchStream
from contourmc.data.host_callback import HostData
from contourmc.data.host_side import require_alone
from contourmc.targets.minibatch import Augment, FlattenBy, LogLikelihood, LogPrior, MiniBatchTarget


@dataclass(frozen=True, eq=False)
class StreamedPosterior(MiniBatchTarget, arrays=("batches", "state")):
    """Ũ(x) = −(N/n)·Σ_{i in the batch} log p(data_i | x) − log prior(x), from batches that a loader makes.

    log_likelihood, log_prior, augment, state, batch_parts, flatten_by: as for a `Posterior`.
    batches: any iterable of batches of n observations each: a PyTorch or Grain loader, a list, or a
        function that gives an iterator, such as a generator function. It is read from the beginning in every run, and
        again whenever it ends; an iterator, which can be read only once, is good for one run.
    size: N, the total number of observations.
    prefetch: how many batches a thread reads ahead.

    In step k all chains get the k-th batch. The energy is unbiased if every batch is a random choice of the data: the
    loader must shuffle. All batches must have the same size.

    The seed of a run does not reach the loader: the same seed gives the same draws only if the loader gives the same
    batches. One that goes on shuffling where it stopped does not, and a second run then warns. Give a function that
    makes a new loader, whose shuffling has a seed of its own:

        def batches():
            random = np.random.default_rng(0)
            while True:
                for rows in random.permutation(N).reshape(-1, n):
                    yield x[rows], y[rows]

    A run that is resumed from a checkpoint reads on where it was. A loader with a state (`state_dict` and
    `load_state_dict`, as torchdata's StatefulDataLoader; or an iterator with `get_state` and `set_state`, as Grain's)
    is set to it; from any other, the batches that the run has already had are read again and skipped.

    If the loader fails, the run raises a `DataError`, which names the batch and carries the draws so far.

    >>> batches = [(x[i::10], y[i::10]) for i in range(10)]  # or a loader
    >>> target = cm.StreamedPosterior(cm.GaussianLikelihood(line, noise=0.1), cm.GaussianPrior(1.0), batches, size=100)
    >>> cm.sample(target, init=2.0, steps=200, kernel=cm.sgld(1e-5))
    Samples(4 chains × 180 draws, SGLD)
    """

    calls_host: ClassVar[bool] = True  # pyright: ignore[reportIncompatibleVariableOverride]
    log_likelihood: LogLikelihood
    log_prior: LogPrior
    batches: Iterable[Any] | Callable[[], Iterable[Any]] | HostData
    size: int
    augment: Augment | None = None
    state: Any = None
    prefetch: int = 2
    batch_parts: int = 1
    flatten_by: FlattenBy | None = None
    batch_size: int = field(init=False)
    random: bool = field(init=False, repr=False)

    def __post_init__(self):
        self.check_functions()
        iterable = callable(self.batches) or hasattr(self.batches, "__iter__")
        require(iterable, "batches", self.batches, "give an iterable of batches, or a function that gives one")
        prefetch = require_count("prefetch", self.prefetch, 1, "read at least 1 batch ahead")
        check = getattr(self.log_likelihood, "check_data", lambda batch: None)
        data = HostData(BatchStream(self.batches, prefetch, check))  # type: ignore[arg-type]
        first = jax.tree.leaves(data.shapes)[0]
        require(len(first.shape) > 0, "batches", "a batch of single numbers", "a batch is made of arrays of n entries")
        size = require_count("size", self.size, first.shape[0], f"there are {first.shape[0]} observations in a batch")
        for name, value in dict(prefetch=prefetch, batches=data, size=size, batch_size=first.shape[0]).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "state", jax.tree.map(jnp.asarray, self.state))
        self.check_parts()

    def prepare(
        self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]
    ) -> tuple[Int[Array, " steps"], Key[Array, " steps"] | None]:
        """The number of the batch of each step, and its random key."""
        return steps, self._step_keys(jax.random.split(key)[1], steps)

    def batch(self, chosen: Int[Array, ""]) -> tuple[Any, Bool[Array, ""] | None]:
        return self._data.fetch(chosen)

    def batch_shapes(self) -> Any:
        return self._data.shapes

    def session(self) -> AbstractContextManager[None]:
        require_alone(self.batches)
        return self._data.reader.session()

    def reading(self) -> AbstractContextManager[None]:
        return self._data.reader.reading()

    def after(self, step: int) -> None:
        self._data.after(step)

    def data_state(self, step: int) -> Any:
        return self._data.reader.state(step)

    def seek(self, step: int, state: Any) -> None:
        self._data.reader.seek(step, state)

    @property
    def _data(self) -> HostData:
        assert isinstance(self.batches, HostData)
        return self.batches
