"""Placeholder."""

from contourmc.studies.base import Outcome, Size, Study


def run(size: Size) -> Outcome:
    raise NotImplementedError


GAUSSIAN_MIXTURE = Study("gaussian-mixture", "placeholder", "placeholder", run)
