"""Where draws come to rest: the descent from draws to minima of the energy, and the barriers between these.

Everything here evaluates the energy of a run that is over, some positions at a time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from contourmc._core.pytrees import Position
from contourmc.draws.vectors import Vectors
from contourmc.targets.base import Target, call_on, first_step

BATCH = 1000  # positions in a call of the program that evaluates energies
AT_ONCE = 100  # positions whose energies are evaluated together
DESCENTS = 64  # positions in a call of the program that descends
ITERATIONS = 200  # of a descent, at most
FADING = 0.7  # an iteration: how long the longest steps are remembered
LONGEST = 1.0  # move of a coordinate in one iteration, in its units
ALIKE = 0.05  # minima this close in every coordinate are one
POINTS = 15  # at which the energy between two minima is evaluated
NEIGHBOURS = 4  # to which a minimum is compared
MOST = 64  # groups of minima
ALONE = 0.3  # of the draws: if so many are alone in their groups, minima are without number
LEFT = 0.02  # of the draws: how many may then stay alone


class Units(NamedTuple):
    """A point y stands for the vector x = c + σ·y, or c + L·y.

    centre: c.  scale: σ of every coordinate, or L.
    """

    centre: Any
    scale: Any

    def vectors(self, points: Any) -> Any:
        """The vectors of points, of NumPy or JAX."""
        return self.centre + (points * self.scale if self.scale.ndim == 1 else points @ self.scale.T)

    def points(self, vectors: Float[np.ndarray, "count size"]) -> Float[np.ndarray, "count size"]:
        away = vectors - self.centre
        return away / self.scale if self.scale.ndim == 1 else away @ np.linalg.inv(self.scale).T


class Minima(NamedTuple):
    """points: in the units of the descent.  energies: the energy there.  settled: whether the descent ended."""

    points: Float[np.ndarray, "count size"]
    energies: Float[np.ndarray, " count"]
    settled: Bool[np.ndarray, " count"]


def energies_of(target: Target, positions: Position) -> Float[np.ndarray, " count"]:
    """The energies of stacked positions, by one program for any number of them."""
    return np.concatenate(_in_batches(target, _evaluate, positions, BATCH)).astype(float)


def _evaluate(target: Target, positions: Position) -> Float[Array, " count"]:
    def evaluate(position: Position) -> Float[Array, ""]:
        inputs, state = first_step(target, position)
        return target.evaluate_from(inputs, position, state)[0]

    return jax.lax.map(evaluate, positions, batch_size=AT_ONCE)


def _in_batches(
    target: Target, function: Callable[..., Any], stacked: Any, size: int, *others: Any, **static: Any
) -> list[Any]:
    """A function of the target and of stacked values, which it gets in batches of one size."""
    count = jax.tree.leaves(stacked)[0].shape[0]
    found = []
    with target.session(), target.reading():
        for begin in range(0, count, size):
            rows = np.minimum(np.arange(begin, begin + size), count - 1)
            batch = jax.tree.map(lambda leaf, rows=rows: leaf[rows], stacked)
            made = call_on(target, function, batch, *others, **static)
            found.append(jax.tree.map(lambda leaf, end=count - begin: np.asarray(leaf)[:end], made))
            target.after(0)
    return found


def descend(
    target: Target, vectors: Vectors, units: Units, points: Float[np.ndarray, "count size"], settled: float
) -> Minima:
    """The minima below some points, in those units.

    vectors: how positions are made of vectors.
    settled: a descent ends where the next move would gain no more than this energy.
    """
    found = _in_batches(target, _descend, points, DESCENTS, units, settled, vectors=vectors)
    points, energies, ended = map(np.concatenate, zip(*found, strict=True))
    return Minima(points.astype(float), energies.astype(float), ended)


def _descend(
    target: Target, starts: Float[Array, "count size"], units: Units, settled: Array, *, vectors: Vectors
) -> tuple[Float[Array, "count size"], Float[Array, " count"], Bool[Array, " count"]]:
    """Steepest descent y ← y − a∇U with the steps of Barzilai and Borwein, a = s·s/s·r.

    s is the last move, and r the change of the gradient along it: on a parabola 1/a is a curvature between the least
    and the largest. A move that leads upwards is not made; the next one is a quarter as long. The descent has settled
    when ½ a |∇U|², what a step may gain, is small for the longest of the last steps.
    """

    def evaluate(point: Array) -> tuple[Array, Array]:
        position, backwards = jax.vjp(lambda point: vectors.positions(units.vectors(point)), point)
        inputs, state = first_step(target, position)
        energy, gradient, _ = target.evaluate_from(inputs, position, state)
        return energy.astype(point.dtype), backwards(gradient)[0]

    def ended(now: Any) -> Bool[Array, " count"]:
        number, _, energy, gradient, _, reach = now
        gain = 0.5 * reach * jnp.sum(gradient**2, axis=-1)
        return (number > 0) & (gain <= settled) & jnp.isfinite(energy)

    def descending(now: Any) -> Bool[Array, ""]:
        return (now[0] < ITERATIONS) & ~jnp.all(ended(now))

    def move(now: Any) -> Any:
        number, point, energy, gradient, size, reach = now
        step = jnp.clip(-size[:, None] * gradient, -LONGEST, LONGEST)
        new_energy, new_gradient = jax.vmap(evaluate)(point + step)
        finite = jnp.isfinite(new_energy) & jnp.all(jnp.isfinite(new_gradient), axis=-1)
        down = finite & (new_energy <= energy)
        bent = jnp.sum(step * (new_gradient - gradient), axis=-1)
        longer = jnp.where(bent > 0, jnp.sum(step**2, axis=-1) / jnp.where(bent > 0, bent, 1.0), jnp.inf)
        steepest = jnp.maximum(jnp.max(jnp.abs(new_gradient), axis=-1), 1e-30)
        first = jnp.minimum(1.0, 0.1 / steepest)  # the first evaluation is at the start itself
        larger = jnp.where(number == 0, first, jnp.clip(longer, size / 10, size * 10))
        size, here = jnp.where(down, larger, size / 4), down[:, None]
        return (
            number + 1, jnp.where(here, point + step, point), jnp.where(down, new_energy, energy),
            jnp.where(here, new_gradient, gradient), size, jnp.maximum(size, FADING * reach),
        )  # fmt: skip

    none = jnp.zeros(starts.shape[0], starts.dtype)
    now = jnp.zeros((), jnp.int32), starts, none + jnp.inf, jnp.zeros_like(starts), none, none
    now = jax.lax.while_loop(descending, move, now)
    return now[1], now[2], ended(now)


def grouped(
    minima: Minima, energies: Callable[[np.ndarray], np.ndarray], barrier: float, drawn: int
) -> Int[np.ndarray, " count"]:
    """A number for each minimum: those of one group are not parted by a barrier.

    energies: a function of points.
    barrier: how far the energy must rise on the way from one group to another.
    drawn: so many minima, from the first on, are those of draws taken by weight.

    Straight lines go from each minimum to its nearest neighbours, and then from each group to the nearest minima of
    other groups. Two groups are joined if on a line between them the energy stays below U + barrier, where U is the
    lowest energy of the group that is higher: so minima along a ring or a ridge become one group, link by link. A
    descent that did not come to its end belongs to the group from which the least barrier parts it.

    If there are more than MOST groups, or a share of more than ALONE of the draws is alone in its group, minima are
    without number, as on a sphere in many dimensions or in a rough landscape. Then the groups with the lowest barrier
    between them are joined, until there are no more than MOST and a share of LEFT is alone.
    """
    chosen, number = np.unique(_alike(minima), return_inverse=True)
    points, lowest = minima.points[chosen], minima.energies[chosen]
    squares = np.sum(points**2, axis=1)
    distances = squares[:, None] + squares - 2 * points @ points.T
    group = np.arange(len(chosen))
    heights: dict[tuple[int, int], float] = {}  # of the energy on the lines between minima
    while pairs := sorted(_nearest(distances, group) - heights.keys()):
        heights |= zip(pairs, _heights(points, lowest, np.array(pairs), energies).tolist(), strict=True)
        before = group
        group = _linked(group, lowest, heights, lambda rises, *_: rises < barrier)
        if np.array_equal(group, before):
            break

    def open_ended(rises: np.ndarray, one: np.ndarray, other: np.ndarray, group: np.ndarray) -> np.ndarray:
        ends = np.unique(group[minima.settled[chosen]])
        return ~np.isin(one, ends) | ~np.isin(other, ends)

    group = _linked(group, lowest, heights, open_ended)
    if _too_many(group[number], drawn, ALONE):
        few = lambda rises, one, other, group: np.full(len(rises), _too_many(group[number], drawn, LEFT))  # noqa: E731
        group = _linked(group, lowest, heights, few)
    return np.unique(group[number], return_inverse=True)[1]


def _linked(
    group: Int[np.ndarray, " count"],
    lowest: Float[np.ndarray, " count"],
    heights: dict[tuple[int, int], float],
    wanted: Callable[..., np.ndarray],
) -> Int[np.ndarray, " count"]:
    """The groups, joined in the order of the barriers between them for as long as that is wanted.

    wanted: of lines, from the barriers on them, the groups at both ends, and all groups: whether to join these two.
    """
    if not heights:
        return group
    (first, second), height = np.array(list(heights)).T, np.array(list(heights.values()))
    while True:
        bottom = np.full(len(group), np.inf)
        np.minimum.at(bottom, group, lowest)
        one, other = group[first], group[second]
        rises = height - np.maximum(bottom[one], bottom[other])
        links = np.flatnonzero((one != other) & wanted(rises, one, other, group))
        if not len(links):
            return group
        link = links[np.argmin(rises[links])]
        group = np.where(group == other[link], one[link], group)


def _alike(minima: Minima) -> Int[np.ndarray, " count"]:
    """For each minimum the row of the lowest one that is the same."""
    rows, leaders = np.zeros(len(minima.energies), int), np.zeros(0, int)
    for row in np.argsort(minima.energies, kind="stable"):
        away = np.max(np.abs(minima.points[leaders] - minima.points[row]), axis=1, initial=0.0)
        near = leaders[away < ALIKE]
        rows[row] = near[0] if len(near) else row
        leaders = leaders if len(near) else np.append(leaders, row)
    return rows


def _nearest(distances: Float[np.ndarray, "count count"], group: Int[np.ndarray, " count"]) -> set[tuple[int, int]]:
    """Pairs of minima in different groups: from each group, the nearest few."""
    apart = np.where(group[:, None] == group, np.inf, distances)
    pairs = set()
    for one in np.unique(group):
        rows = np.flatnonzero(group == one)
        closest = rows[np.argmin(apart[rows], axis=0)]  # the member of this group that is nearest to each minimum
        order = np.argsort(np.min(apart[rows], axis=0), kind="stable")[:NEIGHBOURS]
        others = [int(other) for other in order if group[other] != one]
        pairs |= {(min(int(closest[other]), other), max(int(closest[other]), other)) for other in others}
    return pairs


def _heights(
    points: np.ndarray, lowest: np.ndarray, pairs: Int[np.ndarray, "pairs 2"], energies: Callable[..., np.ndarray]
) -> Float[np.ndarray, " pairs"]:
    """The highest energy on the straight line between the minima of each pair."""
    one, other = pairs.T
    parts = np.arange(1, POINTS + 1)[:, None] / (POINTS + 1)
    lines = points[one][:, None] + parts * (points[other] - points[one])[:, None]
    along = energies(lines.reshape(-1, points.shape[1])).reshape(len(pairs), POINTS)
    ends = np.maximum(lowest[one], lowest[other])
    return np.maximum(np.where(np.isnan(along), np.inf, along).max(axis=1), ends)


def _too_many(groups: Int[np.ndarray, " count"], drawn: int, share: float) -> bool:
    sizes = np.bincount(groups[:drawn])
    return len(np.unique(groups)) > MOST or bool(np.sum(sizes == 1) > share * drawn)
