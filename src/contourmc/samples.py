"""Weighted draws and what is estimated from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np
from jaxtyping import Float, Int

from contourmc import estimates
from contourmc.checks import require, require_count
from contourmc.kernels.base import Position
from contourmc.partition import Partition
from contourmc.path import Path, merge_path

if TYPE_CHECKING:
    from contourmc.diagnostics import Diagnosis


@dataclass(frozen=True)
class Samples:
    """The result of a run.

    Chains are independent estimates of the same thing: within a chain a draw counts by its weight, and all
    chains count alike.

    draws: kept positions, a pytree like the position with leading axes (chain, draw); None if not stored.
    energies, log_weights, multipliers: of each kept draw, (chain, draw).
    steps: the step of each kept draw.
    path: estimates and θ along the run, from every step.
    settings: how the run was made, as plain data.
    seconds: how long it took, without compilation.
    compile_seconds: how long compilation took; next to nothing when an equal run came before.
    interrupted: whether the run was ended early from the keyboard.
    target_states: what the target carried beside each kept position, such as batch-norm statistics, or None.
    average: the result of the run's model average; None without one, or without a draw.
    """

    draws: Position
    energies: Float[np.ndarray, "chains draws"]
    log_weights: Float[np.ndarray, "chains draws"]
    multipliers: Float[np.ndarray, "chains draws"]
    steps: Int[np.ndarray, " draws"]
    path: Path
    settings: dict[str, Any]
    seconds: float
    compile_seconds: float = 0.0
    interrupted: bool = False
    target_states: Any = None
    average: Any = None

    @property
    def chains(self) -> int:
        return self.energies.shape[0]

    @property
    def theta(self) -> Float[np.ndarray, "chains bins"] | None:
        """The last θ of each chain, or None for a kernel that has none."""
        return None if self.path.theta is None else self.path.theta[:, -1]

    @property
    def partition(self) -> Partition | None:
        """The energy bins of the kernel, or None for a kernel that has none."""
        found = self.settings["kernel"].get("partition")
        return None if found is None else Partition(found["low"], found["width"], found["bins"])

    @property
    def weights(self) -> Float[np.ndarray, "chains draws"]:
        """The weights of the kept draws; those of a chain sum to 1 / chains, all of them to 1."""
        require(self.energies.shape[1] > 0, "draws", 0, "no draw was kept: the run ended during burn-in")
        return estimates.normalise(self.log_weights) / self.chains

    def mean(self, *, by_chain: bool = False) -> Position:
        """The mean of every coordinate, from every step after burn-in; of large positions, from the kept draws."""
        if self.path.means is None:
            return self.expectation(lambda position: position, by_chain=by_chain)
        means = merge_path(self.path).mean
        return means if by_chain else jax.tree.map(lambda leaf: leaf.mean(axis=0), means)

    def variance(self) -> Position:
        """The variance of every coordinate, from every step after burn-in; of large positions, from the kept draws."""
        if self.path.means is None:
            mean = self.mean()
            return self.expectation(lambda position: jax.tree.map(lambda x, m: (x - m) ** 2, position, mean))
        whole = merge_path(self.path)
        second = jax.tree.map(
            lambda square, mean, centre: square - (mean - centre) ** 2 + mean**2,
            whole.square,
            whole.mean,
            self.path.centre,
        )
        return jax.tree.map(lambda second, mean: second.mean(axis=0) - mean.mean(axis=0) ** 2, second, whole.mean)

    def standard_error(self, by: Literal["chains", "batches"] | None = None) -> Position:
        """The Monte-Carlo standard error of `mean`.

        `chains`: from the spread of the chains, which also sees modes that some of them missed; the choice
        where there are at least 4. `batches`: from the stretches of the path within each chain.
        """
        by = by or ("chains" if self.chains >= 4 else "batches")
        require(by in ("chains", "batches"), "by", by, "choose chains or batches")
        if by == "chains":
            require(self.chains > 1, "by", by, "one chain has no spread; use by='batches'")
            return jax.tree.map(lambda leaf: leaf.std(axis=0, ddof=1) / self.chains**0.5, self.mean(by_chain=True))
        require(self.path.means is not None, "by", by, "the path of a large position has no means; use by='chains'")
        return jax.tree.map(lambda leaf: estimates.batch_error(self.path.log_weights, leaf), self.path.means)

    def expectation(self, function: Callable[[Any], Any], *, by_chain: bool = False) -> Any:
        """The weighted mean of any function of a position, over the kept draws."""
        weights = self.weights * (self.chains if by_chain else 1)
        values = jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(function)))(self.positions))
        axes = "cd,cd...->c..." if by_chain else "cd,cd...->..."
        return jax.tree.map(lambda leaf: np.einsum(axes, weights, leaf), values)

    def quantile(self, probabilities: float | Sequence[float] | np.ndarray) -> Position:
        """Weighted quantiles of every coordinate, over the kept draws of all chains."""
        levels = np.asarray(probabilities, float)
        fine = bool(np.all((levels >= 0) & (levels <= 1)))
        require(fine, "probabilities", probabilities, "give numbers between 0 and 1")
        weights = self.weights.ravel()
        return jax.tree.map(lambda leaf: estimates.quantile(_pooled(leaf), weights, levels), self.positions)

    def histogram(
        self, function: Callable[[Any], Any] | None = None, bins: int | Sequence[float] | np.ndarray = 50
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weighted density of one number: a function of the position, or the position if it is one."""
        values = self.positions if function is None else jax.vmap(jax.vmap(function))(self.positions)
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
        """
        weights = self.weights
        return jax.tree.map(lambda leaf: estimates.effective_size(leaf, weights), self.positions)

    def resample(self, count: int, seed: int = 0) -> Position:
        """Equally weighted draws by systematic resampling, in the order of chains and steps.

        Unbiased: every draw is expected count · weight times, and appears within one of that.
        """
        count = require_count("count", count, 1, "ask for at least 1 draw")
        chosen = estimates.systematic(self.weights.ravel(), count, np.random.default_rng(seed))
        return jax.tree.map(lambda leaf: _pooled(leaf)[chosen], self.positions)

    def diagnose(self) -> "Diagnosis":
        """What a careful person checks before trusting the run, in words."""
        from contourmc.diagnostics import diagnose

        return diagnose(self)

    def to_arviz(self, draws: int | None = None, seed: int = 0) -> Any:
        """The draws for ArviZ, resampled within each chain to equal weights (by default as many as kept)."""
        from contourmc.storage import to_arviz

        return to_arviz(self, draws, seed)

    def save(self, file: str | FilePath) -> FilePath:
        """Write everything to a netCDF file that xarray and other tools read; returns its path."""
        from contourmc.storage import save

        return save(self, FilePath(file))

    @staticmethod
    def load(file: str | FilePath) -> "Samples":
        """Read a file written by `save`."""
        from contourmc.storage import load

        return load(FilePath(file))

    @property
    def positions(self) -> Position:
        """The stored draws; raises if there are none."""
        require(self.draws is not None, "store", False, "this needs the positions of the draws: run with store=True")
        return self.draws

    def __repr__(self) -> str:
        kind = self.settings.get("kernel", {}).get("kind", "?")
        state = ", interrupted" if self.interrupted else ""
        return f"Samples({self.chains} chains × {self.energies.shape[1]} draws, {kind}{state})"


def _pooled(leaf: np.ndarray) -> np.ndarray:
    return np.reshape(leaf, (-1, *leaf.shape[2:]))
