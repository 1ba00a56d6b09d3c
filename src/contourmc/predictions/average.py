"""What a run can average while it goes on: a function of every kept draw, summed in the compiled loop."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from contourmc._core.info import Info
from contourmc._core.pytrees import HoldsArrays, Position
from contourmc.draws.weighted import WeightedDraws


class Average(HoldsArrays, ABC):
    """Sums over the kept draws of a chain, and what follows from them.

    Arrays that it holds are arguments of the compiled program if its class names them, as for a `Target`.

    functions: the names of attributes that are functions and matter to `add` only. They are traced anew for every run.

    >>> average = cm.RegressionAverage(cm.GaussianLikelihood(line, noise=0.1).predict, x, effective=0.5)
    >>> isinstance(average, cm.Average), average.over(run).mean.shape
    (True, (100,))
    """

    functions: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def init(self) -> Any:
        """Sums over no draws, a pytree of arrays."""

    @abstractmethod
    def add(self, sums: Any, info: Info, position: Position, state: Any) -> Any:
        """The sums with one more draw, from its info (energy and log weight), position, and the target's state."""

    def check_start(self, position: Position, state: Any) -> None:
        """Raise if the average cannot be made of a position where a run starts; for most, nothing is wrong there."""

    @abstractmethod
    def finish(self, sums: Any, comparable_weights: bool = False) -> Any:
        """The result, from sums stacked along a leading chain axis.

        comparable_weights: whether θ was fixed and the same for all chains, so that weights can be compared between
            them. If not, chains count equally.
        """

    def over(self, samples: WeightedDraws) -> Any:
        """The result over the stored draws of a finished run: the same as `run.average`, if it was given to the run."""

        def one_chain(draws: Any) -> Any:
            def body(sums: Any, draw: Any) -> tuple[Any, None]:
                position, state, *numbers = draw
                info = Info(numbers[0], jnp.zeros((), jnp.int32), numbers[1], numbers[2])
                return self.add(sums, info, position, state), None

            return jax.lax.scan(body, self.init(), draws)[0]

        numbers = samples.energies, samples.multipliers, samples.log_weights
        sums = jax.jit(jax.vmap(one_chain))((samples.positions, samples.target_states, *numbers))
        return self.finish(sums, samples.comparable_weights)


class Weights(NamedTuple):
    """What running means need to know of the weights w_1 … w_k of the draws so far.

    log_total: log Σ w.
    concentration: Σ w² / (Σ w)²; its inverse is how many equally weighted draws they are worth.
    draws: k.
    """

    log_total: Float[Array, "..."]
    concentration: Float[Array, "..."]
    draws: Int[Array, "..."]


def no_weights() -> Weights:
    zero = jnp.zeros((), jnp.result_type(float))
    return Weights(zero - jnp.inf, zero, jnp.zeros((), jnp.int32))


def add_weight(weights: Weights, log_weight: Float[Array, ""]) -> tuple[Weights, Float[Array, ""]]:
    """The weights with one more, and its share of the total, s = w_k / Σ w.

    A running mean is updated by f̄ ← f̄ + s·(f − f̄): no weight, however large or small, over- or underflows.
    """
    log_total = jnp.logaddexp(weights.log_total, log_weight)
    # In compiled code the difference may exceed 0 by a rounding error.
    share = jnp.minimum(jnp.exp(log_weight - log_total), 1.0)
    concentration = (1 - share) ** 2 * weights.concentration + share**2
    return Weights(log_total, concentration, weights.draws + 1), share
