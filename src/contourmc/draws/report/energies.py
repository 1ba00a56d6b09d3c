"""The walk in energy, and the flattening that lets the chains make it."""

import numpy as np

from contourmc.draws.energy_histogram import energy_histogram
from contourmc.draws.exhibits.chart import BLUE, GREY, ORANGE, PALETTE, Axis, Chart, Layer
from contourmc.draws.exhibits.numbers import Measured, counted, shown
from contourmc.draws.flattening_checks import round_trips
from contourmc.draws.report.section import Section
from contourmc.draws.weighted import WeightedDraws
from contourmc.flattening.summary import Flattening

CHAINS = 3  # whose walk is drawn
POINTS = 300  # of each of them
LEVELS = 300  # energy bins that are drawn


def energies_section(samples: WeightedDraws) -> Section:
    """The energies visited, the walk of some chains; θ, visits and multiplier of a run that flattens."""
    text = []
    charts = [_walk(samples), _visited(samples)] if samples.energies.shape[1] > 0 else []
    if samples.flattening is None:
        text.append("This kernel does not flatten the landscape, and its draws have equal weights.")
    else:
        text.append(_in_words(samples.flattening))
        charts += _flattening(samples)
    if samples.chains > CHAINS and charts:
        text.append(f"The walk shows {CHAINS} of {samples.chains:,} chains.")
    return Section("energies", "Energies and flattening", [" ".join(text)], charts=charts)


def _in_words(flattening: Flattening) -> str:
    """What was flattened."""
    partition = flattening.partition
    if flattening.following:
        return f"The energies were flattened in {partition.bins} bins that followed them; weights undo it."
    low, high = (shown(Measured(end, partition.high - partition.low)) for end in (partition.low, partition.high))
    return (
        f"Energies from {low} to {high} were flattened, in {partition.bins} bins, so"
        " that chains cross barriers; weights undo it."
    )


def _visited(samples: WeightedDraws) -> Chart:
    """Histograms of the energies as sampled, and as weighted to the target."""
    edges, sampled, weighted = energy_histogram(samples)
    low, high, mean = edges[0], edges[-1], float(np.sum(samples.weights * samples.energies))
    layers = [
        Layer("steps", {"x": edges[:-1], "y": np.where(heights > 0, heights, np.nan)}, name, colour)
        for name, heights, colour in (("as sampled", sampled, ORANGE), ("weighted", weighted, BLUE))
    ]
    if samples.flattening is None:
        layers.pop()
    first, last, middle = (shown(Measured(number, high - low)) for number in (low, high, mean))
    caption = f"Energies as sampled, from {first} to {last}"
    caption += f", and as weighted to the target, with mean {middle}." if len(layers) > 1 else f", mean {middle}."
    energy = Axis("energy", limits=(float(low), float(high)))
    return Chart("Energies visited", caption, energy, Axis("density", log=True), layers)


def _walk(samples: WeightedDraws) -> Chart:
    """The energy along some of the chains."""
    draws = samples.energies.shape[1]
    shown = np.unique(np.linspace(0, draws - 1, min(draws, POINTS)).astype(int))
    layers = [
        Layer("thread", {"x": samples.steps[shown], "y": samples.energies[chain, shown]}, f"chain {chain}", colour)
        for chain, colour in zip(range(min(samples.chains, CHAINS)), PALETTE, strict=False)
    ]
    trips = round_trips(samples)
    uphill = float(np.mean(samples.multipliers < 0))
    caption = f"Energy along {len(layers)} of {counted(samples.chains, 'chain')}, {len(shown)} of {draws:,} draws each."
    caption += f" From low to high energies and back: {trips.mean():.0f} times a chain on average, {trips.min()} at"
    caption += " least."
    caption += f" The drift was uphill at {uphill:.0%} of the draws." if samples.flattening is not None else ""
    return Chart("Energy along the chains", caption, Axis("step"), Axis("energy"), layers, wide=True)


def _flattening(samples: WeightedDraws) -> list[Chart]:
    """θ, visits and multiplier of each energy bin."""
    partition, theta, visits = samples.partition, samples.theta, samples.trajectory.visits
    assert partition is not None
    assert samples.flattening is not None
    if theta is None or visits is None:
        return []
    centres = partition.centres
    shown = np.unique(np.linspace(0, partition.bins - 1, min(partition.bins, LEVELS)).astype(int))
    energy = Axis(samples.flattening.axis, limits=(float(centres[0]), float(centres[-1])))
    mean, low, high = (part(theta, axis=0)[shown] for part in (np.mean, np.min, np.max))
    layers = [Layer("line", {"x": centres[shown], "y": np.where(mean > 0, mean, np.nan)}, "mean of the chains")]
    if not samples.comparable_weights and len(theta) > 1:
        band = {"x": centres[shown], "y": np.where(low > 0, low, np.nan), "y2": high}
        layers.insert(0, Layer("band", band, "least to largest", GREY))
    caption = f"θ, the learnt probability of each of {partition.bins} energy bins: {mean.max():.3g} in the likeliest,"
    caption += f" {mean.min():.3g} in the least likely."
    charts = [Chart("θ, probability of the bin", caption, energy, Axis("θ", log=True), layers)]
    counts = visits[:, -1].sum(axis=0)
    shares = counts / max(counts.sum(), 1)
    edges = centres - partition.width / 2
    columns = {"x": edges, "x2": edges + partition.width, "y": shares, "y2": np.zeros(partition.bins)}
    bars = {name: column[shown] for name, column in columns.items()}
    caption = f"Share of all steps that began in each bin: {shares.max():.1%} in the fullest;"
    never = int(np.sum(counts == 0))
    caption += f" {never} of {partition.bins} bins were never visited." if never else " every bin was visited."
    charts.append(
        Chart("Visits", caption, energy, Axis("share of steps", zero=True), [Layer("bars", bars, "all chains")])
    )
    # Where bins follow the energies, those of the draws are not known afterwards.
    told = samples.energies.shape[1] > 0 and not samples.flattening.following
    return charts + ([_multiplier(samples, centres, energy)] if told else [])


def _multiplier(samples: WeightedDraws, centres: np.ndarray, energy: Axis) -> Chart:
    """By what the gradient was multiplied at the draws in each bin: below 0, the drift was uphill."""
    partition = samples.partition
    assert partition is not None
    bins, values = np.asarray(partition.index(samples.energies)).ravel(), samples.multipliers.ravel()
    counts = np.bincount(bins, minlength=len(centres))
    means = np.bincount(bins, values, len(centres)) / np.maximum(counts, 1)
    shown = np.flatnonzero(counts > 0)
    shown = shown[np.unique(np.linspace(0, len(shown) - 1, min(len(shown), LEVELS)).astype(int))]
    caption = f"Mean of what the gradient was multiplied by in each bin: from {means[shown].min():.3g} to"
    caption += f" {means[shown].max():.3g}; 1 is no flattening, and below 0 the drift is uphill."
    layers = [
        Layer("dashes", {"x": energy.limits or (0, 1), "y": (1.0, 1.0)}, "no flattening", GREY),
        Layer("line", {"x": centres[shown], "y": means[shown]}, "mean at the draws"),
    ]
    return Chart("Gradient multiplier", caption, energy, Axis("multiplier"), layers)
