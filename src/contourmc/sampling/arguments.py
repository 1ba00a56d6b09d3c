"""The arguments of `sample`: what is possible, and what is chosen where nothing is given."""

import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc._core.checks import naming, require, require_count, require_memory, require_number
from contourmc._core.cores import available_memory
from contourmc._core.pytrees import Position, as_array, bytes_of, position_size
from contourmc.flattening.partition import Partition
from contourmc.kernels.base import Kernel
from contourmc.predictions.average import Average
from contourmc.targets.base import Target, check_position
from contourmc.targets.view import View


def choose_thin(thin: int | None, kept: int, positions: Any, averaged: bool, *, store: bool, on_disk: bool) -> int:
    """The steps for each kept draw: as given, or chosen so that the draws fit into memory, also if they are on disk.

    positions: what is kept of the chains at one step, or its shapes.
    """
    if thin is None:
        room = 2**28 // position_size(positions) if store else 10_000
        thin = max(1, kept // min(100 if averaged else 10_000, max(1, room)))
    thin = require_count("thin", thin, 1, "give 1 or more")
    require(thin <= kept, "thin", thin, f"there are {kept} steps after burn-in, so that no draw would be kept")
    if store and not on_disk:
        remedy = "give a larger thin, fewer chains, a checkpoint folder, or store=False"
        require_memory("thin", thin, kept // thin * bytes_of(positions), available_memory(), "the draws", remedy)
    return thin


def check_chains(chains: int, position: Any = None) -> None:
    """Raise for so many chains that not even their keys, positions and states would fit into memory.

    position: the start of one chain, or its shapes; None if it is not known yet.
    """
    least = (64.0 + 2 * bytes_of(position)) * chains
    require_memory("chains", chains, least, available_memory(), "they alone", "give fewer chains")


def as_averages(average: Any, listed: bool) -> list[Average]:
    """The averages as a list, which they are given as if targets are."""
    given = [] if average is None else list(average) if isinstance(average, (list, tuple)) else [average]
    remedy = "give an Average, such as ClassificationAverage(...), or a list of them with a list of targets"
    right = all(isinstance(one, Average) for one in given) and (listed or not isinstance(average, (list, tuple)))
    require(right, "average", [type(one).__name__ for one in given], remedy)
    return given


def check_lists(count: int, averages: Any, kernel: Kernel | None, learning_rate: Any, chains: int | None) -> None:
    """Raise unless a list of `count` targets comes with a kernel, and with the same number of chains and averages."""
    require(count > 0, "target", [], "a list needs at least one target")
    remedy = "a list of targets needs a kernel, such as csgld(...), or a learning_rate"
    require(kernel is not None or learning_rate is not None, "kernel", kernel, remedy)
    remedy = f"there are {count} targets in the list, one for each chain"
    require(chains is None or chains == count, "chains", chains, f"{remedy}: give as many chains, or leave it out")
    given = len(averages) if isinstance(averages, Sequence) else type(averages).__name__
    require(averages is None or given == count, "average", given, f"{remedy}: give a list of as many averages, or none")


def check_automatic(target: Target, partition: Any, step_size: Any, steps: int, burn_in: int) -> None:
    """Raise for settings with which a run cannot tune itself."""
    bins = isinstance(partition, Partition) or (isinstance(partition, str) and partition == "auto")
    require(bins, "partition", partition, 'give Partition(low=…, width=…, bins=…), or "auto"')
    given = not (isinstance(step_size, str) and step_size == "auto")
    if given:
        require_number("step_size", step_size, 'give a step size above 0, or "auto"', positive=True)
    remedy = "a target with a state needs a learning_rate, or a kernel, such as csghmc(...)"
    require(target.init() is None, "kernel", None, remedy)
    observations = target.observations
    if observations is not None and not target.exact:
        remedy = "the noise of mini-batches hides the energies by which a run tunes itself. Give a learning_rate of the"
        size = f"mean loss, such as 0.1, or a kernel, such as sgld({0.1 / observations:.2g}); see docs/networks.md"
        few = "Or put all data in one batch, which needs none"
        require(False, "learning_rate", None, f"{remedy} {size}. {few}")
    remedy = "energies with noise need a step_size: the automatic choice rests on a Metropolis test"
    require(target.exact or given, "step_size", step_size, remedy)
    remedy = "a run that tunes itself needs 1,000 steps or more; give a kernel for a shorter one"
    require(steps >= 1000, "steps", steps, remedy)
    remedy = f"a run that tunes itself needs at least a fifth of its {steps} steps for that"
    require(5 * burn_in >= steps, "burn_in", burn_in, remedy)


def starting_positions(target: Target, init: Any, keys: Array, per_chain: bool) -> Position:
    """The positions where chains are to start, as they are sampled, stacked along a leading chain axis."""
    if init is None:
        starts = target.starts(_keys_of_starts(keys))
        require(starts is not None, "init", None, "give a position, or a function from a random key to one")
        return _not_half(starts)
    given = _not_half(_given_positions(init, keys, per_chain))
    return given if target.view is None else _unconstrained(target.view, given)


def _not_half(positions: Any) -> Any:
    """Numbers of half precision as float32: in 8 or 11 bits, most of a step and its noise would be rounded away."""

    def wide(leaf: Array) -> Array:
        return leaf.astype(jnp.float32) if jnp.finfo(leaf.dtype).bits < 32 else leaf

    return jax.tree.map(wide, positions)


def _keys_of_starts(keys: Array) -> Array:
    return jax.vmap(jax.random.fold_in, (0, None))(keys, 2**31)


def _unconstrained(view: View, given: Any) -> Position:
    """The sampled positions of stacked ones that the user gave; raises unless they are inside of their support."""
    view.check_starts(given)
    positions = jax.vmap(view.unconstrain)(given)
    remedy = "there is nothing to sample: a simplex of one number is always 1"
    require(position_size(positions) > 0, "init", "a position of which no number is free", remedy)
    for path, leaf in jax.tree_util.tree_leaves_with_path(positions):
        name = f"init{jax.tree_util.keystr(path)}"
        finite = bool(np.all(np.isfinite(np.asarray(leaf, float))))
        require(finite, name, "a number on the edge of its support, or not finite", "start inside of the support")
    return positions


def _given_positions(init: Any, keys: Array, per_chain: bool) -> Any:
    """The positions that the user gave, stacked."""
    chains = keys.shape[0]
    if callable(init):
        nnx = sys.modules.get("flax.nnx")  # whoever has a module, which is no function of a key, has imported it
        remedy = "give its parameters: graph, params = nnx.split(model), with nnx.merge(graph, params) in the energy"
        require(nnx is None or not isinstance(init, nnx.Module), "init", type(init).__name__, remedy)
        remedy = "a function given as init takes a random key, and gives a position"
        with naming("init", init, "with a random key", remedy):
            check_chains(chains, jax.eval_shape(init, jax.eval_shape(lambda: jax.random.key(0))))
            positions = jax.vmap(init)(_keys_of_starts(keys))
        check_position(positions)
        return positions
    check_position(init)
    # As NumPy arrays, whose types are definite: Python's floats would need a separate compilation.
    init = jax.tree.map(lambda leaf: np.asarray(as_array(leaf)), init)
    if not per_chain:
        check_chains(chains, init)
        return jax.tree.map(lambda leaf: jnp.asarray(np.broadcast_to(leaf, (chains, *leaf.shape))), init)
    for leaf in jax.tree.leaves(init):
        remedy = f"with per_chain_init every leaf needs a leading axis of {chains}, one entry for each chain"
        require(leaf.ndim > 0 and leaf.shape[0] == chains, "init", f"a leaf of shape {leaf.shape}", remedy)
    return jax.tree.map(jnp.asarray, init)
