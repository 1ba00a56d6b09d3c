"""The page: its sections in order, and the file."""

from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

from contourmc._core.extras import import_extra
from contourmc._core.versions import version_of
from contourmc._core.whole_file import write_whole
from contourmc.draws.exhibits.drawing import draw
from contourmc.draws.exhibits.numbers import counted, shown
from contourmc.draws.report.distributions import distribution_sections
from contourmc.draws.report.energies import energies_section
from contourmc.draws.report.escaping import script_hash, script_json
from contourmc.draws.report.estimates import estimates_section, modes_section
from contourmc.draws.report.origin import again_section, automatic_section, settings_section
from contourmc.draws.report.predictions import predictions_section
from contourmc.draws.report.section import Section
from contourmc.draws.report.temperatures import temperatures_section
from contourmc.draws.report.verdict import verdict_of
from contourmc.draws.weighted import WeightedDraws

WIDE, HALF, THIRD = 1060, 500, 350  # pixels of a chart


def require_packages() -> None:
    """Raise an error that names what to install, before any work is done, if a page cannot be written."""
    import_extra("jinja2", "report")


def write_page(samples: WeightedDraws, file: Path, title: str, command: str = "") -> Path:
    """Write the page; an older one of the same name is replaced when the new one is complete."""
    write_whole(file, render(samples, title, command))
    return file


def render(samples: WeightedDraws, title: str, command: str = "") -> str:
    """The page as HTML.

    Jinja escapes every text in it. Only the script whose hash the page names may run, so that one that came in by a
    name would not, and nothing is loaded from elsewhere.
    """
    require_packages()
    jinja: Any = import_extra("jinja2", "report")
    templates = files("contourmc.draws.report") / "templates"
    environment = jinja.Environment(autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True)
    environment.filters["shown"] = shown
    script = (templates / "page.js").read_text(encoding="utf-8")
    sections, markup = sections_of(samples, command), jinja.utils.markupsafe.Markup
    drawings = [
        draw(chart, WIDE if chart.wide else HALF if section.two else THIRD)
        for section in sections
        for chart in section.charts
    ]
    return environment.from_string((templates / "page.html").read_text(encoding="utf-8")).render(
        title=title or _title(samples),
        verdict=verdict_of(samples),
        facts=_facts(samples),
        sections=sections,
        drawings=[markup(drawing.svg) for drawing in drawings],
        values=markup(script_json([drawing.values for drawing in drawings])),
        style=markup((templates / "page.css").read_text(encoding="utf-8")),
        script=markup(script),
        hash=script_hash(script),
        version=version_of("contourmc"),
        today=date.today().isoformat(),
    )


def sections_of(samples: WeightedDraws, command: str) -> list[Section]:
    """The sections that the run has something for."""
    drawn = samples.energies.shape[1] > 0
    found = [
        *([estimates_section(samples), modes_section(samples), *distribution_sections(samples)] if drawn else []),
        energies_section(samples) if drawn or samples.flattening is not None else None,
        temperatures_section(samples) if drawn else None,
        predictions_section(samples),
        automatic_section(samples),
        settings_section(samples),
        again_section(samples, command),
    ]
    return [section for section in found if section is not None]


def _title(samples: WeightedDraws) -> str:
    target = samples.settings.get("target") or {}
    named = [str(target.get(name)) for name in ("energy", "kind")]
    return next((f"A run of {name}" for name in named if name.isidentifier() and name != "None"), "A run")


def _facts(samples: WeightedDraws) -> list[str]:
    marks = samples.trajectory.steps
    steps = int(marks[-1]) if len(marks) else 0
    facts = [f"{counted(samples.chains, 'chain')} of {steps:,} steps", counted(samples.energies.size, "draw")]
    if "seed" in samples.settings:
        facts.append(f"seed {samples.settings['seed']}")
    facts.append(f"{samples.seconds:.1f} s")
    return [*facts, *(["interrupted"] if samples.interrupted else [])]
