"""What all posteriors on data share: from a batch to an energy, its gradient, and the new state of the model."""

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from contourmc._core.checks import naming, require, require_count
from contourmc._core.gradient_terms import GradientTerms
from contourmc._core.pytrees import Position
from contourmc.targets.base import Target, at_init
from contourmc.targets.parts import Evaluated, sum_over_parts, take_part
from contourmc.targets.random_key import takes_key

LogLikelihood = Callable[..., Any]
LogPrior = Callable[[Any], Array]
FlattenBy = Literal["energy", "data"]
Augment = Callable[[PRNGKeyArray, Any], Any]
_OF_LIKELIHOOD = 2**31 + 1  # folded into the key of a step, which `augment` may have split


class MiniBatchTarget(Target):
    """Ũ(x) = −(N/n)·Σ_{i in the batch} log p(data_i | x) − log prior(x), from n of N observations."""

    functions: ClassVar[tuple[str, ...]] = ("log_likelihood", "log_prior", "augment")
    log_likelihood: LogLikelihood
    log_prior: LogPrior
    augment: Augment | None
    state: Any
    size: int  # N
    batch_size: int  # n
    random: bool  # whether the likelihood takes a random key
    flatten_by: FlattenBy | None

    @abstractmethod
    def batch(self, chosen: Any) -> tuple[Any, Bool[Array, ""] | None]:
        """The batch for one step's inputs, and whether it could be read; None if it always can."""

    @abstractmethod
    def batch_shapes(self) -> Any:
        """The shapes and types of a batch."""

    @property
    def observations(self) -> int:
        return self.size

    @property
    def steps_per_epoch(self) -> int:
        return self.size // self.batch_size

    def init(self) -> Any:
        return self.state

    def evaluate(self, inputs: Any, position: Position) -> tuple[Float[Array, ""], Position]:
        energy, gradient, _ = self.evaluate_from(inputs, position, self.init())
        return energy, gradient

    def evaluate_from(self, inputs: Any, position: Position, state: Any) -> Evaluated:
        if self.batch_parts == 1:
            return self.evaluate_part(inputs, None, position, state)
        return sum_over_parts(self.batch_parts, lambda part: self.evaluate_part(inputs, part, position, state))

    def evaluate_part(self, inputs: Any, part: Int[Array, ""] | None, position: Position, state: Any) -> Evaluated:
        chosen, key = inputs
        batch, fine = self.batch(chosen)
        if self.augment is not None:
            batch = self.augment(key, batch)
        if part is not None:
            batch = take_part(batch, part, self.batch_size // self.batch_parts)
        if self.random:
            key = jax.random.fold_in(jax.random.fold_in(key, _OF_LIKELIHOOD), 0 if part is None else part)
        scale, by_data = self.size / self.batch_size, self.flatten_by == "data"

        def prior(position: Position) -> Float[Array, ""]:
            return -self.log_prior(position) / self.batch_parts

        def energy(position: Position) -> tuple[Float[Array, ""], Any]:
            # A new pytree with the same arrays: objects of NNX may be changed only where they were made.
            here = jax.tree.map(lambda leaf: leaf, state)
            log_likelihoods, new_state = self._likelihood(position, here, batch, key)
            of_data = -scale * jnp.sum(log_likelihoods)
            return of_data if by_data else of_data + prior(position), new_state

        (value, new_state), gradient = jax.value_and_grad(energy, has_aux=True)(position)
        if by_data:
            gradient = GradientTerms(gradient, jax.grad(prior)(position))
        # A batch that could not be read gives an energy that is not finite, which stops the run.
        return value if fine is None else jnp.where(fine, value, jnp.nan), gradient, new_state

    def by_data(self) -> "MiniBatchTarget":
        """The same, flattened by the term of the data unless the user said otherwise."""
        if self.flatten_by is not None:
            return self
        changed = copy(self)
        object.__setattr__(changed, "flatten_by", "data")
        return changed

    def check_functions(self) -> None:
        """Raise unless likelihood and prior are functions; and see whether the likelihood takes a random key."""
        for argument in ("log_likelihood", "log_prior"):
            require(callable(getattr(self, argument)), argument, getattr(self, argument), "give a function")
        object.__setattr__(self, "random", takes_key(self.log_likelihood))
        known = self.flatten_by in (None, "energy", "data")
        require(known, "flatten_by", self.flatten_by, 'give "energy" or "data", or leave it out')

    def check_parts(self) -> None:
        """Raise unless a batch can be divided into equal parts."""
        parts = require_count("batch_parts", self.batch_parts, 1, "give 1 or more")
        remedy = f"a batch of {self.batch_size} cannot be divided into so many equal parts: give a divisor"
        require(self.batch_size % parts == 0, "batch_parts", parts, remedy)

    def check(self, position: Any) -> None:
        """Raise unless the likelihood gives one float for each observation, and the prior a single one."""
        key, batch, where, made = jax.eval_shape(lambda: jax.random.key(0)), self.batch_shapes(), at_init(position), ""
        if self.augment is not None:
            with naming("augment", self.augment, f"with a random key and a batch of {self.batch_size}"):
                batch = jax.eval_shape(lambda *given: self.augment(*given), key, batch)  # type: ignore[misc]
            remedy = f"return the batch of {self.batch_size} observations that the likelihood is to see"
            require(bool(jax.tree.leaves(batch)), "augment", batch, remedy)
            made = f". It saw a batch of shapes {jax.tree.map(jnp.shape, batch)}, from augment"
        with naming("log_likelihood", self.log_likelihood, where):
            returned = jax.eval_shape(lambda *given: self._likelihood(*given), position, self.state, batch, key)
        pair = isinstance(returned, tuple) and len(returned) == 2
        remedy = "with a state, return the log likelihoods and the new state"
        require(pair, "log_likelihood", returned, remedy)
        values, new_state = returned
        floats = getattr(values, "shape", None) == (self.batch_size,) and jnp.issubdtype(values.dtype, jnp.floating)
        remedy = f"return one log likelihood for each of the {self.batch_size} observations of a batch: an array"
        require(floats, "log_likelihood", values, f"{remedy} of shape ({self.batch_size},){made}")
        require(
            _shapes(new_state) == _shapes(self.state),
            "log_likelihood",
            new_state,
            "the new state must have the shapes and types of the old",
        )
        with naming("log_prior", self.log_prior, where):
            prior = jax.eval_shape(lambda given: self.log_prior(given), position)
        scalar = getattr(prior, "shape", None) == () and jnp.issubdtype(prior.dtype, jnp.floating)
        require(scalar, "log_prior", prior, "return one float: sum over all parameters")

    def _step_keys(self, key: PRNGKeyArray, steps: Int[Array, " steps"]) -> Key[Array, " steps"] | None:
        """A key for each step, to augment its batch and for the likelihood; None if neither takes one."""
        wanted = self.augment is not None or self.random
        return jax.vmap(jax.random.fold_in, (None, 0))(key, steps) if wanted else None

    def _likelihood(self, position: Position, state: Any, batch: Any, key: PRNGKeyArray | None) -> Any:
        """The log likelihoods, and the new state. The key is for a likelihood that takes one."""
        given = (batch, key) if self.random else (batch,)
        if self.state is None:
            return self.log_likelihood(position, *given), None
        return self.log_likelihood(position, state, *given)


def _shapes(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
