"""The samples of a run that has drawn nothing yet."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from contourmc._core.pytrees import Position, shape_of_one
from contourmc.draws.samples import Samples
from contourmc.draws.trajectory import Trajectory
from contourmc.engine.plan import is_large
from contourmc.targets.view import TracedView


def no_samples(positions: Position, step: int, *, store: bool, view: TracedView | None, **fields: Any) -> Samples:
    """Without a draw, after some steps from stacked positions; `store` says whether draws would be stored."""
    column = np.zeros((jax.tree.leaves(positions)[0].shape[0], 0), jnp.result_type(float))
    centre = None if is_large(shape_of_one(positions)) else jax.tree.map(np.asarray, positions)
    means = jax.tree.map(lambda leaf: leaf[:, None], centre)
    log_weights = np.full((len(column), 1), -np.inf)
    squares = jax.tree.map(np.zeros_like, means)
    none = jax.tree.map(lambda leaf: np.asarray(leaf)[:, None][:, :0], positions if store else None)
    trajectory = Trajectory(np.array([step]), log_weights, means, squares, centre, None, None)
    seen = {} if view is None else dict(view=view.view, labels=view.view.labels, unconstrained=none)
    return Samples(
        draws=none if view is None or none is None else view.of(none, 2),
        energies=column,
        log_weights=column,
        multipliers=column,
        steps=np.zeros(0, int),
        trajectory=trajectory if view is None else trajectory.without_moments(),
        **seen,
        **fields,
    )
