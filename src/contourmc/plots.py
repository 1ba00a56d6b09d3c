"""Pictures of a run (matplotlib); each function draws into an axis and returns it."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from contourmc._core.checks import require
from contourmc._core.pytrees import coordinates
from contourmc.draws.energy_histogram import energy_histogram
from contourmc.draws.samples import Samples
from contourmc.draws.temperatures import own_temperature
from contourmc.draws.weighted import apply
from contourmc.flattening import theta as flattening
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.predictions.calibration import chance_band
from contourmc.predictions.classification import ClassificationPrediction
from contourmc.predictions.regression import RegressionPrediction

BLUE, ORANGE, GREEN, GREY, RED = "#0072B2", "#D55E00", "#009E73", "#7f7f7f", "#C00000"
# A number to draw: the name of a coordinate, such as x[0] or layer.bias; or a function of the position.
Coordinate = str | Callable[[Any], Any]


def plot_landscape(
    energy: Callable[[Any], Any],
    x: np.ndarray,
    theta: np.ndarray,
    partition: Partition,
    *,
    zetas: Sequence[float] = (0.75,),
    scheme: Scheme = "smooth",
    ax: Axes | None = None,
) -> Axes:
    """The energy along a line, and the flattened energies U + ζ·log Ψ (τ = 1).

    >>> ax = cm.plots.plot_landscape(energy, np.linspace(-1.5, 1.5, 200), run.theta[0], run.partition, zetas=(0.5, 1.0))
    >>> ax.get_title()
    'Original and flattened energy'
    """
    ax = ax or plt.gca()
    energies = np.asarray(jax.vmap(energy)(jnp.asarray(x)))
    ax.plot(x, energies, color=GREY, lw=2, label="original")
    for zeta, color in zip(zetas, (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9"), strict=False):
        ax.plot(x, flattened_energy(energies, theta, partition, zeta, scheme), color=color, label=f"ζ = {zeta:g}")
    ax.set(xlabel="x", ylabel="energy", title="Original and flattened energy")
    ax.legend(frameon=False)
    return ax


def flattened_energy(
    energies: np.ndarray, theta: np.ndarray, partition: Partition, zeta: float, scheme: Scheme
) -> np.ndarray:
    """U + ζ·log Ψ(U), shifted so that its lowest value is that of U.

    >>> energies = np.array(jax.vmap(energy)(jnp.linspace(-1.5, 1.5, 200)))
    >>> cm.plots.flattened_energy(energies, run.theta[0], run.partition, zeta=1.0, scheme="smooth").shape
    (200,)
    """
    log_theta = flattening.log_theta(jnp.asarray(theta, jnp.result_type(float)))
    log_psi, _ = jax.vmap(lambda u: flattening.interpolate(log_theta, partition, u, scheme))(jnp.asarray(energies))
    trial = energies + zeta * np.asarray(log_psi)
    return trial - trial.min() + energies.min()


def plot_theta(samples: Samples, truth: np.ndarray | None = None, ax: Axes | None = None) -> Axes:
    """The learnt θ of every chain in each energy bin, and the truth if it is given.

    >>> cm.plots.plot_theta(run).get_title()
    'Learnt θ'
    """
    ax = ax or plt.gca()
    partition = samples.partition
    if samples.theta is None or partition is None:
        raise ValueError(f"samples={samples!r} is not possible: this kernel has no θ")
    label = "learnt by all chains" if samples.comparable_weights else "learnt, each chain"
    for i, theta in enumerate(samples.theta):
        ax.plot(partition.centres, theta, color=BLUE, lw=0.8, alpha=0.5, label=label if i == 0 else None)
    if truth is not None:
        ax.plot(partition.centres, np.where(truth > 0, truth, np.nan), "k.", ms=5, label="truth")
    assert samples.flattening is not None
    ax.set(xlabel=samples.flattening.axis, ylabel="θ, probability of the bin", yscale="log", title="Learnt θ")
    ax.legend(frameon=False)
    return ax


def plot_energies(samples: Samples, ax: Axes | None = None, bins: int = 60) -> Axes:
    """Histograms of the energies as sampled, and as weighted to the target.

    >>> cm.plots.plot_energies(run, bins=30).get_title()
    'Energies visited'
    """
    ax = ax or plt.gca()
    edges, sampled, weighted = energy_histogram(samples, bins)
    ax.stairs(sampled, edges, color=ORANGE, fill=True, alpha=0.6, lw=1.5, label="as sampled")
    ax.stairs(weighted, edges, color=BLUE, alpha=0.6, lw=1.5, label="weighted")
    ax.set(xlabel="energy", ylabel="density", yscale="log", title="Energies visited")
    ax.legend(frameon=False)
    return ax


def plot_trace(samples: Samples, chain: int = 0, ax: Axes | None = None) -> Axes:
    """The energy along a chain: red where the gradient multiplier is negative, so that the drift is uphill.

    The colour shows its sign alone: in a landscape that is flattened well, it is near 0 everywhere.

    >>> cm.plots.plot_trace(run, chain=2).get_title()
    'Energy along a chain'
    """
    ax = ax or plt.gca()
    energies, uphill = samples.energies[chain], samples.multipliers[chain] < 0
    ax.scatter(samples.steps, energies, c=np.where(uphill, RED, BLUE), s=3, lw=0, rasterized=True)
    shares = {"drift uphill": (RED, uphill.mean()), "downhill": (BLUE, 1 - uphill.mean())}
    handles = [
        Line2D([], [], color=color, marker="o", ls="", label=f"{name}, {share:.0%}")
        for name, (color, share) in shares.items()
    ]
    ax.legend(handles=handles, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    low, high = np.quantile(energies, [0.0, 0.999])
    margin = 0.05 * (high - low) or 1.0
    ax.set(xlabel="step", ylabel="energy", ylim=(low - margin, high + margin))
    ax.set_title("Energy along a chain", pad=2.4 * plt.rcParams["font.size"])  # above the legend
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    return ax


def plot_temperatures(
    samples: Samples, temperatures: Sequence[float] | np.ndarray | None = None, axes: Sequence[Axes] | None = None
) -> Sequence[Axes]:
    """log Z, mean energy, heat capacity and entropy against the temperature, with bands of two standard errors.

    temperatures: by default the range that was visited.
    axes: four, in this order; by default a new figure has them.

    >>> [ax.get_title() for ax in cm.plots.plot_temperatures(run)]
    ['Normaliser', 'Mean energy', 'Heat capacity', 'Entropy']
    """
    table = samples.thermodynamics(temperatures)
    own = own_temperature(samples)
    drawn: Sequence[Axes] = axes or plt.subplots(2, 2, figsize=(9, 6.2), layout="constrained")[1].ravel().tolist()
    require(len(drawn) == 4, "axes", axes, "give four axes, or none")
    panels = (
        (table.log_normaliser, f"log Z(T) − log Z({own:g})", "Normaliser", BLUE),
        (table.energy, "⟨U⟩", "Mean energy", ORANGE),
        (table.heat_capacity, "C = Var(U)/T²", "Heat capacity", GREEN),
        (table.entropy, f"S(T) − S({own:g})", "Entropy", "#CC79A7"),
    )
    for ax, (estimate, label, title, color) in zip(drawn, panels, strict=True):
        band = estimate.value - 2 * estimate.error, estimate.value + 2 * estimate.error
        ax.fill_between(table.temperatures, *band, color=color, alpha=0.25, lw=0, label="± 2 standard errors")
        ax.plot(table.temperatures, estimate.value, color=color, lw=2)
        ax.axvline(own, color=GREY, lw=1, ls=":", label="temperature of the run")
        ax.set(xlabel="temperature T", ylabel=label, title=title, xscale="log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.margins(x=0)
        ax.spines[["top", "right"]].set_visible(False)
    drawn[0].legend(edgecolor="none", framealpha=1)
    return drawn


def plot_marginal(
    samples: Samples,
    coordinate: Coordinate | None = None,
    *,
    density: tuple[np.ndarray, np.ndarray] | None = None,
    bins: int | np.ndarray = 80,
    label: str = "weighted draws",
    color: str = BLUE,
    ax: Axes | None = None,
) -> Axes:
    """The weighted density of one number, by default of the first coordinate.

    density: points and values of the true density, drawn as a line.

    >>> cm.plots.plot_marginal(run, lambda x: x**2).get_title()
    'Marginal of function of the position'
    """
    ax = ax or plt.gca()
    name, values = _numbers(samples, coordinate, 0)
    heights, edges = np.histogram(values, bins, weights=samples.weights.ravel(), density=True)
    ax.stairs(heights, edges, fill=True, color=color, alpha=0.4, label=label)
    if density is not None:
        ax.plot(*density, color="k", lw=1.2, label="truth")
    ax.set(xlabel=name, ylabel="density", title=f"Marginal of {name}")
    ax.legend(frameon=False)
    return ax


def plot_density(
    samples: Samples,
    first: Coordinate | None = None,
    second: Coordinate | None = None,
    *,
    bins: int = 100,
    ax: Axes | None = None,
) -> Axes:
    """The weighted density of two numbers, by default of the first two coordinates.

    >>> cm.plots.plot_density(run, lambda x: x, lambda x: x**3).get_title()
    'Weighted density'
    """
    ax = ax or plt.gca()
    (first_name, one), (second_name, two) = _numbers(samples, first, 0), _numbers(samples, second, 1)
    *_, mesh = ax.hist2d(one, two, bins=bins, weights=samples.weights.ravel(), density=True, cmap="viridis")
    mesh.set_rasterized(True)
    ax.figure.colorbar(mesh, ax=ax, label="density")
    ax.set(xlabel=first_name, ylabel=second_name, title="Weighted density")
    return ax


def _numbers(samples: Samples, coordinate: Coordinate | None, usual: int) -> tuple[str, np.ndarray]:
    """The name of a number, and its values in all draws; without a coordinate, that of the number `usual`."""
    if callable(coordinate):
        values = apply(coordinate, samples.positions)
        one = values.shape == samples.energies.shape
        require(one, "coordinate", coordinate, "give a function from a position to one number, such as lambda x: x[0]")
        name = getattr(coordinate, "__name__", "<lambda>")
        return "function of the position" if name == "<lambda>" else name, values.ravel()
    found = coordinates(samples.positions, leading=2)
    names = ", ".join([*found][:20]) + ", …" * (len(found) > 20)
    name = next(iter([*found][usual:]), None) if coordinate is None else coordinate
    require(name in found, "coordinate", coordinate, f"there is {names}: name one, or give a function of the position")
    return str(name), found[str(name)].ravel()


def plot_reliability(prediction: ClassificationPrediction, bins: int = 15, ax: Axes | None = None) -> Axes:
    """The share of right classes in bins of confidence, and the share of the inputs in each bin.

    The band is where 95% of the points of a calibrated model would lie: c ± 1.96·√(c(1 − c)/n) for n inputs of
    confidence c.

    >>> logits = lambda slope, x: jnp.stack([-slope * x, slope * x], axis=1)
    >>> average = cm.ClassificationAverage(logits, x, (y > 0).astype(int), classes=2, effective=0.5)
    >>> cm.plots.plot_reliability(average.over(run)).get_title()
    'Reliability'
    """
    ax = ax or plt.gca()
    confidence, accuracy, share = prediction.reliability(bins)
    low = np.floor(confidence * bins + 1e-9).clip(max=bins - 1) / bins
    ax.bar(low, share, 1 / bins, align="edge", color=GREY, alpha=0.35, lw=0, label="share of inputs")
    _plot_calibrated(ax, confidence, share * len(prediction.known_truth))
    label = f"model average, ECE {prediction.calibration_error(bins):.3f}"
    ax.plot(confidence, accuracy, "o-", color=BLUE, lw=1.5, ms=5, label=label)
    ax.set(xlabel="confidence", ylabel="share of right classes", title="Reliability", xlim=(0, 1), ylim=(0, 1.02))
    ax.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12))  # inside, points would hide it
    return ax


def plot_calibration(prediction: RegressionPrediction, ax: Axes | None = None) -> Axes:
    """The share of targets inside central intervals, against the probability of these intervals.

    The band is where the curve of a calibrated model lies with 95% probability, at each p by itself:
    p ± 1.96·√(p(1 − p)/n) for n targets.

    >>> average = cm.RegressionAverage(cm.GaussianLikelihood(line, noise=0.1).predict, x, y, effective=0.5)
    >>> cm.plots.plot_calibration(average.over(run)).get_title()
    'Calibration'
    """
    ax = ax or plt.gca()
    nominal, observed = prediction.calibration()
    _plot_calibrated(ax, nominal, np.full(nominal.shape, prediction.known_truth.size))
    label = f"model average, mean gap {np.mean(np.abs(observed - nominal)):.3f}"
    ax.plot(nominal, observed, color=BLUE, lw=2, label=label)
    ax.text(0.03, 0.72, "intervals too wide", color=GREY)
    ax.text(0.97, 0.05, "intervals too narrow", color=GREY, ha="right")
    axes = dict(xlabel="probability of the interval", ylabel="share of targets inside", title="Calibration")
    ax.set(xlim=(0, 1), ylim=(0, 1.02), **axes)
    ax.legend(frameon=False, loc="upper left")
    return ax


def _plot_calibrated(ax: Axes, probability: np.ndarray, counts: np.ndarray) -> None:
    """The diagonal, and the band around it that chance alone explains, for shares of so many."""
    ax.plot([0, 1], [0, 1], color="k", lw=1, ls="--", label="calibrated")
    ax.fill_between(
        probability, *chance_band(probability, counts), color=ORANGE, alpha=0.2, lw=0, label="± chance (95%)"
    )
