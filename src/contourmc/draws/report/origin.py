"""How a run was made: what it chose by itself, its settings, versions, and the lines that make it again."""

import json
import platform
from collections.abc import Iterator
from typing import Any

from contourmc._core.describe import describe
from contourmc._core.versions import versions
from contourmc.draws.exhibits.numbers import Measured, shown
from contourmc.draws.exhibits.table import Cell, Table
from contourmc.draws.report.again import lines_of
from contourmc.draws.report.section import Section
from contourmc.draws.weighted import WeightedDraws

LONGEST = 200  # characters of a setting
SETTINGS = 100  # the most rows


def automatic_section(samples: WeightedDraws) -> Section:
    """What the run chose by itself."""
    chosen, partition = samples.settings.get("automatic"), samples.partition
    if "learning_rate" in samples.settings:
        return Section("automatic", "Chosen automatically", notes=_training(samples.settings))
    if chosen is None:
        return Section("automatic", "Chosen automatically", ["Nothing: the kernel was given with all its settings."])
    notes = []
    if "step_size" in samples.settings and partition is not None:
        given = {name: ", as given" * (name in chosen.get("given", ())) for name in ("step_size", "partition")}
        size = f"Step size {samples.settings['step_size']:.3g}, in units of each coordinate's scale squared"
        notes.append(f"{size}{given['step_size']}.")
        low, high = (shown(Measured(end, partition.high - partition.low)) for end in (partition.low, partition.high))
        bins = f"Energies flattened from {low} to {high}, in {partition.bins} bins"
        notes.append(f"{bins} of width {partition.width:.3g}{given['partition']}.")
    if "pilot_steps" in chosen:
        notes.append(
            f"Found by a pilot of {chosen['pilot_steps']:,} steps a chain, accepting {chosen['acceptance']:.0%};"
            f" walkers left their basin at temperature {chosen['temperature']:g}."
        )
    if chosen.get("correlated"):
        notes.append("Coordinates depend on one another: steps are scaled by a covariance that was learnt.")
    if jumps := chosen.get("jumps"):
        notes.append(
            f"Jumps between {jumps['basins']} basins every {jumps['every']} steps; {jumps['accepted']:.0%} were"
            " accepted."
        )
    notes += [f"On the way: {change}." for change in chosen["changes"]]
    return Section("automatic", "Chosen automatically", notes=notes or ["Nothing yet: the run ended in its pilot."])


def _training(settings: dict[str, Any]) -> list[str]:
    """What follows from a learning rate."""
    dynamics, following = settings["kernel"]["dynamics"], settings["kernel"]["following"]
    temperature = dynamics["temperature"] if isinstance(dynamics["temperature"], float) else "a schedule"
    notes = [
        f"The kernel: contour SGHMC by the learning rate, with momentum {dynamics['momentum']:g}; temperature:"
        f" {temperature}.",
        f"{following['bins']} bins that follow the energies, smoothed over {following['smoothing']} steps; flattening"
        f" from step {following['begin']:,} on, with multipliers within 1 ± {following['bound']:g}.",
    ]
    found = settings.get("following", {})
    if "zeta" in found:
        notes.append(f"At the end the bins were {found['width']:.3g} wide, and ζ was {found['zeta']:.3g}.")
    return notes


def settings_section(samples: WeightedDraws) -> Section:
    """All settings by name, and versions."""
    described = describe({name: value for name, value in samples.settings.items() if name != "automatic"})
    rows = list(_flat("", described))
    note = f"The first {SETTINGS} of {len(rows)}; run.settings has all." if len(rows) > SETTINGS else ""
    tables = [
        Table("settings", ("setting", "value"), rows[:SETTINGS], note),
        Table(
            "versions",
            ("package", "version"),
            list(versions().items()),
            f"On {platform.system()}, {platform.machine()}.",
        ),
    ]
    text = f"Sampled in {samples.seconds:.1f} s, plus {samples.compile_seconds:.1f} s to compile."
    text += " Versions are those that wrote this page."
    return Section("settings", "Settings and versions", [text], tables)


def again_section(samples: WeightedDraws, command: str) -> Section:
    """The lines that make the run again."""
    if command:
        return Section("again", "Make it again", code=command)
    text = "Functions, data and arrays are yours to bring: a page does not hold them."
    return Section("again", "Make it again", [text], code=lines_of(samples))


def _flat(name: str, setting: Any) -> Iterator[tuple[Cell, Cell]]:
    """Settings within settings by names such as `kernel.partition.low`."""
    if isinstance(setting, dict) and setting:
        for inner, value in setting.items():
            yield from _flat(f"{name}.{inner}" if name else inner, value)
    else:
        text = setting if isinstance(setting, str) else json.dumps(setting, ensure_ascii=False)
        yield name, text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
