"""All problems by name."""

from functools import cache

import numpy as np

from contourmc.problems.base import Problem
from contourmc.problems.double_well import DoubleWell
from contourmc.problems.gaussian_mixture import GaussianMixture
from contourmc.problems.label_switching import LabelSwitching
from contourmc.problems.mixtures import MultivariateMixture
from contourmc.problems.nine_modes import NineModes
from contourmc.problems.rastrigin import Rastrigin
from contourmc.problems.ring import Ring
from contourmc.problems.twenty_five_gaussians import TwentyFiveGaussians


def gallery() -> dict[str, Problem]:
    """Every problem by its name, the easy ones first; the same instances at every call.

    The last is the hardest: its wide mode has 2⁵⁰ times the volume of the narrow one and lies 35 units of energy
    higher, so that at the energies where the modes meet almost nothing belongs to the narrow one.

    >>> list(contourmc.problems.gallery())[:3]
    ['mixture', 'nine-modes', 'twenty-five-gaussians']
    """
    return {problem.name: problem for problem in _problems()}


@cache
def _problems() -> tuple[Problem, ...]:
    return (
        GaussianMixture(),
        NineModes(),
        TwentyFiveGaussians(),
        MultivariateMixture(
            (0.1, 0.2, 0.3, 0.4),
            ((-5.0, -5.0), (5.0, -5.0), (-5.0, 5.0), (5.0, 5.0)),
            (0.6, 1.0, 1.4, 1.0),
            name="mixture-2d",
        ),
        MultivariateMixture((0.2, 0.3, 0.5), _corners(3, 10, 10.0), (1.0, 1.25, 1.0), name="mixture-10d"),
        MultivariateMixture((0.4, 0.6), _ends(50, 10.0), (1.0, 1.1), name="mixture-50d"),
        MultivariateMixture((0.4, 0.6), _ends(100, 10.0), (1.0, 1.05), name="mixture-100d"),
        _anisotropic(),
        DoubleWell(),
        Rastrigin(),
        Ring(),
        LabelSwitching(),
        MultivariateMixture((0.4, 0.6), _ends(50, 15.0), (1.0, 2.0), name="mixture-50d-unequal"),
    )


def _ends(dimension: int, apart: float) -> tuple[tuple[float, ...], ...]:
    """Two points on the diagonal, symmetric about the origin."""
    half = apart / (2 * dimension**0.5)
    return ((-half,) * dimension, (half,) * dimension)


def _corners(count: int, dimension: int, apart: float) -> tuple[tuple[float, ...], ...]:
    """Points on the first axes, all at the same distance from each other."""
    return tuple(tuple(row) for row in (apart / 2**0.5 * np.eye(count, dimension)).tolist())


def _anisotropic() -> Problem:
    """Standard deviations from 0.1 to 10, equal in both components, which lie 10 of them apart in coordinate 5."""
    scales = tuple(np.geomspace(0.1, 10.0, 10).tolist())
    means = tuple(tuple(side * 5 * scale * (i == 4) for i, scale in enumerate(scales)) for side in (-1, 1))
    return MultivariateMixture((0.4, 0.6), means, (scales, scales), name="anisotropic-10d")
