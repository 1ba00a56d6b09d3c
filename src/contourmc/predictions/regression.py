"""The model average of a regression: mean, variance, intervals, and how good they are.

A variance that is not above 0 counts as NaN, so that it shows in every mean in which it takes part.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from contourmc._core.checks import require
from contourmc._core.pytrees import Position
from contourmc.draws.exhibits.chart import Chart
from contourmc.draws.exhibits.table import Table
from contourmc.predictions.calibration import calibration_chart
from contourmc.predictions.model_average import ModelAverage, updated_log_mean, updated_mean
from contourmc.predictions.prediction import Prediction

_REMEDY = "give positive ones, such as `jax.nn.softplus` or `jnp.exp` of an output"


@dataclass(frozen=True, repr=False)
class RegressionPrediction(Prediction):
    """The predictive mixture of Gaussians on the test set, over all draws of all chains."""

    @property
    def mean(self) -> Float[np.ndarray, " n"]:
        return self.over_chains(self.means["mean"])

    @property
    def variance(self) -> Float[np.ndarray, " n"]:
        """Noise, plus how much the models disagree."""
        self._require_variances()
        return self.over_chains(self.means["noise"]) + self.disagreement

    @property
    def disagreement(self) -> Float[np.ndarray, " n"]:
        """The variance of the mean over models, within and between chains: what more data would remove."""
        return self.over_chains(self.means["spread"] + (self.means["mean"] - self.mean) ** 2)

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean((self.mean - self.known_truth) ** 2)))

    @property
    def nll(self) -> float:
        """Minus the mean log density of the mixture at the targets."""
        _ = self.known_truth
        self._require_variances()
        with np.errstate(divide="ignore"):
            log_density = self.means["log_density"] + np.log(self.shares)[:, None]
        return float(-np.mean(np.logaddexp.reduce(log_density, axis=0)))

    def interval(self, probability: float = 0.9) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """The central interval of a Gaussian with the mixture's mean and variance, for each input."""
        require(0 < probability < 1, "probability", probability, "give a number between 0 and 1")
        reach = NormalDist().inv_cdf(0.5 + probability / 2) * np.sqrt(self.variance)
        return self.mean - reach, self.mean + reach

    def coverage(self, probability: float = 0.9) -> float:
        """The share of targets in the central interval of the mixture itself; near `probability` if calibrated."""
        require(0 < probability < 1, "probability", probability, "give a number between 0 and 1")
        _ = self.known_truth
        self._require_variances()
        return float(np.mean(np.abs(self.over_chains(self.means["below"]) - 0.5) < probability / 2))

    def calibration(self) -> tuple[Float[np.ndarray, " levels"], Float[np.ndarray, " levels"]]:
        """Probabilities of central intervals, and the share of targets inside each."""
        nominal = np.linspace(0.005, 0.995, 199)
        return nominal, np.array([self.coverage(float(probability)) for probability in nominal])

    @property
    def complaint(self) -> str:
        bad, inputs = int(np.isnan(self.means["noise"]).any(axis=0).sum()), self.means["noise"].shape[1]
        what = f"`predict` gave variances that are not above 0, at {bad} of {inputs} inputs: {_REMEDY}"
        return f"{what}. The average has no NLL, variances and intervals" if bad else ""

    def _require_variances(self) -> None:
        if self.complaint:
            raise ValueError(self.complaint)

    def exhibits(self) -> list[Table | Chart]:
        if self.truth is None or self.complaint:
            return super().exhibits()
        nominal, observed = self.calibration()
        caption = f"Share of targets inside central intervals: {self.coverage(0.5):.1%} in those of 50%,"
        caption += (
            f" {self.coverage(0.9):.1%} in those of 90%; the mean gap is {np.mean(np.abs(observed - nominal)):.3f}."
        )
        labels = "probability of the interval", "share of targets inside"
        counts = np.full(nominal.shape, float(self.known_truth.size))
        return [*super().exhibits(), calibration_chart("Calibration", caption, labels, nominal, observed, counts)]

    def figures(self) -> dict[str, float]:
        if self.truth is None:
            return {}
        nll = {} if self.complaint else dict(nll=self.nll)
        return dict(rmse=self.rmse, **nll, best_rmse=float(np.min(self.points.best_error)))


@dataclass(frozen=True, eq=False)
class RegressionAverage(ModelAverage):
    """The average over draws of N(mean, variance), as `predict` gives them for each input.

    With weights w: mean m̄ = Σ w m / Σ w, variance Σ w (v + (m − m̄)²) / Σ w.

    >>> average = cm.RegressionAverage(cm.GaussianLikelihood(line, noise=0.1).predict, x, y)
    >>> run = cm.sample(posterior, init=2.0, steps=2_000, kernel=cm.sgld(1e-5), average=average)
    >>> print(f"{run.average.rmse:.1f}")
    0.1
    """

    result = RegressionPrediction

    def __post_init__(self):
        super().__post_init__()
        if self.targets is None:
            return
        shape = self.targets.shape
        column = len(shape) == 2 and shape[1] == 1
        require(len(shape) == 1 or column, "targets", f"an array of shape {shape}", "give one number for each input")
        object.__setattr__(self, "targets", jnp.ravel(self.targets))

    def check_start(self, position: Position, state: Any) -> None:
        _, variance = self.predicted(position, state)
        bad = int(np.sum(~(np.asarray(variance) > 0)))
        require(bad == 0, "predict", f"a variance that is not above 0, at {bad} of {self.size} inputs", _REMEDY)

    def no_means(self) -> dict[str, Array]:
        zeros = jnp.zeros(self.size, jnp.result_type(float))
        means = dict(mean=zeros, spread=zeros, noise=zeros)
        return means if self.targets is None else means | dict(log_density=zeros - jnp.inf, below=zeros)

    def add_means(
        self, means: dict[str, Array], share: Float[Array, ""], predicted: Any
    ) -> tuple[dict[str, Array], Float[Array, ""], Float[Array, ""]]:
        remedy = f"give a mean and a variance for each of the {self.size} targets"
        pair = isinstance(predicted, (tuple, list))
        shown = f"a {type(predicted).__name__} of {len(predicted)}" if pair else f"an array of shape {predicted.shape}"
        require(len(predicted) == 2, "predict", shown, remedy)
        mean, variance = predicted
        for name, values in (("mean", mean), ("variance", variance)):
            require(jnp.shape(values) == (self.size,), "predict", f"a {name} of shape {jnp.shape(values)}", remedy)
        variance = jnp.where(variance > 0, variance, jnp.nan)
        away = mean - means["mean"]
        new = dict(
            mean=updated_mean(means["mean"], mean, share),
            spread=(1 - share) * (means["spread"] + share * away**2),
            noise=updated_mean(means["noise"], variance, share),
        )
        if self.targets is None:
            return new, jnp.asarray(jnp.nan), jnp.asarray(jnp.nan)
        standardised = (self.targets - mean) / jnp.sqrt(variance)
        log_density = -0.5 * (standardised**2 + jnp.log(2 * jnp.pi * variance))
        new["log_density"] = updated_log_mean(means["log_density"], log_density, share)
        new["below"] = updated_mean(means["below"], ndtr(standardised), share)
        return new, jnp.sqrt(jnp.mean((mean - self.targets) ** 2)), -jnp.mean(log_density)
