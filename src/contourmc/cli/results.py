"""What `contourmc sample` leaves of a run: a page to read, its numbers, and the draws themselves."""

import json
from pathlib import Path
from typing import Any

from contourmc._core.describe import describe
from contourmc._core.whole_file import write_whole
from contourmc.draws.modes import has_modes
from contourmc.draws.report.page import write_page
from contourmc.draws.samples import Samples
from contourmc.draws.summary import Summary

FILES = ("report.html", "summary.json", "draws.nc")
SHOWN = 20  # the most modes in a terminal


def write_results(samples: Samples, found: Summary, folder: Path, title: str, command: str) -> list[Path]:
    """Write report.html, summary.json and draws.nc; returns the files."""
    page, numbers, draws = (folder / name for name in FILES)
    write_whole(numbers, json.dumps(summarise(samples, found), indent=2) + "\n")
    samples.save(draws)
    write_page(samples, page, title, command)
    return [page, numbers, draws]


def summarise(samples: Samples, found: Summary) -> dict[str, Any]:
    """The numbers of a run, as plain data: every coordinate, the modes, the diagnosis, the settings."""
    diagnosis = samples.diagnose()
    coordinates = {
        name: {
            "mean": row.mean,
            "standard_error": row.error,
            "standard_deviation": row.deviation,
            "quantiles": row.quantiles,
            "effective_sample_size": row.ess,
            "rhat": row.rhat,
        }
        for name, row in found.rows.items()
    }
    return describe(
        {
            "coordinates": coordinates,
            "modes": [mode._asdict() for mode in samples.modes()] if has_modes(samples) else [],
            "ok": diagnosis.ok,
            "diagnosis": str(diagnosis).splitlines(),
            "interrupted": samples.interrupted,
            "seconds": samples.seconds,
            "compile_seconds": samples.compile_seconds,
            "settings": samples.settings,
        }
    )


def digest(samples: Samples, found: Summary) -> str:
    """What a terminal shows of a run: the verdict, the estimates, and the modes."""
    modes = samples.modes() if has_modes(samples) else []
    listed = [f"mode {i}: {mode}" for i, mode in enumerate(modes[:SHOWN], 1)]
    more = [f"… and {len(modes) - SHOWN} more"] if len(modes) > SHOWN else []
    return "\n".join([str(samples.diagnose()), "", str(found), *([""] if modes else []), *listed, *more])
