"""The estimates by name, and the modes."""

import jax
import numpy as np

from contourmc._core.pytrees import coordinates
from contourmc.draws.exhibits.numbers import Measured
from contourmc.draws.exhibits.table import Table
from contourmc.draws.modes import Mode, find_modes, has_modes, origin_of_modes
from contourmc.draws.report.leading import Leading, leading
from contourmc.draws.report.section import Section
from contourmc.draws.summary import LEVELS, summarise
from contourmc.draws.weighted import WeightedDraws

ROWS = 100  # the most coordinates in the table
MODES = 50  # the most modes in the table
PLACE = 8  # the most coordinates of the place of a mode
TITLE = "Estimates"


def estimates_section(samples: WeightedDraws) -> Section:
    """Mean, error, deviation, quantiles and effective size of the leading coordinates."""
    found = leading(samples, ROWS)
    if found is None:
        return Section("estimates", TITLE, ["The positions of the draws were not stored (store=False)."])
    if samples.draws is None:
        return _without_draws(found)
    levels = [f"{level:.0%}" for level in LEVELS]
    rows = []
    for name, row in zip(found.names, summarise(found.samples).rows.values(), strict=True):
        mean, *quantiles = (Measured(number, row.deviation) for number in (row.mean, *row.quantiles))
        rows.append((name, mean, row.error, row.deviation, *quantiles, row.ess, row.rhat))
    columns = ("coordinate", "mean", "standard error", "deviation", *levels, "effective size", "R̂")
    text = (
        "Means and deviations are weighted back to the target. The effective size is how many independent draws a mean"
        " is worth; R̂ is 1 where the chains agree."
    )
    return Section("estimates", TITLE, [text], [Table("estimates", columns, rows, _left_out(found))])


def modes_section(samples: WeightedDraws) -> Section:
    """The mass of each mode, its place and its energy."""
    if not has_modes(samples):
        return Section("modes", "Modes", [origin_of_modes(samples)])
    modes = find_modes(samples)
    total = sum(leaf.size for leaf in jax.tree.leaves(modes[0].minimum))
    rows = [
        (i, mode.mass, mode.error, Measured(mode.energy, 1.0), _place(mode)) for i, mode in enumerate(modes[:MODES], 1)
    ]
    note = f"The largest {MODES} of {len(modes)} modes." if len(modes) > MODES else ""
    note += f" The first {PLACE} of {total:,} coordinates of each place." if total > PLACE else ""
    number = "One mode was found." if len(modes) == 1 else f"{len(modes)} modes were found."
    text = f"{number} {origin_of_modes(samples)}"
    if any(mode.mass in (0, 1) for mode in modes):
        text += " Of a mass of 0 or 1 the error is a bound, with 95% confidence."
    columns = ("mode", "mass", "standard error", "lowest energy", "place")
    return Section("modes", "Modes", [text], [Table("modes", columns, rows, note.strip())])


def _place(mode: Mode) -> str:
    named = coordinates(jax.tree.map(lambda leaf: np.ravel(leaf)[:PLACE] if leaf.ndim else leaf, mode.minimum))
    return ", ".join(f"{name} = {float(value):.6g}" for name, value in list(named.items())[:PLACE])


def _without_draws(found: Leading) -> Section:
    """What the trajectory knows, if positions were not stored."""
    text = "The positions of the draws were not stored (store=False): there are no quantiles and effective sizes."
    samples = found.samples
    if samples.energies.shape[1] == 0:
        return Section("estimates", TITLE, [text])
    columns = (samples.mean(), samples.standard_error(), samples.variance())
    rows = [
        (name, Measured(mean, variance**0.5), float(error), float(variance) ** 0.5)
        for name, mean, error, variance in zip(found.names, *columns, strict=True)
    ]
    heads = ("coordinate", "mean", "standard error", "deviation")
    return Section("estimates", TITLE, [text], [Table("estimates", heads, rows, _left_out(found))])


def _left_out(found: Leading) -> str:
    shown = len(found.names)
    return f"The first {shown} of {found.total:,} coordinates; run.summary() has all." if found.total > shown else ""
