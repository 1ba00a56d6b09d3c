"""The kernel that a run chose for itself, from what its pilot found."""

import jax.numpy as jnp

from contourmc.kernels.adjusted import Adjusted
from contourmc.kernels.basin_shapes import basin_shapes
from contourmc.kernels.contour import Contour
from contourmc.kernels.dynamics import Flattenable
from contourmc.kernels.jumps import Jumps
from contourmc.kernels.langevin import Langevin
from contourmc.kernels.scale import Factor
from contourmc.kernels.schedules import Polynomial
from contourmc.tuning.adaptive_state import LEARNING, AdaptiveState
from contourmc.tuning.conclusions import Conclusions
from contourmc.tuning.pilot import MOMENTUM
from contourmc.tuning.varied_step import VariedStep

OMEGA = Polynomial(scale=10.0, power=0.6, offset=100.0)


def chosen_kernel(state: AdaptiveState, given_step: float | None, *, exact: bool) -> Contour:
    """The kernel of a stage: chains learn θ, or sample with θ fixed.

    given_step: the step size that the user gave, or None.
    exact: whether energies are without noise.
    """
    assert state.bins is not None
    omega = OMEGA if state.stage == LEARNING else None
    return Contour(_dynamics(state.found, given_step, exact), state.bins.partition, omega=omega)


def _dynamics(found: Conclusions | None, given_step: float | None, exact: bool) -> Flattenable:
    """How the chains move; if there are several basins and energies are exact, they also jump."""
    size = given_step if found is None else found.step_size
    assert size is not None
    if found is None or not exact:
        return Langevin(size, 1.0, MOMENTUM)
    scale = found.scale if found.factor is None else Factor(jnp.asarray(found.factor, jnp.result_type(float)))
    adjusted = Adjusted(VariedStep(size), 1.0, MOMENTUM, scale)
    return adjusted if found.means is None else Jumps(adjusted, basin_shapes(found.means, found.factors))
