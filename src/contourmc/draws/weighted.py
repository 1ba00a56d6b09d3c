"""Weighted draws of a run, and what is estimated from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Bool, Float

from contourmc._core.checks import require, require_count
from contourmc._core.pytrees import Position, position_size
from contourmc.draws import estimates
from contourmc.draws.basins import Basins, basins_of_draws
from contourmc.draws.run_data import RunData
from contourmc.draws.trajectory import Stretch, merge

_LARGEST = 2000  # numbers of a position whose modes are looked for
_NO_DRAWS = "no draw was kept: the run ended before its burn-in did"


@dataclass(frozen=True)
class WeightedDraws(RunData):
    """The draws of a run and the estimates from them.

    Within a chain a draw counts by its weight. Chains that each learnt their own θ are independent estimates of the
    same thing, and count equally; where θ was fixed and the same for all, draws of all chains count by their weights.
    A chain that stood `still` does not count, unless all did.
    """

    @cached_property
    def still(self) -> Bool[np.ndarray, " chains"]:
        """Which chains hardly ever moved, as where every proposal is refused."""
        return estimates.stand_still(self.energies, self.draws)

    @property
    def pooled(self) -> Bool[np.ndarray, " chains"]:
        """Which chains count in estimates: those that moved, or all if none did."""
        return ~self.still if not np.all(self.still) else np.ones(self.chains, bool)

    @property
    def weights(self) -> Float[np.ndarray, "chains draws"]:
        """The weights of the kept draws, which sum to 1.

        Where each chain learnt its own θ, all chains that count have equal sums.
        """
        require(self.energies.shape[1] > 0, "draws", 0, _NO_DRAWS)
        pooled = self.pooled[:, None]
        if self.comparable_weights:
            log_weights = np.where(pooled, self.log_weights, -np.inf)
            return estimates.normalise(log_weights.ravel()).reshape(log_weights.shape)
        return np.where(pooled, estimates.normalise(self.log_weights) / pooled.sum(), 0.0)

    @property
    def comparable_weights(self) -> bool:
        """Whether θ was fixed and the same for all chains, so that their weights can be compared."""
        return self.flattening is not None and self.flattening.fixed

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"basins": self.basins_of_draws}  # which it takes a target to find

    @cached_property
    def basins_of_draws(self) -> Basins | None:
        """The modes of the draws; where these cannot be found, the minima of the pilot, or None without one."""
        if self.without_modes:
            return self.basins
        assert self.target is not None
        assert self.flattening is not None
        assert self.flattening.temperature is not None
        evaluations = int(self.steps[-1]) * self.chains
        return basins_of_draws(
            self.sampled, self.energies, self.weights, self.target, self.flattening.temperature, evaluations,
            self.basins, self.view,
        )  # fmt: skip

    @property
    def without_modes(self) -> str:
        """Why modes of the draws cannot be found, which takes more evaluations of the energy; empty if they can."""
        flattening, target = self.flattening, self.target
        if self.draws is None or self.energies.size == 0:
            return "there are no draws"
        if flattening is None or flattening.following or not flattening.temperature:
            return "it takes a kernel that flattens, at a constant temperature"
        if not self.exact:
            return "the energy has noise"
        if target is None:
            return "the run does not know its energy, as one from a folder, a map, or with an energy for each chain"
        if target.calls_host:
            return "the energy is evaluated outside of JAX"
        large = position_size(self.sampled) > _LARGEST * self.energies.size
        return f"positions have more than {_LARGEST:,} numbers" if large else ""

    def mean(self, *, by_chain: bool = False) -> Position:
        """The mean of every coordinate, from every step after burn-in; from the kept draws of large positions, and of
        those that are sampled in other coordinates.

        >>> print(run.mean() < 0, run.mean(by_chain=True).shape)  # the left well is deeper
        True (4,)
        """
        if self.trajectory.means is None:
            return self.expectation(lambda position: position, by_chain=by_chain)
        whole = self._whole()
        return whole.mean if by_chain else self._over_chains(whole.log_weight, whole.mean)

    def variance(self) -> Position:
        """The variance of every coordinate, from the same steps as its mean.

        >>> print(f"{run.variance():.1f}")
        0.8
        """
        if self.trajectory.means is None:
            mean = self.mean()
            return self.expectation(lambda position: jax.tree.map(lambda x, m: (x - m) ** 2, position, mean))
        whole = self._whole()
        second = jax.tree.map(
            lambda square, mean, centre: square - (mean - centre) ** 2 + mean**2,
            whole.square,
            whole.mean,
            self.trajectory.centre,
        )
        second, mean = self._over_chains(whole.log_weight, (second, whole.mean))
        return jax.tree.map(lambda second, mean: second - mean**2, second, mean)

    def _whole(self) -> Stretch:
        """The estimates over the whole trajectory; raises if it has none, as in a pilot or in burn-in."""
        require(bool(np.isfinite(self.trajectory.log_weights).any()), "draws", 0, _NO_DRAWS)
        return merge(self.trajectory)

    def _over_chains(self, log_weight: Float[np.ndarray, " chains"], values: Any) -> Any:
        """The mean over chains, by their weights if these can be compared."""
        shares = self._shares(log_weight)
        return jax.tree.map(lambda leaf: np.einsum("c,c...->...", shares, leaf), values)

    def _shares(self, log_weight: Float[np.ndarray, " chains"]) -> Float[np.ndarray, " chains"]:
        if self.comparable_weights:
            return estimates.normalise(np.where(self.pooled, log_weight, -np.inf))
        return self.pooled / self.pooled.sum()

    def standard_error(self, by: Literal["chains", "batches"] | None = None) -> Position:
        """The Monte-Carlo standard error of `mean`.

        `chains`: from the spread of the chains, which also sees modes that some of them missed; the default with at
        least 4 chains. `batches`: from the stretches of the trajectory within each chain; from the correlation of the
        kept draws if there are fewer than 5 stretches. Of truth values, as of `run.map(lambda x: x > 3)`, that are the
        same at every draw, a bound, as in `expectation`.

        >>> print(run.standard_error() < 0.05)
        True
        """
        errors = self._standard_error(by)
        if self.draws is None:
            return errors

        def bounded(error: Any, leaf: Any) -> Any:
            return or_bound(self, np.asarray(error), np.asarray(leaf)) if leaf.dtype == bool else error

        return jax.tree.map(bounded, errors, self.draws)

    def _standard_error(self, by: Literal["chains", "batches"] | None) -> Position:
        pooled = self.pooled
        by = by or ("chains" if pooled.sum() >= 4 else "batches")
        require(by in ("chains", "batches"), "by", by, "choose chains or batches")
        if by == "chains":
            require(bool(pooled.sum() > 1), "by", by, "one chain has no spread; use by='batches'")
            shares = self._shares(self._whole().log_weight)[pooled]
            means = self.mean(by_chain=True)
            return jax.tree.map(lambda leaf: estimates.chain_error(shares, leaf[pooled]), means)
        self._whole()
        log_weights = self.trajectory.log_weights[pooled]
        stretches = np.isfinite(log_weights).all(axis=0).sum() * (len(log_weights) if self.comparable_weights else 1)
        if self.trajectory.means is None or stretches < 5:
            return jax.tree.map(lambda leaf: estimates.standard_errors(_as_numbers(leaf), self.weights), self.positions)
        means = jax.tree.map(lambda leaf: leaf[pooled], self.trajectory.means)
        if self.comparable_weights:  # as if one chain had made them all
            log_weights = log_weights.reshape(1, -1)
            means = jax.tree.map(lambda leaf: leaf.reshape(1, log_weights.size, *leaf.shape[2:]), means)
        return jax.tree.map(lambda leaf: estimates.batch_error(log_weights, leaf), means)

    def expectation(self, function: Callable[[Any], Any], *, by_chain: bool = False, error: bool = False) -> Any:
        """The weighted mean of any function of a position, over the kept draws; with `error` also its standard error.

        The function may use JAX or NumPy. Where it is 0 at every draw, or 1 at every draw, it is taken for an event
        that was never or always seen. Then `error` is a bound: with 95% confidence the probability is no farther from
        the mean. It is 1 − 0.05^(1/n), about 3/n, for draws that are worth n independent ones.

        >>> left, error = run.expectation(lambda x: x < 0, error=True)
        >>> print(left > 0.5 + 5 * error)
        True
        """
        values = jax.tree.map(_as_numbers, apply(function, self.positions))
        if by_chain:
            by_chains = estimates.normalise(self.log_weights)
            return jax.tree.map(lambda leaf: np.einsum("cd,cd...->c...", by_chains, leaf), values)
        weights = self.weights
        mean = jax.tree.map(lambda leaf: np.einsum("cd,cd...->...", weights, leaf), values)
        if not error:
            return mean
        return mean, jax.tree.map(lambda leaf: or_bound(self, estimates.standard_errors(leaf, weights), leaf), values)

    @cached_property
    def independent(self) -> float:
        """How many independent draws the worst coordinate and the energy are worth; constant ones do not count."""
        sizes = [estimates.effective_size(self.energies, self.weights)]
        if self.draws is not None and self.few_coordinates:
            sizes += jax.tree.leaves(self.ess())
        known = np.concatenate([np.ravel(size) for size in sizes])
        known = known[np.isfinite(known)]
        return float(known.min()) if known.size else 0.0

    def quantile(self, probabilities: float | Sequence[float] | np.ndarray) -> Position:
        """Weighted quantiles of every coordinate, over the kept draws of all chains.

        >>> print(run.quantile([0.05, 0.5, 0.95]).round(1))
        [-1.2 -0.9  1.1]
        """
        levels = np.asarray(probabilities, float)
        fine = bool(np.all((levels >= 0) & (levels <= 1)))
        require(fine, "probabilities", probabilities, "give numbers between 0 and 1")
        weights = self.weights.ravel()
        return jax.tree.map(
            lambda leaf: estimates.quantile(_pooled(_as_numbers(leaf)), weights, levels), self.positions
        )

    def histogram(
        self, function: Callable[[Any], Any] | None = None, bins: int | Sequence[float] | np.ndarray = 50
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weighted density of one number: a function of the position, or the position itself.

        >>> density, edges = run.histogram(lambda x: x**2, bins=20)
        >>> density.shape, edges.shape
        ((20,), (21,))
        """
        values = self.positions if function is None else apply(function, self.positions)
        leaves = jax.tree.leaves(values)
        single = len(leaves) == 1 and leaves[0].shape == self.energies.shape
        require(
            single,
            "function",
            function,
            "give a function from a position to one number, such as lambda x: x[0]",
        )
        return np.histogram(np.ravel(leaves[0]), bins=bins, weights=self.weights.ravel(), density=True)  # type: ignore[arg-type]

    def ess(self) -> Position:
        """How many independent, equally weighted draws each coordinate's mean is worth.

        Accounts for the weights, for the correlation along a chain, and for chains that disagree.

        >>> print(run.ess() > 200)
        True
        """
        weights = self.weights
        return jax.tree.map(lambda leaf: estimates.effective_size(_as_numbers(leaf), weights), self.positions)

    def rhat(self) -> Position:
        """R̂ of each coordinate, √(1 + variance between the chains' means / variance): 1 if the chains agree.

        NaN for a single chain, or a constant.

        >>> print(run.rhat() < 1.05)
        True
        """
        pooled = self.pooled

        def compare(means: np.ndarray, variance: Any) -> Any:
            with np.errstate(invalid="ignore"):  # of means that are not finite
                between = means[pooled].var(axis=0, ddof=1) if pooled.sum() > 1 else np.nan
                constant = variance <= 1e-14 * np.square(means).mean(axis=0)  # but for rounding
                return np.sqrt(1 + between / np.where(constant, np.nan, variance))

        return jax.tree.map(compare, self.mean(by_chain=True), self.variance())

    def resample(self, count: int, seed: int = 0) -> Position:
        """Equally weighted draws by systematic resampling, in the order of chains and steps.

        Unbiased: on average a draw appears count · weight times, and never differs from that by 1 or more.

        >>> run.resample(1000).shape
        (1000,)
        """
        count = require_count("count", count, 1, "ask for at least 1 draw")
        chosen = estimates.systematic(self.weights.ravel(), count, np.random.default_rng(seed))
        return jax.tree.map(lambda leaf: _pooled(leaf)[chosen], self.positions)


def or_bound(samples: WeightedDraws, errors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The errors of means of values, (chain, draw, …); of events that were never or always seen, a bound."""
    certain = estimates.one_sided(values, samples.weights)
    return np.where(certain, estimates.most_unseen(samples.independent), errors) if np.any(certain) else errors


def apply(function: Callable[[Any], Any], positions: Position) -> Any:
    """A function of one position, at all draws; one that JAX cannot trace, since it uses NumPy, draw by draw."""
    try:
        return jax.tree.map(np.asarray, jax.vmap(jax.vmap(function))(positions))
    except jax.errors.JAXTypeError:
        chains, draws = jax.tree.leaves(positions)[0].shape[:2]
        rows = [
            [function(jax.tree.map(lambda leaf, c=c, d=d: np.asarray(leaf[c, d]), positions)) for d in range(draws)]
            for c in range(chains)
        ]
        by_chain = [jax.tree.map(lambda *leaves: np.stack(leaves), *row) for row in rows]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *by_chain)


def _as_numbers(leaf: np.ndarray) -> np.ndarray:
    """Truth values and whole numbers as floats, so that they have a mean and an error."""
    return leaf if np.issubdtype(leaf.dtype, np.inexact) else leaf.astype(float)


def _pooled(leaf: np.ndarray) -> np.ndarray:
    return np.reshape(leaf, (-1, *leaf.shape[2:]))
