"""The state of a run: its chains, what has been kept of them, and what went wrong.

A `RunState` holds everything that changes during a run: from it, the run goes on as if it had never stopped. It is one
immutable pytree, replaced as a whole after every call of the compiled program, so that its parts never disagree.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from contourmc._core.processes import on_host, whole
from contourmc._core.pytrees import Position, is_key
from contourmc.draws.trajectory import Stretch
from contourmc.kernels.base import Kernel
from contourmc.predictions.average import Average
from contourmc.targets.base import NAN_GRADIENT_CURE, Target


class Totals(NamedTuple):
    """Weighted sums over the steps of a stretch, after burn-in; weights are relative to e^log_scale.

    log_scale: the largest log weight so far.
    weight: Σ w.
    first, second: Σ w·(x − centre) and Σ w·(x − centre)², for every coordinate; None for large positions.
    """

    log_scale: Float[Array, "..."]
    weight: Float[Array, "..."]
    first: Position
    second: Position


class Health(NamedTuple):
    """Whether all numbers of a chain have been finite.

    bad_step: the first step at whose beginning a number was not finite; 0 while all is well.
    energy, multiplier: at the last step.
    """

    bad_step: Int[Array, "..."]
    energy: Float[Array, "..."]
    multiplier: Float[Array, "..."]


class Chain(NamedTuple):
    """A chain between two steps.

    key: the root of the chain's randomness.
    state: the kernel's state.
    target_state: the target's state, such as batch-norm statistics; None for most targets.
    average: the sums of the run's model average so far; None without one.
    centre: the starting position, about which totals are taken for precision; None for large positions.
    totals: sums over the current stretch of the trajectory.
    health: whether all numbers have been finite.
    """

    key: PRNGKeyArray
    state: Any
    target_state: Any
    average: Any
    centre: Position
    totals: Totals
    health: Health


class Draws(NamedTuple):
    """Kept draws, stacked along an axis; position and target_state are None in a run that does not store them, and
    the virial for a kernel that has none.
    """

    position: Position
    target_state: Any
    energy: Float[Array | np.ndarray, "..."]
    log_weight: Float[Array | np.ndarray, "..."]
    multiplier: Float[Array | np.ndarray, "..."]
    virial: Float[Array | np.ndarray, "..."] | None


class Mark(NamedTuple):
    """What is recorded at a mark: the estimates over the stretch that ends there, θ, and the visits of the bins."""

    step: int
    stretch: Stretch
    theta: Float[np.ndarray, "chains bins"] | None
    visits: Int[np.ndarray, "chains bins"] | None


class Failure(NamedTuple):
    """The chain and step at which a number was not finite, and that chain's energy and multiplier one step before.

    undefined: whether its position had become NaN, and not infinite, as by a gradient that is NaN.
    """

    chain: int
    step: int
    energy: float
    multiplier: float
    undefined: bool

    def message(self, steps_before: int) -> str:
        """In words, for a run whose chains had already made some steps before its first."""
        before = f"; the last finite energy was {self.energy:.6g}, with gradient multiplier {self.multiplier:.3g}"
        by = "Its position became NaN, as by a gradient that is NaN where the energy is finite"
        cure = f"{by}: {NAN_GRADIENT_CURE}. Otherwise try" if self.undefined else "Try"
        return (
            f"chain {self.chain} met a number that is not finite at step {steps_before + self.step}"
            f"{before if self.step > 1 else ''}. {cure} a smaller step_size; for a contour kernel also wider or fewer"
            " bins, or a partition that starts above the lowest energy. The draws so far are in this error's `samples`."
        )


class RunState(NamedTuple):
    """step: how many steps have been made.
    groups: the chains, in stacks that are advanced by one call of the compiled program each; on several devices one
        stack, of which every process holds a part.
    draws: the kept draws that are in memory, in pieces, with axes (chain, draw); of several processes, each its own.
    marks: the trajectory so far.
    failure: what ended the run, or None.
    stored: how many draws of each chain came before those in memory, and are on disk.
    """

    step: int
    groups: tuple[Chain, ...]
    draws: tuple[Draws, ...]
    marks: tuple[Mark, ...]
    failure: Failure | None
    stored: int = 0

    @property
    def chains(self) -> Chain:
        """All chains, stacked."""
        if len(self.groups) == 1:
            return self.groups[0]
        # On the host, since JAX would compile a program for every size and keep it.
        return jax.tree.map(lambda *leaves: jax.device_put(joined(tuple(map(on_host, leaves)))), *self.groups)


def start_chain(
    target: Target, kernel: Kernel, key: PRNGKeyArray, position: Position, average: Average | None, *, large: bool
) -> Chain:
    """A chain before its first step; if `large`, no totals of positions are kept."""
    centre = None if large else position
    number = jnp.zeros((), jnp.result_type(float))
    return Chain(
        key=key,
        state=kernel.init(position),
        target_state=kernel.init_target(target),
        average=None if average is None else average.init(),
        centre=centre,
        totals=no_totals(centre),
        health=Health(jnp.zeros((), jnp.int32), number, number),
    )


def no_totals(position: Position | None) -> Totals:
    """Totals over no steps."""
    zero = jnp.zeros((), jnp.result_type(float))
    zeros = jax.tree.map(jnp.zeros_like, position)
    return Totals(zero - 1e30, zero, zeros, zeros)  # a finite scale: the difference of two is a number


def joined(leaves: tuple[Array | np.ndarray, ...], axis: int = 0) -> Array | np.ndarray:
    """Arrays `on_host`, one after the other."""
    return (jnp if is_key(leaves[0]) else np).concatenate(leaves, axis=axis)


def gather(groups: tuple[Chain, ...], part: Callable[[Chain], Any]) -> Any:
    """A part of every chain, stacked, on the host; with several processes, of all of them in each."""
    parts = (whole(part(group)) for group in groups)
    return jax.tree.map(lambda *leaves: joined(leaves), *parts)


def first_failure(kernel: Kernel, bad_steps: np.ndarray, groups: tuple[Chain, ...]) -> Failure:
    """Which chain was the first to meet a number that is not finite, from the chains before that step."""
    chain = int(np.argmin(np.where(bad_steps > 0, bad_steps, np.iinfo(bad_steps.dtype).max)))

    def unknown(chain: Chain) -> Array:
        leaves = jax.tree.leaves(jax.vmap(kernel.draw)(chain.state))
        return jnp.stack([jnp.isnan(leaf).reshape(leaf.shape[0], -1).any(axis=1) for leaf in leaves]).any(axis=0)

    before, undefined = gather(groups, lambda chain: (chain.health, unknown(chain)))
    energy, multiplier = float(before.energy[chain]), float(before.multiplier[chain])
    return Failure(chain, int(bad_steps[chain]), energy, multiplier, bool(undefined[chain]))
