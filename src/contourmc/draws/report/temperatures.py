"""The temperature curve, and the evidence, of a run that has them."""

import warnings

import numpy as np

from contourmc._core.pytrees import position_size
from contourmc.draws.bridging.integral import REFERENCE_DRAWS
from contourmc.draws.evidence import log_evidence
from contourmc.draws.exhibits.chart import GREY, PALETTE, Axis, Chart, Layer
from contourmc.draws.exhibits.table import Table
from contourmc.draws.report.leading import every
from contourmc.draws.report.section import Section
from contourmc.draws.temperatures import own_temperature
from contourmc.draws.thermodynamics import thermodynamics
from contourmc.draws.weighted import WeightedDraws

DRAWS = 100_000  # that are used at most: errors come from the spread of the chains
LARGEST = 200  # coordinates for which the evidence is estimated unasked
LONGEST = 20.0  # seconds that its evaluations of the energy may take, as long as those of the run
TITLE = "Temperatures and evidence"


def temperatures_section(samples: WeightedDraws) -> Section:
    """The curve and the evidence, or why there are none."""
    try:
        own = own_temperature(samples)
        used, stride = every(samples, DRAWS)
        curve = thermodynamics(used, None)
    except ValueError as error:
        return Section("temperatures", TITLE, [f"This run holds one temperature: {reason(error)}."])
    panels = {
        "Normaliser": (curve.log_normaliser, f"log Z(T) − log Z({own:g})"),
        "Mean energy": (curve.energy, "⟨U⟩"),
        "Heat capacity": (curve.heat_capacity, "Var(U)/T²"),
        "Entropy": (curve.entropy, f"S(T) − S({own:g})"),
    }
    charts, (low, high) = [], curve.temperatures[[0, -1]]
    for (title, (estimate, label)), colour in zip(panels.items(), PALETTE, strict=True):
        value, error = np.asarray(estimate.value), np.asarray(estimate.error)
        band = {"x": curve.temperatures, "y": value - 2 * error, "y2": value + 2 * error}
        layers = [
            Layer("band", band, title, colour),
            Layer("line", {"x": curve.temperatures, "y": value}, title, colour),
            Layer("rule", {"x": [own]}, "own temperature", GREY),
        ]
        ends = [f"{value[end]:.4g} ± {error[end]:.2g} at temperature {curve.temperatures[end]:.3g}" for end in (0, -1)]
        caption = f"{title}: {' and '.join(ends)}. The band is ± 2 standard errors; dashed: the run's own {own:g}."
        axes = Axis("temperature T", log=True, limits=(float(low), float(high))), Axis(label)
        charts.append(Chart(title, caption, *axes, layers, legend=False))
    text = f"The same draws, weighted anew, hold the temperatures from {low:.3g} to {high:.3g}."
    text += f" From one draw in {stride}." if stride > 1 else ""
    return _with_evidence(used, Section("temperatures", TITLE, [text], charts=charts))


def _with_evidence(samples: WeightedDraws, section: Section) -> Section:
    """The section, with a table of the evidence or a note that says why there is none."""
    if samples.target is None:
        note = "No evidence: the run does not know its energy, as one from a file or a map;"
        return _noted(section, [f"{note} run.log_evidence(energy=…) gives it."])
    if samples.draws is None:
        return _noted(section, ["No evidence: it needs the positions of the draws, which were not stored."])
    size = position_size(samples.draws) // samples.energies.size
    seconds = samples.seconds * 2 * REFERENCE_DRAWS / (samples.chains * int(samples.trajectory.steps[-1]))
    if size > LARGEST or seconds > LONGEST:
        what = f"{size:,} coordinates" if size > LARGEST else f"an energy that takes so long: about {seconds:,.0f} s"
        return _noted(section, [f"No evidence, for {what}; run.log_evidence() gives it."])
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = log_evidence(samples, None, None, 0)
    except ValueError as error:
        return _noted(section, [f"No evidence: {reason(error)}."])
    columns = ("log evidence", "standard error", "overlap with the reference", "effective draws")
    table = Table("evidence", columns, [tuple(map(float, found))], "log ∫exp(−U/τ)dx, by bridge sampling.")
    return _noted(section, [f"Warning: {warning.message}" for warning in caught], [table])


def _noted(section: Section, notes: list[str], tables: list[Table] | None = None) -> Section:
    return Section(section.key, section.title, section.text, tables or [], section.charts, notes)


def reason(error: ValueError) -> str:
    """Why something was not possible, without the name of the argument that a page has not got."""
    message = str(error)
    return (message.partition(" is not possible: ")[2] or message).rstrip(".")
