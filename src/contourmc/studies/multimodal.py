"""Placeholder."""

from contourmc.studies.base import Outcome, Size, Study


def run(size: Size) -> Outcome:
    raise NotImplementedError


MULTIMODAL = Study("multimodal-2d", "placeholder", "placeholder", run)
