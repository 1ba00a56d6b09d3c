"""Placeholder."""

from contourmc.studies.base import Outcome, Size, Study


def run(size: Size) -> Outcome:
    raise NotImplementedError


THEORY = Study("theory", "placeholder", "placeholder", run)
