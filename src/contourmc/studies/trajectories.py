"""Figure 2 (a–d) of the paper: where SGLD and CSGLD go on the energy landscape of the mixture."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contourmc.draws.samples import Samples
from contourmc.flattening.partition import Partition
from contourmc.kernels.contour import csgld
from contourmc.kernels.sgld import sgld
from contourmc.problems import GaussianMixture
from contourmc.sampling.sample import sample
from contourmc.studies.algorithm import FlatLastBin
from contourmc.studies.algorithm_one import Path, noisy, papers_omega, run
from contourmc.studies.base import (
    Claim,
    Drawing,
    Measured,
    Options,
    Outcome,
    Record,
    complete,
    difference,
    exact,
    judge,
    over_seeds,
    share,
)
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROBLEM = GaussianMixture()
TARGET = NoisyEnergy(PROBLEM.energy, gradient_variance=0.01)
PARTITION = Partition(low=2.0, width=1.0, bins=50)  # both optima (1.43 and 1.84) lie in bin 0
OURS = Partition(low=1.5, width=1.0, bins=50)
ZETA = 0.75
THIN = 10
LAG = 100  # steps over which a jump is measured
SMALL = 0.5  # below it, a multiplier counts as small
SHOWN = 1000  # points of the first chain in the picture


@dataclass(frozen=True)
class Panel:
    """Some part of a run, by steps `thin` apart: (chain, step).

    steps: how many steps of a chain it covers.
    levels: the multiplier of every energy bin, from θ at the end, averaged over the chains; None without θ.
    """

    title: str
    steps: int
    thin: int
    x: np.ndarray
    multipliers: np.ndarray
    levels: np.ndarray | None


# --- Measurements ------------------------------------------------------------------------------------


def measure(options: Options, record: Record) -> None:
    """The four panels by the paper's algorithm, and three of them by the library's defaults."""
    steps, chains = options.size.length, max(2, options.size.seeds)  # a spread needs two chains
    window = max(1_000, min(100_000, steps // 2) // THIN * THIN)
    for name, panel in _papers_panels(steps, window, chains):
        record.setdefault("paper", {})[name] = _numbers(panel)
    for name, panel in _our_panels(steps, window, chains):
        record.setdefault("ours", {})[name] = _numbers(panel)
    record |= {"steps": steps, "chains": chains}


def _papers_panels(steps: int, window: int, chains: int) -> Iterator[tuple[str, Panel]]:
    """SGLD; CSGLD early, mid and late: Algorithm 1, whose last bin has multiplier 1 so that the late chains exist."""
    plain = complete(
        sample(TARGET, kernel=sgld(0.1), steps=window, init=0.0, burn_in=0, thin=THIN, chains=chains)
    )  # fmt: skip
    yield "sgld", Panel(f"SGLD: {window:,} steps", window, THIN, plain.draws, plain.multipliers, None)
    algorithm = FlatLastBin(PARTITION.low, PARTITION.width, PARTITION.bins, zeta=ZETA)
    for name, title, before, length, thin in (
        ("early", "CSGLD, early: {:,} steps", 0, min(1_000, window), 1),
        ("mid", "CSGLD, mid: {:,} steps", 0, window, THIN),
        ("late", f"CSGLD, late: the last {{:,}} of {steps:,}", steps - window, window, THIN),
    ):
        path = run(
            algorithm, noisy(PROBLEM.energy, 0.01), 0.0, steps=length, before=before, every=thin, chains=chains, seed=0
        )  # fmt: skip
        yield name, _panel_of(path, title.format(length), length, thin)


def _panel_of(path: Path, title: str, steps: int, thin: int) -> Panel:
    slope = np.diff(np.log(path.theta[:, -1]).mean(axis=0)) / PARTITION.width
    levels = np.concatenate([[1.0], 1 + ZETA * slope[:-1], [1.0]])
    return Panel(title, steps, thin, path.x, path.multiplier, levels)


def _our_panels(steps: int, window: int, chains: int) -> Iterator[tuple[str, Panel]]:
    """The library's defaults."""
    kernel = csgld(0.1, OURS, zeta=ZETA, omega=papers_omega)
    settings: dict[str, Any] = dict(init=0.0, chains=chains, kernel=kernel)
    for name, title, length, burn_in, thin in (
        ("early", "CSGLD, early: {:,} steps", min(1_000, window), 0, 1),
        ("mid", "CSGLD, mid: {:,} steps", window, 0, THIN),
        ("late", f"CSGLD, late: the last {{:,}} of {steps:,}", steps, steps - window, THIN),
    ):
        samples = complete(sample(TARGET, steps=length, burn_in=burn_in, thin=thin, **settings))
        yield (
            name,
            Panel(
                title.format(length - burn_in),
                length - burn_in,
                thin,
                samples.draws,
                samples.multipliers,
                _levels(samples),
            ),
        )


def _levels(samples: Samples) -> np.ndarray:
    """1 + ζ·s at the middle of each bin of the scheme `smooth`; 1 in the two unbounded bins."""
    assert samples.theta is not None
    differences = np.diff(np.log(np.maximum(samples.theta, 1e-38)).mean(axis=0)) / OURS.width
    differences[[0, -1]] = 0.0
    return np.concatenate([[1.0], 1 + ZETA * (differences[:-1] + differences[1:]) / 2, [1.0]])


def _numbers(panel: Panel) -> dict[str, Any]:
    """Crossings, multipliers, zones, and the jumps that begin with a negative multiplier; the path to draw."""
    crossings, first = zip(*(mode_crossings(x) for x in panel.x), strict=True)
    thin = max(1, panel.steps // panel.thin // SHOWN)
    numbers: dict[str, Any] = {
        "title": panel.title,
        "steps": panel.steps,
        "crossings": list(crossings),
        "first_crossings": [None if one is None else one * panel.thin for one in first],
        "path": np.round(panel.x[0, thin - 1 :: thin], 3).tolist(),
        "uphill": (panel.multipliers[0, thin - 1 :: thin] < 0).astype(int).tolist(),
    }
    if panel.levels is None:
        return numbers
    return numbers | {
        "negative_share": float((panel.multipliers < 0).mean()),
        "largest_multiplier": float(panel.multipliers.max()),
        "lowest_multiplier": float(panel.multipliers.min()),
        "levels": np.round(panel.levels, 4).tolist(),
        "jumps": {"local": _jumps(panel, -6.0), "global": _jumps(panel, 4.0)},
    }


def mode_crossings(x: np.ndarray) -> tuple[int, int | None]:
    """How often a chain went from one mode to the other, and the step of the first crossing."""
    side = np.where(np.abs(x + 6) < 2, -1, np.where(np.abs(x - 4) < 2, 1, 0))
    at = np.flatnonzero(side)
    changes = at[1:][np.diff(side[at]) != 0]
    return len(changes), int(changes[0]) + 1 if len(changes) else None


def _jumps(panel: Panel, mode: float) -> dict[str, Any]:
    """How far each chain gets in the next 100 steps from points near a mode with a negative multiplier.

    share: of all steps that begin such a jump.  medians: the median distance of each chain that has some.
    """
    lag = LAG // panel.thin
    negative = (panel.multipliers < 0) & (np.abs(panel.x - mode) < 3)
    distances = np.abs(panel.x[:, lag:] - panel.x[:, :-lag])
    by_chain = [chain[begins] for chain, begins in zip(distances, negative[:, :-lag], strict=True) if begins.any()]
    return {
        "share": negative.mean(axis=1).tolist(),
        "medians": [float(np.median(chain)) for chain in by_chain],
        "largest": float(max((chain.max() for chain in by_chain), default=0.0)),
    }


def _ranges(inside: np.ndarray, partition: Partition) -> list[tuple[float, float]]:
    """The ranges of energy that a set of inner bins covers."""
    padded = np.concatenate([[False], inside[1:-1], [False]]).astype(int)
    starts, stops = np.flatnonzero(np.diff(padded) == 1), np.flatnonzero(np.diff(padded) == -1)
    return [(float(partition.edges[a]), float(partition.edges[b])) for a, b in zip(starts, stops, strict=True)]


# --- What it says ------------------------------------------------------------------------------------


def conclude(record: Record) -> Outcome:
    about = f"{record['chains']} chains from x = 0, of which the first is shown; ε = 0.1, ζ = 0.75, Δu = 1, m = 50"
    figures = {
        "trajectories": Drawing(
            lambda: _figure(record["paper"], PARTITION),
            f"SGLD, and Algorithm 1 with a flat last bin (scheme left, step weights, u₁ = {PARTITION.low:g}). {about}."
            " Zones are by θ at the end of each panel.",
        ),
        "trajectories_ours": Drawing(
            lambda: _figure({"sgld": record["paper"]["sgld"]} | record["ours"], OURS),
            f"The same with the library's defaults (scheme smooth, continuous weights, u₁ = {OURS.low:g}). {about}.",
        ),
    }
    note = (
        f"{record['chains']} chains from x = 0; the pictures show the first, the numbers are from all. A crossing is a"
        " move from within 2 of one mode to within 2 of the other. The paper does not say where its partition begins;"
        f" here u₁ = {PARTITION.low:g}, so that the lowest bin holds both optima and the paper's scheme leaves the"
        " multiplier at 1 there: the bouncy zone surrounds the optima. Algorithm 1 is the reference implementation"
        " with multiplier 1 in the last bin, since the printed one diverges before the late panel (`contourmc"
        " reproduce algorithm`)."
    )
    return Outcome(_claims(record), figures, (note,))


def _claims(record: Record) -> list[Claim]:
    plain, early, mid, late = (record["paper"][name] for name in ("sgld", "early", "mid", "late"))
    chains = record["chains"]
    firsts = [np.inf if one is None else one for one in mid["first_crossings"]]
    lowest = min(early["levels"])
    rare = over_seeds(plain["crossings"])
    near = {mode: over_seeds(late["jumps"][mode]["share"]) for mode in ("local", "global")}
    ours = {name: over_seeds(record["ours"][name]["crossings"]) for name in ("mid", "late")}
    return [
        Claim(
            "trap",
            "SGLD tends to be trapped in a deep local optimum for an exponentially long time",
            f"{rare:.2f} crossings per chain in {plain['steps']:,} steps",
            judge(rare, below=1.0, unit="crossing per chain"),
        ),
        Claim(
            "early-trap",
            "in the early period CSGLD might suffer from a similar local trap",
            f"{_crossed(early)} of {chains} chains cross in the first {early['steps']:,} steps",
            judge(share(_crossed(early), chains), below=0.5, unit="of the chains cross"),
        ),
        Claim(
            "negative",
            "θ of the current subregion increases very fast, eventually rendering a smaller or even negative gradient"
            " multiplier",
            f"after {early['steps']:,} steps the mean θ of the chains gives multipliers down to {lowest:.2f}, and below"
            f" {SMALL:g} for U in {_first(early, SMALL)}; {early['negative_share']:.0%} of the moves had one below 0",
            judge(exact(lowest), below=0.0, unit="for the lowest multiplier"),
        ),
        Claim(
            "bouncy",
            "the bouncy zone enables the sampler to jump over large energy barriers to explore other modes",
            f"{over_seeds(mid['crossings']):.1f} crossings per chain in {mid['steps']:,} steps, the first after"
            f" {np.median(firsts):,.0f} steps (median); multiplier below {SMALL:g} for U in {_first(mid, SMALL)}, below"
            f" 0 in {_first(mid, 0.0)}; the library's defaults: {ours['mid']:.1f} crossings",
            judge(share(_crossed(mid), chains), above=0.5, unit="of the chains cross"),
        ),
        Claim(
            "both",
            "late, bouncy jumps occur in both local and global optima",
            f"share of the steps that begin one: {near['local']:.3f} near the local optimum, {near['global']:.3f} near"
            f" the global one; {over_seeds(late['crossings']):.1f} crossings per chain in {late['steps']:,} steps (the"
            f" library's defaults: {ours['late']:.1f}); extreme multipliers {late['lowest_multiplier']:.1f} and"
            f" {late['largest_multiplier']:.1f}",
            judge(min(near.values(), key=lambda one: one.low), above=0.0, unit="for the smaller of the two shares"),
        ),
        _larger("early", early["jumps"], late["jumps"]),
        _larger("mid", mid["jumps"], late["jumps"]),
    ]


def _crossed(panel: dict[str, Any]) -> int:
    return int(np.sum(np.array(panel["crossings"]) > 0))


def _first(panel: dict[str, Any], limit: float) -> str:
    ranges = _ranges(np.array(panel["levels"]) < limit, PARTITION)
    return "({:g}, {:g}]".format(*ranges[0]) if ranges else "no range"


def _larger(name: str, before: dict[str, Any], after: dict[str, Any]) -> Claim:
    """Whether the late jumps are longer than those in another panel, by the mode where they grow less."""
    texts, growths = [], []
    for mode, new in after.items():
        old = before[mode]
        if len(old["medians"]) > 1 and len(new["medians"]) > 1:
            first, last = over_seeds(old["medians"]), over_seeds(new["medians"])
            growths.append(difference(last, first))
            texts.append(
                f"{mode} {first:.2f} → {last:.2f} (largest {old['largest']:.0f} → {new['largest']:.0f})"
            )  # fmt: skip
    least = min(growths, key=lambda one: one.value) if growths else Measured(0.0, np.inf, -np.inf, np.inf)
    return Claim(
        f"larger-{name}",
        f"later, larger bouncy jumps can be induced (late against {name})",
        f"median distance in {LAG} steps from a point with a negative multiplier:"
        f" {'; '.join(texts) or 'too few jumps'}",
        judge(least, above=0.0, unit="for the growth near either optimum"),
    )


# --- The figure --------------------------------------------------------------------------------------


def _figure(panels: dict[str, Any], partition: Partition) -> "Figure":
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 13}):
        figure, axes = plt.subplots(2, 2, figsize=(14, 9.5), layout="constrained", sharex=True, sharey=True)
        for letter, axis, panel in zip("abcd", axes.flat, panels.values(), strict=True):
            _draw(axis, panel, partition)
            crossings = np.mean(panel["crossings"])
            axis.set_title(f"({letter}) {panel['title']}\n{crossings:.1f} crossings per chain", fontsize=13)
        for axis in axes[1]:
            axis.set_xlabel("x")
        for axis in axes[:, 0]:
            axis.set_ylabel("energy U(x)")
        _legend(figure)
    return figure


def _draw(axis: "Axes", panel: dict[str, Any], partition: Partition) -> None:
    """The first chain of a panel over the landscape and its zones."""
    from matplotlib.collections import LineCollection

    if "levels" in panel:
        bounds = np.concatenate([[-100.0], partition.edges, [1000.0]])
        for low, high, level in zip(bounds, bounds[1:], panel["levels"], strict=False):
            axis.axhspan(low, high, color=_zone(level), lw=0)
    grid, energy, _ = PROBLEM.grid(40_001)
    axis.plot(grid, energy, color="0.35", lw=1.5)
    x, negative = np.array(panel["path"]), np.array(panel["uphill"], bool)
    points = np.stack([x, np.interp(x, grid, energy)], axis=-1)
    chords = np.stack([points[:-1], points[1:]], axis=1)
    for chosen, color in ((~negative, "#0072B2"), (negative, "#C00000")):
        axis.add_collection(LineCollection(list(chords[chosen[:-1]]), colors=color, lw=0.7, alpha=0.35))
        axis.plot(*points[chosen].T, ".", color=color, ms=3.5)
    axis.set(xlim=(-12.5, 10.5), ylim=(0, 22))


def _zone(level: float) -> str:
    """The colour of an energy bin by its multiplier."""
    return "#F4A6A0" if level < 0 else "#FBE3DF" if level < SMALL else "#E3EEF8"


def _legend(figure: "Figure") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color="#0072B2", marker=".", label="chain"),
        Line2D([], [], color="#C00000", marker=".", label="move with a negative multiplier"),
        Patch(color=_zone(-1.0), label="bouncy zone: multiplier < 0"),
        Patch(color=_zone(0.0), label=f"bouncy zone: multiplier < {SMALL:g}"),
        Patch(color=_zone(1.0), label=f"absorbing zone: ≥ {SMALL:g}"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=12)
