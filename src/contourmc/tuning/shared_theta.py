"""What chains have learnt separately, brought together."""

import jax
import numpy as np

from contourmc.engine.kernel_run import KernelRun
from contourmc.engine.recorder import trajectory_of
from contourmc.engine.state import gather
from contourmc.flattening.theta import LogTheta
from contourmc.kernels.contour import ContourState


def met(run: KernelRun) -> list[ContourState]:
    """The chains, in their groups, with the mean of what they have learnt: θ ← Σ_c θ_c / C."""
    groups = run.state.groups
    levels, offset = gather(groups, lambda chain: chain.state.theta)
    together = np.logaddexp.reduce(levels + offset[:, None])
    together = (together - np.logaddexp.reduce(together)).astype(levels.dtype)

    def meet(state: ContourState) -> ContourState:
        theta = state.theta
        levels = jax.device_put(np.broadcast_to(together, theta.levels.shape))
        return state._replace(theta=LogTheta(levels, jax.device_put(np.zeros(theta.offset.shape, levels.dtype))))

    return [meet(group.state) for group in groups]


def with_mean_theta(run: KernelRun) -> ContourState:
    """The chains, with the mean of log θ over the second half of learning, which has less noise than the last."""
    kernel_state: ContourState = run.state.chains.state
    trajectory = trajectory_of(run.state)
    assert trajectory.theta is not None
    late = np.log(np.maximum(trajectory.theta[:, trajectory.steps > trajectory.steps[-1] // 2], 1e-300))
    levels, offset = kernel_state.theta
    mean = late.mean(axis=(0, 1))
    mean = (mean - np.logaddexp.reduce(mean)).astype(levels.dtype)
    theta = LogTheta(
        jax.device_put(np.broadcast_to(mean, levels.shape)), jax.device_put(np.zeros(offset.shape, offset.dtype))
    )
    visits = kernel_state.visits
    return kernel_state._replace(theta=theta, visits=jax.device_put(np.zeros(visits.shape, visits.dtype)))
