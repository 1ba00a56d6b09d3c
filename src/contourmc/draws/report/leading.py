"""What is shown of a large run: the leading coordinates, and some of the draws."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import jax
import numpy as np

from contourmc._core.pytrees import named_leaves
from contourmc.draws.trajectory import Trajectory
from contourmc.draws.weighted import WeightedDraws

Place = tuple[int, tuple[int, ...]]  # of a number: which array of the position, and where in it


class Leading(NamedTuple):
    """names: of the first coordinates.
    total: how many the position has.
    samples: the run, with these alone: its positions are tuples of numbers.
    """

    names: list[str]
    total: int
    samples: WeightedDraws


def leading(samples: WeightedDraws, most: int) -> Leading | None:
    """The first coordinates, with the same estimates as in the whole run; None if the run knows none.

    Where draws are not stored, means and variances of the trajectory remain.
    """
    trajectory = samples.trajectory
    like = trajectory.means if samples.draws is None else samples.draws
    if like is None:
        return None
    leaves = named_leaves(like)
    shapes = {name: tuple(leaf.shape[2:]) for name, leaf in leaves.items()}
    names, places = map(list, zip(*islice(_places(shapes), most), strict=True))
    narrowed = replace(
        samples, draws=_pick(samples.draws, places, 2), trajectory=_narrow(trajectory, places), unconstrained=None,
        basins=None, target=None,
    )  # fmt: skip
    return Leading(names, sum(map(math.prod, shapes.values())), narrowed)


def every(samples: WeightedDraws, most: int) -> tuple[WeightedDraws, int]:
    """The run with at most so many draws of all chains, evenly spread; and which of them it has, one in so many."""
    stride = max(1, -(-samples.energies.size // most))
    if stride == 1:
        return samples, 1

    def thin(leaf: Any) -> np.ndarray:
        return np.asarray(leaf)[:, ::stride]

    columns = {name: getattr(samples, name) for name in ("energies", "log_weights", "multipliers", "virials")}
    trees = {name: jax.tree.map(thin, getattr(samples, name)) for name in ("draws", "unconstrained")}
    thinned = {name: None if column is None else thin(column) for name, column in columns.items()}
    basins = samples.basins
    if basins is not None and basins.labels is not None:
        basins = replace(basins, labels=thin(basins.labels))
    return replace(
        samples, steps=samples.steps[::stride], target_states=None, basins=basins, **thinned, **trees
    ), stride


def _places(shapes: dict[str, tuple[int, ...]]) -> Iterator[tuple[str, Place]]:
    for leaf, (name, shape) in enumerate(shapes.items()):
        for index in np.ndindex(shape):
            yield name + "".join(f"[{i}]" for i in index), (leaf, index)


def _pick(tree: Any, places: list[Place], axes: int) -> Any:
    """Some numbers of stacked positions, as a tuple."""
    if tree is None:
        return None
    leaves = jax.tree.leaves(tree)
    arrays = {leaf: np.asarray(leaves[leaf]) for leaf in {leaf for leaf, _ in places}}
    return tuple(arrays[leaf][(slice(None),) * axes + index] for leaf, index in places)


def _narrow(trajectory: Trajectory, places: list[Place]) -> Trajectory:
    return replace(
        trajectory,
        means=_pick(trajectory.means, places, 2),
        squares=_pick(trajectory.squares, places, 2),
        centre=_pick(trajectory.centre, places, 1),
    )
