"""Placeholder."""

from contourmc.studies.base import Outcome, Size, Study


def run(size: Size) -> Outcome:
    raise NotImplementedError


BIZARRE_PEAKS = Study("bizarre-peaks", "placeholder", "placeholder", run)
