"""The modes of the draws: the minima that they come to rest in, and which draw belongs to which."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from contourmc._core.pytrees import Position
from contourmc.draws import estimates
from contourmc.draws.bridging.gaussians_fit import shrunken
from contourmc.draws.quench import DESCENTS, Minima, Units, descend, energies_of, grouped
from contourmc.draws.vectors import vectors_like
from contourmc.targets.base import Target
from contourmc.targets.view import View

BARRIER = 1.0  # times τ: minima with less between them are one mode
SAMPLE = 3  # times DESCENTS: the most draws that are taken by weight
EVALUATIONS = 100_000  # of a run, for each DESCENTS of these draws
ROUNDS = 3  # of draws that the known modes do not explain
STRANGE = 3.0  # times τ: how far the energy of such a draw lies below what they predict
STRANGEST = 100.0  # farther away does not count for more
LEAST = 1e-4  # the mass of a mode that is listed
DENSE = 16  # coordinates; with more, modes are told apart by the variances of each coordinate
NUMBERS = 500_000  # of features at a time, so that they stay close to the processor
SETTLED, POLISHED = 1e-3, 1e-6  # times τ: the energy that a descent may leave, of draws and of what is listed
NO_DRAW = -1
TAILS = 4.0  # degrees of freedom of the Student t distribution by which draws far out count less for a shape
NEAR, NEARBY = 0.3, 8  # how far from a minimum its curvature is measured, in units of σ, and at how many points
PRIOR = 5.0  # draws that what is known beforehand of a mode's shape is worth


@dataclass(frozen=True)
class Basins:
    """minima: the lowest point of each basin, a pytree like the position with a leading axis; the lowest first.
    energies: the energy there.
    scale: σ of every coordinate, the unit of distances; None for 1.
    factor: L, with LLᵀ their covariance, if distances are to be measured in units of that instead.
    seen: the minima as the user sees them; None if as they are sampled.
    labels: to which minimum each draw belongs; None for the minima of a pilot, which knew of no draws.
    """

    minima: Position
    energies: Float[np.ndarray, " basins"]
    scale: Position | None
    factor: Float[np.ndarray, "size size"] | None = None
    seen: Any = None
    labels: Int[np.ndarray, "chains draws"] | None = None

    def labels_of(self, draws: Position) -> Int[np.ndarray, "chains draws"]:
        """The labels; if there are none, the nearest minimum of each draw."""
        if self.labels is not None:
            return self.labels
        minima = scaled_vectors(self.minima, self.scale, 1, self.factor)
        labels = []
        for chain in range(jax.tree.leaves(draws)[0].shape[0]):
            positions = jax.tree.map(lambda leaf, chain=chain: leaf[chain], draws)
            one = scaled_vectors(positions, self.scale, 1, self.factor)
            labels.append(np.argmin([np.sum((one - minimum) ** 2, axis=1) for minimum in minima], axis=0))
        return np.stack(labels)


def scaled_vectors(
    positions: Position, scale: Position | None, axes: int, factor: np.ndarray | None = None
) -> np.ndarray:
    """Positions as vectors of numbers, behind some leading axes, in units of the scale: x/σ, or L⁻¹x with a factor."""
    leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(positions)]
    scales = [1.0] * len(leaves) if scale is None or factor is not None else jax.tree.leaves(scale)
    flat = [np.reshape(a / np.asarray(s), (*a.shape[:axes], -1)) for a, s in zip(leaves, scales, strict=True)]
    vectors = np.concatenate(flat, axis=-1)
    return vectors if factor is None else vectors @ np.linalg.inv(factor).T


class Cloud(NamedTuple):
    """Draws as rows: vectors as they were sampled, energies in units of τ, and weights that sum to 1.

    units: of the points that stand for the vectors.
    """

    vectors: Float[np.ndarray, "rows size"]
    energies: Float[np.ndarray, " rows"]
    weights: Float[np.ndarray, " rows"]
    units: Units

    def points(self, rows: Any) -> Float[np.ndarray, "some size"]:
        """Some of the draws."""
        return self.units.points(np.asarray(self.vectors[rows], float))

    def parts(self) -> Iterator[slice]:
        """All rows, some at a time."""
        rows = max(1, NUMBERS // len(_features(self.points(slice(1)))[0]))
        return (slice(begin, begin + rows) for begin in range(0, len(self.weights), rows))


class Prior(NamedTuple):
    """What is known of each mode before all draws are given to them: its minimum, and its variances."""

    lowest: Minima
    variances: Float[np.ndarray, "modes size"]


class Shapes(NamedTuple):
    """What each mode predicts: E_k(x) = Σ_i c_ki φ_i(x), with the features φ of a point."""

    coefficients: Float[np.ndarray, "modes features"]

    def lowest(self, cloud: Cloud) -> tuple[Int[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
        """The mode that predicts the lowest energy for each draw, and that energy."""
        found = [_features(cloud.points(part)) @ self.coefficients.T for part in cloud.parts()]
        return np.concatenate([one.argmin(axis=1) for one in found]), np.concatenate([one.min(axis=1) for one in found])


def basins_of_draws(
    draws: Position,
    energies: Float[np.ndarray, "chains draws"],
    weights: Float[np.ndarray, "chains draws"],
    target: Target,
    temperature: float,
    evaluations: int,
    known: Basins | None,
    view: View | None,
) -> Basins:
    """The modes of weighted draws.

    draws: as they were sampled.
    evaluations: how many the run has made; the search makes a part of that.
    known: the minima that a pilot found; descents start there too.

    A sample of the draws, taken by weight, goes down to its minima; minima without a barrier between them are one
    mode. The draws of a mode k have a lowest energy U_k, a mean μ_k and a covariance Σ_k, from which it predicts

        E_k(x) = U_k/τ + ½ (x − μ_k)ᵀ Σ_k⁻¹ (x − μ_k)

    for all others. A draw belongs to the mode with the lowest prediction, which is exact for Gaussians of any widths
    and masses that do not overlap. A draw whose own energy lies far below all predictions may belong to a mode that is
    not known: some of these go down to their minima in further rounds, so that modes of little mass are found as well.
    Modes of less than LEAST of the mass are not listed, unless the pilot found them.
    """
    vectors = vectors_like(draws, 2)
    cloud = _cloud(
        vectors.of(draws, 2).reshape(-1, vectors.size), energies.ravel() / temperature, weights.ravel(), known
    )

    def down(points: np.ndarray, settled: float) -> Minima:
        found = descend(target, vectors, cloud.units, points, settled * temperature)
        return found._replace(energies=found.energies / temperature)

    def at(points: np.ndarray) -> np.ndarray:
        return energies_of(target, vectors.positions(cloud.units.vectors(points))) / temperature

    random = np.random.default_rng(0)
    count = DESCENTS * int(np.clip(evaluations // EVALUATIONS, 1, SAMPLE))
    rows = np.unique(estimates.systematic(cloud.weights, count, random))
    count = len(rows)
    minima = down(cloud.points(rows), SETTLED)
    if known is not None:
        minima = _joined(minima, down(cloud.units.points(np.asarray(vectors.of(known.minima, 1), float)), SETTLED))
        rows = np.append(rows, np.full(len(known.energies), NO_DRAW))
    rounds = 0
    while True:
        groups = grouped(minima, at, BARRIER, count)
        lowest, drawn = _lowest(minima, groups), rows != NO_DRAW
        prior = _prior(cloud.points(rows[drawn]), groups[drawn], lowest, at)
        shapes = _refined(cloud, _first_shapes(cloud.points(rows[drawn]), groups[drawn], prior), prior)
        more = _strange(cloud, shapes.lowest(cloud)[1], rows, random)
        if rounds == ROUNDS or not len(more):
            break
        rounds += 1
        minima, rows = _joined(minima, down(cloud.points(more), SETTLED)), np.append(rows, more)
    shapes, modes = _refined(cloud, shapes, prior), len(lowest.energies)
    masses = np.bincount(shapes.lowest(cloud)[0], cloud.weights, minlength=modes)
    listed = np.flatnonzero((masses >= LEAST) | np.isin(np.arange(modes), groups[~drawn]))
    listed = listed[np.argsort(lowest.energies[listed], kind="stable")]
    labels = Shapes(shapes.coefficients[listed]).lowest(cloud)[0]
    found = down(lowest.points[listed], POLISHED)
    places = vectors.positions(cloud.units.vectors(found.points))
    return Basins(
        places, found.energies * temperature, None if known is None else known.scale,
        None if known is None else known.factor,
        None if view is None else jax.tree.map(np.asarray, jax.vmap(view.constrain)(places)),
        labels.reshape(energies.shape).astype(np.int16),
    )  # fmt: skip


def _cloud(vectors: np.ndarray, energies: np.ndarray, weights: np.ndarray, known: Basins | None) -> Cloud:
    """The draws, in the units that the pilot found, or else in those of their own spread."""
    centre = weights @ vectors
    if known is not None and known.factor is not None:
        scale = np.asarray(known.factor, float)
    elif known is not None and known.scale is not None:
        scale = np.concatenate([np.ravel(np.asarray(leaf, float)) for leaf in jax.tree.leaves(known.scale)])
    else:
        scale = np.sqrt(weights @ (vectors - centre) ** 2)
        scale = np.where(scale > 0, scale, 1.0)
    return Cloud(vectors, np.asarray(energies, float), weights, Units(centre, scale))


def _joined(one: Minima, other: Minima) -> Minima:
    return Minima(*map(np.concatenate, zip(one, other, strict=True)))


def _lowest(minima: Minima, groups: Int[np.ndarray, " count"]) -> Minima:
    """The lowest minimum of each group."""
    order = np.lexsort((minima.energies, groups))
    first = order[np.unique(groups[order], return_index=True)[1]]
    return Minima(*(values[first] for values in minima))


def _features(points: Float[np.ndarray, "count size"]) -> Float[np.ndarray, "count features"]:
    """φ: 1, the coordinates, and all their products; of many coordinates, only their squares."""
    size = points.shape[1]
    one, other = _pairs(size)
    products = points[:, one] * points[:, other] if size <= DENSE else points**2
    return np.concatenate([np.ones((len(points), 1)), points, products], axis=1)


def _pairs(size: int) -> tuple[Int[np.ndarray, " products"], Int[np.ndarray, " products"]]:
    """Which coordinates are multiplied with which."""
    return np.triu_indices(size) if size <= DENSE else (np.arange(size), np.arange(size))


def _moments(
    points: Float[np.ndarray, "count size"],
    weights: Float[np.ndarray, " count"],
    labels: Int[np.ndarray, " count"],
    modes: int,
) -> tuple[Float[np.ndarray, "modes features"], Float[np.ndarray, " modes"]]:
    """Σ w φ and Σ w² over the draws of each mode."""
    sums, squares = np.zeros((modes, _features(points[:1]).shape[1])), np.zeros(modes)
    order = np.argsort(labels, kind="stable")
    present, begins = np.unique(labels[order], return_index=True)
    sums[present] = np.add.reduceat(weights[order, None] * _features(points[order]), begins)
    squares[present] = np.add.reduceat(weights[order] ** 2, begins)
    return sums, squares


def _prior(
    points: Float[np.ndarray, "count size"],
    groups: Int[np.ndarray, " count"],
    lowest: Minima,
    energies: Callable[[np.ndarray], np.ndarray],
) -> Prior:
    """What is known of the modes before all draws are.

    energies: a function of points.

    The variances are those of the draws around the minima that they went down to, of all modes together, times one
    factor for each mode. It comes from the curvature at its minimum: for δ = NEAR·σξ with normal numbers ξ, the mean
    of U(x + δ) − U(x) on a Gaussian is ½ NEAR² Σ_i σ_i²/σ_ki². So a mode of few draws takes none from its neighbours.
    """
    size, modes = points.shape[1], len(lowest.energies)
    common = np.mean((points - lowest.points[groups]) ** 2, axis=0)
    common = np.where(common > 0, common, 1.0)
    steps = NEAR * np.random.default_rng(0).normal(size=(NEARBY, size)) * np.sqrt(common)
    around = energies((lowest.points[:, None] + steps).reshape(-1, size)).reshape(modes, NEARBY)
    rises = around - lowest.energies[:, None]
    counted = np.isfinite(rises) & (rises > 0)
    mean = np.sum(np.where(counted, rises, 0.0), axis=1) / np.maximum(counted.sum(axis=1), 1)
    larger = np.where(mean > 0, np.sum(steps**2 / common) / NEARBY / 2 / np.where(mean > 0, mean, 1.0), 1.0)
    return Prior(lowest, larger[:, None] * common)


def _shapes(prior: Prior, sums: Float[np.ndarray, "modes features"], squares: Float[np.ndarray, " modes"]) -> Shapes:
    """The predictions from the moments of the draws of each mode.

    Means and variances of a mode of few draws lean on what is known beforehand. Correlations are shrunk as far as they
    are noise.
    """
    lowest, size = prior.lowest, prior.lowest.points.shape[1]
    effective = sums[:, 0] ** 2 / np.where(squares > 0, squares, 1.0)
    shares = sums[:, 1:] / np.where(sums[:, :1] > 0, sums[:, :1], 1.0)
    lean = (effective / (effective + PRIOR))[:, None]
    means = lean * shares[:, :size] + (1 - lean) * lowest.points
    one, other = _pairs(size)
    products = shares[:, :size][:, one] * means[:, other] + means[:, one] * shares[:, :size][:, other]
    covariances = shares[:, size:] - products + means[:, one] * means[:, other]
    own = np.maximum(covariances[:, one == other], 0.0)
    larger = lean * np.mean(own / prior.variances, axis=1, keepdims=True) + (1 - lean)
    variances = lean * own + (1 - lean) * larger * prior.variances
    rows = []
    for k, energy in enumerate(lowest.energies):
        if size > DENSE:
            inverse = 1 / variances[k]
            pull, halves = inverse * means[k], inverse / 2
        else:
            correlations = np.eye(size)
            if effective[k] > 1:
                whole = np.zeros((size, size))
                whole[one, other] = whole[other, one] = covariances[k]
                noisy = shrunken(whole, effective[k])
                spread = np.sqrt(np.diag(noisy))
                correlations = noisy / np.outer(spread, spread)
            matrix = np.linalg.inv(correlations) / np.sqrt(np.outer(variances[k], variances[k]))
            pull, halves = matrix @ means[k], np.where(one == other, 0.5, 1.0) * matrix[one, other]
        rows.append(np.concatenate([[energy + means[k] @ pull / 2], -pull, halves]))
    return Shapes(np.stack(rows))


def _first_shapes(points: Float[np.ndarray, "count size"], groups: Int[np.ndarray, " count"], prior: Prior) -> Shapes:
    """The predictions from the draws that went down to the minima."""
    size, weights, modes = points.shape[1], np.ones(len(points)), len(prior.variances)
    squares = np.sum((points - prior.lowest.points[groups]) ** 2 / prior.variances[groups], axis=1)
    for group in np.unique(groups):
        rows = groups == group
        weights[rows] = _inside(size * squares[rows] / max(np.median(squares[rows]), 1e-300), size)
    return _shapes(prior, *_moments(points, weights, groups, modes))


def _inside(squares: Float[np.ndarray, " count"], size: int) -> Float[np.ndarray, " count"]:
    """How much draws count for a shape: those far out less, as in the likelihood of a Student t distribution.

    squares: of the distance from the mode, in units of its shape.
    """
    return (size + TAILS) / (np.maximum(squares, 0.0) + TAILS)


def _refined(cloud: Cloud, shapes: Shapes, prior: Prior) -> Shapes:
    """The predictions from the draws that are given to each mode by these."""
    labels, predicted = shapes.lowest(cloud)
    modes, size = len(prior.variances), cloud.vectors.shape[1]
    weights = cloud.weights * _inside(2 * (predicted - prior.lowest.energies[labels]), size)
    parts = [_moments(cloud.points(part), weights[part], labels[part], modes) for part in cloud.parts()]
    sums, squares = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
    return _shapes(prior, sums, squares)


def _strange(
    cloud: Cloud, predicted: Float[np.ndarray, " rows"], known: Int[np.ndarray, " some"], random: np.random.Generator
) -> Int[np.ndarray, " more"]:
    """Draws that no mode explains: half of them by weight, half by how strange they are."""
    strange = np.clip(predicted - cloud.energies - STRANGE, 0.0, STRANGEST)
    chosen = [
        estimates.systematic(chance, DESCENTS // 2, random)
        for chance in (cloud.weights * (strange > 0), strange)
        if chance.sum() > 0
    ]
    return np.setdiff1d(np.concatenate([*chosen, known[:0]]), known)
