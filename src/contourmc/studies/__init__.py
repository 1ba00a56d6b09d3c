"""The paper's experiments, one module each; `contourmc reproduce NAME` runs one."""

from contourmc.studies.base import Claim, Options, Outcome, Study, write
from contourmc.studies.bizarre_peaks import BIZARRE_PEAKS
from contourmc.studies.gaussian_mixture import GAUSSIAN_MIXTURE
from contourmc.studies.multimodal import MULTIMODAL
from contourmc.studies.theory import THEORY
from contourmc.studies.trajectories import TRAJECTORIES

STUDIES = {study.name: study for study in (GAUSSIAN_MIXTURE, TRAJECTORIES, BIZARRE_PEAKS, MULTIMODAL, THEORY)}

__all__ = ["STUDIES", "Claim", "Options", "Outcome", "Study", "write"]
