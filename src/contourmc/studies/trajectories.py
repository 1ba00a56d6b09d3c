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
from contourmc.sampling.start import start
from contourmc.studies.base import Claim, Options, Outcome, Verdict, complete, within
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROBLEM = GaussianMixture()
PARTITION = Partition(low=2.0, width=1.0, bins=50)  # both optima (1.43 and 1.84) lie in bin 0
ZETA = 0.75
LAG = 100  # steps over which a jump is measured
SMALL = 0.5  # below it, a multiplier counts as small


@dataclass(frozen=True)
class Panel:
    """Every step in some part of a run: (chain, step).

    thin: the picture shows one step in so many.
    levels: the multiplier of every energy bin, from θ at the end, averaged over the chains; None without θ.
    """

    title: str
    thin: int
    x: np.ndarray
    multipliers: np.ndarray
    levels: np.ndarray | None

    @property
    def steps(self) -> int:
        return self.x.shape[1]


def run(options: Options, results: dict[str, Any]) -> Outcome:
    """Sample the four panels, measure crossings and jumps, and draw."""
    steps, chains = options.size.length, max(2, options.size.seeds)  # a spread needs two chains
    panels: dict[str, Panel] = {}
    for name, panel in make_panels(steps, max(2, min(100_000, steps // 2)), chains):
        panels[name] = panel
        results[name] = _measure(panel)
    results |= {"steps": steps, "chains": chains, "low": PARTITION.low, "small_multiplier": SMALL}
    note = (
        f"{chains} chains from x = 0; the picture shows the first, the numbers are from every step of all. A "
        "crossing is a move from within 2 of one mode to within 2 of the other. The zones come from θ at the "
        "end of each panel (log θ averaged over the chains). The paper does not say where its partition "
        f"begins; ours begins at u₁ = {PARTITION.low:g}. In the lowest bin, which holds both optima, the "
        "paper's scheme leaves the multiplier at 1: the bouncy zone surrounds the optima."
    )
    return Outcome(_claims(results), results, {"trajectories": _figure(panels, results)}, (note,))


def make_panels(steps: int, window: int, chains: int) -> Iterator[tuple[str, Panel]]:
    """SGLD for `window` steps; CSGLD early, after `window` steps, and in the last `window` of all its steps."""
    target, early = NoisyEnergy(PROBLEM.energy, gradient_variance=0.01), min(1_000, window)
    settings: dict[str, Any] = dict(init=0.0, thin=1, chains=chains)
    contour = csgld(0.1, PARTITION, zeta=ZETA, scheme="left", weights="step")  # as in the paper
    plain = complete(sample(target, kernel=sgld(0.1), steps=window, burn_in=0, **settings))
    yield "sgld", _panel(f"SGLD: {window:,} steps", plain, window // 1_000)
    with start(target, kernel=contour, steps=steps, burn_in=0, **settings) as run:
        run.advance(early)
        yield "early", _panel(f"CSGLD, early: {early:,} steps", run.samples(), early // 100)
        if window > early:
            run.advance(window - early)
        yield "mid", _panel(f"CSGLD, mid: {window:,} steps", run.samples(), window // 1_000)
    last = complete(sample(target, kernel=contour, steps=steps, burn_in=steps - window, **settings))
    yield "late", _panel(f"CSGLD, late: the last {window:,} of {steps:,}", last, window // 1_000)


def _panel(title: str, samples: Samples, thin: int) -> Panel:
    return Panel(title, max(1, thin), samples.draws, samples.multipliers, _levels(samples))


def _levels(samples: Samples) -> np.ndarray | None:
    """1 + ζ·s of each bin, from the last θ; 1 in the two unbounded bins."""
    if samples.theta is None:
        return None
    slope = np.diff(np.log(samples.theta).mean(axis=0)) / PARTITION.width
    return np.concatenate([[1.0], 1 + ZETA * slope[:-1], [1.0]])


def _measure(panel: Panel) -> dict[str, Any]:
    """Crossings, multipliers, zones, and the jumps that begin with a negative multiplier."""
    crossings, first = zip(*(_crossings(x) for x in panel.x), strict=True)
    numbers = {
        "steps": panel.steps,
        "crossings": float(np.mean(crossings)),
        "crossings_standard_error": _error(np.array(crossings)),
        "crossings_per_100000": float(np.mean(crossings)) * 100_000 / panel.steps,
        "chains_that_crossed": int(np.sum(np.array(crossings) > 0)),
        "median_first_crossing": None if None in first else float(np.median(first)),  # type: ignore[arg-type]
    }
    if panel.levels is None:
        return numbers
    return numbers | {
        "negative_share": float((panel.multipliers < 0).mean()),
        "largest_multiplier": float(panel.multipliers.max()),
        "lowest_multiplier": float(panel.multipliers.min()),
        "lowest_multiplier_by_theta": float(panel.levels.min()),
        "negative_energies": _ranges(panel.levels < 0),
        "bouncy_energies": _ranges(panel.levels < SMALL),
        "jumps": {"local": _jumps(panel, -6.0), "global": _jumps(panel, 4.0)},
    }


def _crossings(x: np.ndarray) -> tuple[int, int | None]:
    """How often a chain went from one mode to the other, and the step of the first crossing."""
    side = np.where(np.abs(x + 6) < 2, -1, np.where(np.abs(x - 4) < 2, 1, 0))
    at = np.flatnonzero(side)
    changes = at[1:][np.diff(side[at]) != 0]
    return len(changes), int(changes[0]) + 1 if len(changes) else None


def _jumps(panel: Panel, mode: float) -> dict[str, Any]:
    """How far the chains get in the next 100 steps from points near a mode with a negative multiplier.

    median, standard_error: the mean of the chains' medians, and its standard error.
    """
    negative = (panel.multipliers < 0) & (np.abs(panel.x - mode) < 3)
    distances = np.abs(panel.x[:, LAG:] - panel.x[:, :-LAG])
    by_chain = [chain[begins] for chain, begins in zip(distances, negative[:, :-LAG], strict=True) if begins.any()]
    jumps: dict[str, Any] = {"share_of_steps": float(negative.mean())}
    if len(by_chain) > 1:
        medians = np.array([np.median(chain) for chain in by_chain])
        jumps |= {"median": float(medians.mean()), "standard_error": _error(medians)}
        jumps["largest"] = float(max(chain.max() for chain in by_chain))
    return jumps


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / values.size**0.5)


def _ranges(inside: np.ndarray) -> list[tuple[float, float]]:
    """The ranges of energy that a set of inner bins covers."""
    padded = np.concatenate([[False], inside[1:-1], [False]]).astype(int)
    starts, stops = np.flatnonzero(np.diff(padded) == 1), np.flatnonzero(np.diff(padded) == -1)
    return [(float(PARTITION.edges[a]), float(PARTITION.edges[b])) for a, b in zip(starts, stops, strict=True)]


def _claims(results: dict[str, Any]) -> list[Claim]:
    plain, early, mid, late = (results[name] for name in ("sgld", "early", "mid", "late"))
    chains, first = results["chains"], mid["median_first_crossing"]
    return [
        Claim(
            "SGLD tends to be trapped in a deep local optimum for an exponentially long time",
            f"{plain['crossings']:.2f} crossings per chain in {plain['steps']:,} steps",
            within(plain["crossings"], high=1, unit="crossing per chain"),
        ),
        Claim(
            "in the early period CSGLD might suffer from a similar local trap",
            f"{early['chains_that_crossed']} of {chains} chains cross in the first {early['steps']:,} steps",
            within(early["chains_that_crossed"], high=chains / 2, unit="chains cross"),
        ),
        Claim(
            "θ of the current subregion increases very fast, eventually rendering a smaller or even negative "
            "gradient multiplier",
            f"after {early['steps']:,} steps θ gives multipliers down to "
            f"{early['lowest_multiplier_by_theta']:.2f}, and below {SMALL:g} for U in "
            f"{_first(early['bouncy_energies'])}; {early['negative_share']:.0%} of the moves had one below 0",
            within(early["lowest_multiplier_by_theta"], high=0, unit="for the lowest multiplier"),
        ),
        Claim(
            "the bouncy zone enables the sampler to jump over large energy barriers to explore other modes",
            f"{_count(mid)}; the first crossing after {'–' if first is None else f'{first:,.0f}'} "
            "steps (median); "
            f"multiplier below {SMALL:g} over {_first(mid['bouncy_energies'])}, below 0 in "
            f"{_first(mid['negative_energies'])}; {mid['negative_share']:.0%} of the moves had one below 0, "
            f"extremes {mid['lowest_multiplier']:.1f} and {mid['largest_multiplier']:.1f}",
            within(mid["chains_that_crossed"], low=chains / 2, unit="chains cross"),
        ),
        Claim(
            "late, bouncy jumps occur in both local and global optima",
            f"{late['jumps']['local']['share_of_steps']:.1%} of all steps begin one near the local optimum, "
            f"{late['jumps']['global']['share_of_steps']:.1%} near the global one; {_count(late)}; extreme "
            f"multipliers {late['lowest_multiplier']:.1f} and {late['largest_multiplier']:.1f}",
            Verdict(min(jumps["share_of_steps"] for jumps in late["jumps"].values()) > 0, "some near both"),
        ),
        _larger("early", early["jumps"], late["jumps"]),
        _larger("mid", mid["jumps"], late["jumps"]),
    ]


def _count(panel: dict[str, Any]) -> str:
    error = panel["crossings_standard_error"]
    return f"{panel['crossings']:.0f} ± {error:.0f} crossings in {panel['steps']:,} steps"


def _first(ranges: list[tuple[float, float]]) -> str:
    return "({:g}, {:g}]".format(*ranges[0]) if ranges else "no range"


def _larger(name: str, before: dict[str, Any], after: dict[str, Any]) -> Claim:
    """Whether the late jumps are longer than those of another panel, near every mode where both panels have some.

    They differ from the claim if even with two standard errors more they would not be a tenth longer.
    """
    texts, lowest, highest = [], [], []
    for mode, new in after.items():
        old = before[mode]
        if "median" in old and "median" in new:
            error = 2 * np.hypot(new["standard_error"], old["standard_error"])
            lowest.append(new["median"] - old["median"] - error)
            highest.append((new["median"] - old["median"] + error) / old["median"])
            texts.append(
                f"{mode} {old['median']:.2f} ± {old['standard_error']:.2f} → {new['median']:.2f} ± "
                f"{new['standard_error']:.2f} (largest {old['largest']:.0f} → {new['largest']:.0f})"
            )
    agrees = None
    if texts:
        agrees = True if min(lowest) > 0 else False if min(highest) < 0.1 else None
    return Claim(
        f"later, larger bouncy jumps can be induced (late against {name})",
        f"median distance in {LAG} steps from a point with a negative multiplier: {'; '.join(texts)}",
        Verdict(agrees, "longer by two standard errors; differs if less than a tenth longer"),
    )


def _figure(panels: dict[str, Panel], results: dict[str, Any]) -> "Figure":
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 13}):
        figure, axes = plt.subplots(2, 2, figsize=(14, 9.5), layout="constrained", sharex=True, sharey=True)
        for letter, axis, (name, panel) in zip("abcd", axes.flat, panels.items(), strict=True):
            _draw(axis, panel)
            crossings = results[name]["crossings"]
            axis.set_title(f"({letter}) {panel.title}\n{crossings:.1f} crossings per chain", fontsize=13)
        for axis in axes[1]:
            axis.set_xlabel("x")
        for axis in axes[:, 0]:
            axis.set_ylabel("energy U(x)")
        _legend(figure)
    return figure


def _draw(axis: "Axes", panel: Panel) -> None:
    """The first chain of a panel over the landscape and its zones."""
    from matplotlib.collections import LineCollection

    if panel.levels is not None:
        bounds = np.concatenate([[-100.0], PARTITION.edges, [1000.0]])
        for low, high, level in zip(bounds, bounds[1:], panel.levels, strict=False):
            axis.axhspan(low, high, color=_zone(level), lw=0)
    grid, energy, _ = PROBLEM.grid(40_001)
    axis.plot(grid, energy, color="0.35", lw=1.5)
    x = panel.x[0, panel.thin - 1 :: panel.thin]
    points = np.stack([x, np.interp(x, grid, energy)], axis=-1)
    negative = panel.multipliers[0, panel.thin - 1 :: panel.thin] < 0
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
