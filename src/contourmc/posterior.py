"""The posterior of a model on data, seen a mini-batch at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from contourmc.checks import require, require_count
from contourmc.kernels.base import Position
from contourmc.shuffling import shuffled
from contourmc.targets import Target

LogLikelihood = Callable[..., Any]
LogPrior = Callable[[Any], Array]


@dataclass(frozen=True, eq=False)
class Posterior(Target, arrays=("data", "state")):
    """Ũ(x) = −(N/n)·Σ_{i in the batch} log p(data_i | x) − log prior(x), from n of N observations.

    log_likelihood: a function from the parameters and a batch to the n log likelihoods of its observations.
        With a `state`: from the parameters, the state and a batch to the log likelihoods and the new state.
    log_prior: a function from the parameters to their log density, up to a constant.
    data: any pytree of arrays with one entry for each observation along the first axis, for example (x, y).
        It is put on the device once, and is an argument of the compiled program.
    batch_size: n. With all N there is nothing random.
    replace: False: an epoch is N // n steps that go through the data in a new random order, in which N mod n
        observations sit out; True: every observation of a batch is drawn from all of the data.
    augment: a function from a random key and a batch to the batch that the likelihood gets to see.
    state: what the model carries beside its parameters, as it is at the start: batch-norm statistics.

    Unbiased: the mean of Ũ over batches is the energy on all of the data, as every n of them are equally probable.
    """

    log_likelihood: LogLikelihood
    log_prior: LogPrior
    data: Any
    batch_size: int
    replace: bool = False
    augment: Callable[[PRNGKeyArray, Any], Any] | None = None
    state: Any = None

    def __post_init__(self):
        for argument in ("log_likelihood", "log_prior"):
            require(callable(getattr(self, argument)), argument, getattr(self, argument), "give a function")
        size = check_data(self.data)
        batch_size = require_count("batch_size", self.batch_size, 1, "a batch needs at least 1 observation")
        require(batch_size <= size, "batch_size", batch_size, f"there are only {size} observations")
        if hasattr(self.log_likelihood, "check_data"):
            self.log_likelihood.check_data(self.data)  # type: ignore[attr-defined]
        object.__setattr__(self, "batch_size", batch_size)
        object.__setattr__(self, "data", jax.tree.map(jnp.asarray, self.data))
        object.__setattr__(self, "state", jax.tree.map(jnp.asarray, self.state))

    @property
    def size(self) -> int:
        """N, how many observations there are."""
        return jax.tree.leaves(self.data)[0].shape[0]

    @property
    def steps_per_epoch(self) -> int:
        return self.size // self.batch_size

    def init(self) -> Any:
        return self.state

    def prepare(
        self, key: PRNGKeyArray, position: Position, steps: Int[Array, " steps"]
    ) -> tuple[Int[Array, "steps batch"] | None, Key[Array, " steps"] | None]:
        """The observations of each step's batch, and a key to augment it."""
        order_key, augment_key = jax.random.split(key)
        keys = None if self.augment is None else jax.vmap(jax.random.fold_in, (None, 0))(augment_key, steps)
        shape = (*steps.shape, self.batch_size)
        if self.replace:
            return jax.random.randint(jax.random.fold_in(order_key, steps[0]), shape, 0, self.size), keys
        if self.batch_size == self.size:
            return None, keys

        def batch_of(step: Int[Array, ""]) -> Int[Array, " batch"]:
            epoch, batch = jnp.divmod(step - 1, self.steps_per_epoch)
            places = batch * self.batch_size + jnp.arange(self.batch_size)
            return shuffled(jax.random.fold_in(order_key, epoch), places, self.size)

        return jax.vmap(batch_of)(steps), keys

    def evaluate(self, inputs: Any, position: Position) -> tuple[Float[Array, ""], Position]:
        energy, gradient, _ = self.evaluate_from(inputs, position, self.state)
        return energy, gradient

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> tuple[Float[Array, ""], Position, Any]:
        chosen, key = inputs
        batch = self.data if chosen is None else jax.tree.map(lambda leaf: leaf[chosen], self.data)
        if self.augment is not None:
            batch = self.augment(key, batch)

        def energy(position: Position) -> tuple[Float[Array, ""], Any]:
            log_likelihoods, new_state = self._likelihood(position, state, batch)
            scale = self.size / self.batch_size
            return -scale * jnp.sum(log_likelihoods) - self.log_prior(position), new_state

        (value, new_state), gradient = jax.value_and_grad(energy, has_aux=True)(position)
        return value, gradient, new_state

    def energy(self, position: Position) -> Float[Array, ""]:
        """The energy on all of the data at once, not augmented, with the state of the start."""
        log_likelihoods, _ = self._likelihood(position, self.state, self.data)
        return -jnp.sum(log_likelihoods) - self.log_prior(position)

    def check(self, position: Position) -> None:
        """Raise unless the likelihood gives a float for each observation, and the prior one."""
        batch = jax.tree.map(lambda leaf: leaf[: self.batch_size], self.data)
        returned = jax.eval_shape(self._likelihood, position, self.state, batch)
        pair = isinstance(returned, tuple) and len(returned) == 2
        remedy = "with a state, return the log likelihoods and the new state"
        require(pair, "log_likelihood", returned, remedy)
        values, new_state = returned
        floats = getattr(values, "shape", None) == (self.batch_size,) and jnp.issubdtype(values.dtype, jnp.floating)
        remedy = f"return one log likelihood for each of the {self.batch_size} observations of a batch: an array"
        require(floats, "log_likelihood", values, f"{remedy} of shape ({self.batch_size},)")
        require(
            _shapes(new_state) == _shapes(self.state),
            "log_likelihood",
            new_state,
            "the new state must have the shapes and types of the old",
        )
        prior = jax.eval_shape(self.log_prior, position)
        scalar = getattr(prior, "shape", None) == () and jnp.issubdtype(prior.dtype, jnp.floating)
        require(scalar, "log_prior", prior, "return one float: sum over all parameters")

    def _likelihood(self, position: Position, state: Any, batch: Any) -> Any:
        if self.state is None:
            return self.log_likelihood(position, batch), None
        return self.log_likelihood(position, state, batch)


def _shapes(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


def check_data(data: Any) -> int:
    """The number of observations; raise unless every array has as many, and all numbers are finite."""
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
        if jnp.issubdtype(kind, jnp.inexact):
            bad = int(jnp.sum(~jnp.isfinite(jnp.asarray(leaf))))
            remedy = "remove or fill them in; the energy would not be finite"
            require(bad == 0, name, f"{bad} numbers that are not finite", remedy)
    return np.shape(leaves[0][1])[0]
