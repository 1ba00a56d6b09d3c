"""The posterior of a model on data, seen a mini-batch at a time."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from contourmc._core.checks import require, require_count, require_finite
from contourmc._core.pytrees import Position, as_array
from contourmc.data.host_callback import HostData
from contourmc.data.host_side import require_alone
from contourmc.data.memmap_reader import MemmapReader
from contourmc.data.permutation import shuffled
from contourmc.targets.control_variate import WithSnapshot, correction, no_snapshot, take_snapshot
from contourmc.targets.minibatch import Augment, FlattenBy, LogLikelihood, LogPrior, MiniBatchTarget


@dataclass(frozen=True, eq=False)
class Posterior(MiniBatchTarget, arrays=("data", "state")):
    """Ũ(x) = −(N/n)·Σ_{i in the batch} log p(data_i | x) − log prior(x), from n of N observations.

    log_likelihood: a function from the parameters and a batch to the n log likelihoods of its observations.
        With a `state`: from the parameters, the state and a batch to the log likelihoods and the new state. If its last
        parameter is called `key`, it also gets a random key, which depends on the seed, the chain and the step alone.
    log_prior: a function from the parameters to their log density, up to a constant.
    data: any pytree of arrays with one entry for each observation along the first axis, for example (x, y).
        It is put on the device once, and is an argument of the compiled program.
    batch_size: n. With n = N nothing is random, and a run can tune itself; else it needs a learning_rate or a kernel.
    replace: False: an epoch is N // n steps through the data in a new random order, which leaves out N mod n
        observations; True: every observation of a batch is drawn from all the data.
    augment: a function from a random key and a batch to the batch that the likelihood sees.
    state: the initial state of the model besides its parameters, such as batch-norm statistics.
    resident: whether the data are put on the device. If not, the rows of a batch are read during the step before it;
        the batches are the same. By default all data are resident, unless an array is memory-mapped.
    snapshot_epochs: after how many epochs the energies of all observations, not augmented, are computed again and kept
        as a control variate: near that position the energy of a batch, and so its bin, has little noise
        (control_variate.py). The gradient does not change. None: no control variate.
    batch_parts: in how many equal parts a batch is evaluated: side by side, if there are as many devices for each
        chain, else one after the other, which takes less memory. Batch-norm statistics are those of a part, and the new
        state is the mean over the parts. See docs/scaling.md.
    flatten_by: what a contour kernel flattens by: "energy", Ũ; or "data", its first term alone, without the prior.
        Energies, bins and weights are then those of this term, and the multiplier acts on its gradient
        (_core/gradient_terms.py). None: the energy; in a run with a `learning_rate`, the data.

    Unbiased: the mean of Ũ over batches is the energy on all the data, since all choices of n are equally probable.

    >>> likelihood = cm.GaussianLikelihood(line, noise=0.1)
    >>> posterior = cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x, y), batch_size=10)
    >>> run = cm.sample(posterior, init=0.0, steps=2_000, learning_rate=0.01, temperature=1.0)
    >>> print(f"{run.mean():.1f}")
    2.0
    """

    log_likelihood: LogLikelihood
    log_prior: LogPrior
    data: Any
    batch_size: int
    replace: bool = False
    augment: Augment | None = None
    state: Any = None
    resident: bool | None = None
    snapshot_epochs: int | None = None
    batch_parts: int = 1
    flatten_by: FlattenBy | None = None
    size: int = field(init=False)
    random: bool = field(init=False, repr=False)

    def __post_init__(self):
        self.check_functions()
        leaves = jax.tree.leaves(self.data)
        resident = self.resident
        if resident is None:
            resident = not any(isinstance(leaf, np.memmap) for leaf in leaves)
        size = check_data(self.data, finite=resident)
        batch_size = require_count("batch_size", self.batch_size, 1, "a batch needs at least 1 observation")
        require(batch_size <= size, "batch_size", batch_size, f"there are only {size} observations")
        if self.snapshot_epochs is not None:
            epochs = require_count(
                "snapshot_epochs", self.snapshot_epochs, 1, "give 1 or more, or None for no snapshots"
            )
            remedy = "batches of all the data have no noise that a snapshot could reduce"
            require(batch_size < size or self.replace, "snapshot_epochs", epochs, remedy)
            remedy = "the energies of a likelihood with a random key are no control variate: leave snapshots out"
            require(not self.random, "snapshot_epochs", epochs, remedy)
            object.__setattr__(self, "snapshot_epochs", epochs)
        if hasattr(self.log_likelihood, "check_data"):
            self.log_likelihood.check_data(self.data)  # type: ignore[attr-defined]
        data = (
            jax.tree.map(as_array, self.data)
            if resident
            else HostData(MemmapReader(jax.tree.map(np.asarray, self.data)))
        )
        for name, value in dict(batch_size=batch_size, resident=resident, data=data, size=size).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "state", jax.tree.map(jnp.asarray, self.state))
        self.check_parts()
        whole = self.batch_parts == 1 or self.snapshot_epochs is None
        require(whole, "batch_parts", self.batch_parts, "snapshots need batches in one part")

    @property
    def exact(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every batch is all the data, as they are, and the energy is all of it."""
        fixed = self.augment is None and self.state is None and not self.random and self.flatten_by != "data"
        return self.batch_size == self.size and not self.replace and fixed

    @property
    def calls_host(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return isinstance(self.data, HostData)

    def init(self) -> Any:
        return self.state if self.snapshot_epochs is None else WithSnapshot(self.state, no_snapshot(self.size))

    def drawn(self, state: Any) -> Any:
        return state if self.snapshot_epochs is None else state.model

    def prepare(self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]) -> tuple[Any, Any]:
        """The observations of each step's batch, and its random key. With snapshots, a pair: these, and
        whether to take a new snapshot.
        """
        batches = self._batches(key, steps)
        if self.snapshot_epochs is None:
            return batches
        return batches, (steps - 1) % (self.snapshot_epochs * self.steps_per_epoch) == 0

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> tuple[Float[Array, ""], Position, Any]:
        if self.snapshot_epochs is None:
            return super().evaluate_from(inputs, position, state)
        batch, renew = inputs
        model, snapshot = state
        snapshot = jax.lax.cond(
            renew, lambda: take_snapshot(self.energies(position, model)), lambda: snapshot
        )  # a branch under vmap too: all chains renew theirs at the same steps
        energy, gradient, model = super().evaluate_from(batch, position, model)
        return energy + correction(snapshot, batch[0]), gradient, WithSnapshot(model, snapshot)

    def _batches(
        self, key: PRNGKeyArray, steps: Int[Array, " steps"]
    ) -> tuple[Int[Array, "steps batch"] | None, Key[Array, " steps"] | None]:
        order_key, other_key = jax.random.split(key)
        keys = self._step_keys(other_key, steps)
        if self.batch_size == self.size and not self.replace and self.resident:
            return None, keys
        chosen = self._chosen(order_key, steps)
        if isinstance(self.data, HostData):
            following = steps + steps.shape[0] if self.replace else steps[-1:] + 1
            following = self._chosen(order_key, following)[:1]
            chosen = chosen + self.data.expect(jnp.concatenate([chosen, following]))
        return chosen, keys

    def _chosen(self, key: PRNGKeyArray, steps: Int[Array, " steps"]) -> Int[Array, "steps batch"]:
        if self.replace:
            shape = (*steps.shape, self.batch_size)
            return jax.random.randint(jax.random.fold_in(key, steps[0]), shape, 0, self.size)

        def batch_of(step: Int[Array, ""]) -> Int[Array, " batch"]:
            epoch, batch = jnp.divmod(step - 1, self.steps_per_epoch)
            places = batch * self.batch_size + jnp.arange(self.batch_size)
            return shuffled(jax.random.fold_in(key, epoch), places, self.size)

        return jax.vmap(batch_of)(steps)

    def batch(self, chosen: Int[Array, " batch"] | None) -> tuple[Any, Bool[Array, ""] | None]:
        if chosen is None:
            return self.data, None
        if isinstance(self.data, HostData):
            return self.data.fetch(chosen)
        return jax.tree.map(lambda leaf: leaf[chosen], self.data), None

    def batch_shapes(self) -> Any:
        return jax.eval_shape(self.batch, jax.ShapeDtypeStruct((self.batch_size,), jnp.int32))[0]

    def energy(self, position: Position) -> Float[Array, ""]:
        """The energy on all the data, not augmented, with the initial state; for a likelihood that takes a random key,
        with one that is always the same.
        """
        if isinstance(self.data, HostData):
            return jnp.sum(self.energies(position, self.state)) - self.log_prior(position)
        log_likelihoods, _ = self._likelihood(position, self.state, self.data, jax.random.key(0))
        return -jnp.sum(log_likelihoods) - self.log_prior(position)

    def energies(self, position: Position, state: Any) -> Float[Array, " size"]:
        """−log p(data_i | x) of every observation, not augmented, a batch at a time."""

        def of_batch(chosen: Int[Array, " batch"]) -> Float[Array, " batch"]:
            batch, fine = self.batch(chosen)
            energies = -self._likelihood(position, state, batch, jax.random.key(0))[0]
            return energies if fine is None else jnp.where(fine, energies, jnp.nan)

        places = jnp.arange(-(-self.size // self.batch_size) * self.batch_size)
        places = jnp.minimum(places, self.size - 1).reshape(-1, self.batch_size)  # the last batch is padded
        return jax.lax.map(of_batch, places).ravel()[: self.size]

    def session(self) -> AbstractContextManager[None]:
        require_alone(self.data)
        return self.data.reader.session() if isinstance(self.data, HostData) else nullcontext()

    def reading(self) -> AbstractContextManager[None]:
        return self.data.reader.reading() if isinstance(self.data, HostData) else nullcontext()

    def after(self, step: int) -> None:
        if isinstance(self.data, HostData):
            self.data.after(step)


def check_data(data: Any, *, finite: bool) -> int:
    """The number of observations; raises unless all arrays agree on it and, if asked, all numbers are finite."""
    leaves = [(f"data{jax.tree_util.keystr(path)}", leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(data)]
    require(bool(leaves), "data", data, "give at least one array")
    for name, leaf in leaves:
        shape = np.shape(leaf)
        require(len(shape) > 0, name, leaf, "give an array with one entry for each observation")
        first_name, first = leaves[0]
        remedy = f"every array needs one entry for each observation, and {first_name} has {np.shape(first)[0]}"
        require(shape[0] == np.shape(first)[0], name, f"{shape[0]} entries", remedy)
        require(shape[0] > 0, name, "an empty array", "give at least one observation")
        kind = np.asarray(leaf).dtype if not isinstance(leaf, jax.Array) else leaf.dtype
        numeric = jnp.issubdtype(kind, jnp.number) or jnp.issubdtype(kind, jnp.bool_)
        require(numeric, name, f"an array of {kind}", "give numbers")
        if finite:
            require_finite(name, np.asarray(leaf))
    return np.shape(leaves[0][1])[0]
