"""Placeholder."""

from contourmc.studies.base import Outcome, Size, Study


def run(size: Size) -> Outcome:
    raise NotImplementedError


TRAJECTORIES = Study("trajectories", "placeholder", "placeholder", run)
