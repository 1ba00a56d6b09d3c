"""Targets with many modes whose truth is known: energies to try a sampler on, and the distance to the truth.

problem = gallery()["mixture-10d"]
run = cm.sample(problem.energy, init=problem.start, steps=1_000_000, ...)
problem.distance(run)
"""

from contourmc.problems.base import Problem, Truth
from contourmc.problems.double_well import DoubleWell
from contourmc.problems.gallery import gallery
from contourmc.problems.gaussian_mixture import GaussianMixture
from contourmc.problems.label_switching import LabelSwitching
from contourmc.problems.mixtures import MultivariateMixture
from contourmc.problems.nine_modes import NineModes
from contourmc.problems.rastrigin import Rastrigin
from contourmc.problems.ring import Ring
from contourmc.problems.twenty_five_gaussians import TwentyFiveGaussians

__all__ = [
    "DoubleWell",
    "GaussianMixture",
    "LabelSwitching",
    "MultivariateMixture",
    "NineModes",
    "Problem",
    "Rastrigin",
    "Ring",
    "Truth",
    "TwentyFiveGaussians",
    "gallery",
]
