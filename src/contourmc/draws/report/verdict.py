"""The verdict on a run: whether to trust it, in a colour and in sentences."""

from typing import Literal, NamedTuple

from contourmc.draws.diagnostics import diagnose
from contourmc.draws.findings import Diagnosis, Severity
from contourmc.draws.weighted import WeightedDraws

Level = Literal["good", "warning", "problem"]
LEVELS: dict[Severity, Level] = {"note": "good", "warning": "warning", "problem": "problem"}


class Verdict(NamedTuple):
    """level: after the worst finding, for the colour.  summary: what it rests on.  diagnosis: all of it."""

    level: Level
    summary: str
    diagnosis: Diagnosis


def verdict_of(samples: WeightedDraws) -> Verdict:
    """What `diagnose` says; the worst of its findings, which comes first, decides."""
    diagnosis = diagnose(samples)
    level = LEVELS[diagnosis.findings[0].severity] if diagnosis.findings else "good"
    return Verdict(level, diagnosis.summary[:1].upper() + diagnosis.summary[1:], diagnosis)
