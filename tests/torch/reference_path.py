"""One path of a kernel in JAX, for doors to other frameworks to follow with the same noise.

Paths over barriers are unstable: a rounding error grows on the way, the more the landscape is flattened. So the
comparisons are made in 64 bits, with a θ that is learnt fast, and in 32 bits with one that is learnt more slowly.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import contourmc as cm

START = [1.0, -0.5, 0.3]
CENTRES = [[-1.5, 0.0, 0.0], [1.5, 0.5, 0.0]]
MASSES = [0.3, 0.7]
TWICE_VARIANCE = 0.72
STEP_SIZE = 0.01
PARTITION = cm.Partition(low=1.2, width=1.0, bins=10)
FAST = cm.Polynomial(scale=3.0, power=0.6, offset=100.0)
KERNELS = {
    "csgld": partial(cm.csgld, STEP_SIZE, PARTITION, omega=FAST),
    "csghmc": partial(cm.csghmc, STEP_SIZE, PARTITION, omega=FAST),
    "sgld": partial(cm.sgld, STEP_SIZE),
    "sghmc": partial(cm.sghmc, STEP_SIZE),
    "langevin": partial(cm.langevin, STEP_SIZE, momentum=0.5),
}
# Every scheme, rule and kind of weight.
SETTINGS = [
    *((name, dict(scheme=scheme)) for name in ("csgld", "csghmc") for scheme in ("smooth", "left", "centred", "right")),
    ("csgld", dict(scheme="step")),
    *((name, dict(rule=rule, zeta=1.5)) for name in ("csgld", "csghmc") for rule in ("biased", "scalable")),
    *((name, dict(weights="step")) for name in ("csgld", "csghmc")),
    ("csgld", dict(theta=tuple(np.arange(10, 0, -1) / 55))),
    ("csgld", dict(omega=None)),
    ("csghmc", dict(temperature=cm.Polynomial(3.0, 0.3))),
    ("sgld", {}),
    ("sgld", dict(temperature=0.0)),
    ("sghmc", dict(momentum=0.8)),
    ("langevin", {}),
]


def energy(x):
    """Two modes of unequal mass, smooth everywhere."""
    squares = jnp.sum((x - jnp.array(CENTRES)) ** 2, axis=-1)
    return -jax.nn.logsumexp(-squares / TWICE_VARIANCE + jnp.log(jnp.array(MASSES)))


class Path(NamedTuple):
    """noise: w_k, N(0, 1), of every step; None for a path that was given it.
    positions: x_{k+1}.
    log_weights, multipliers, bins: of x_k.
    theta: at the end; None without a contour.
    """

    noise: np.ndarray | None
    positions: np.ndarray
    log_weights: np.ndarray
    multipliers: np.ndarray
    bins: np.ndarray
    theta: np.ndarray | None


def reference(kernel, steps=1000, seed=0, settle_every=100):
    """A path of the kernel, and the noise that led to it.

    settle_every: how often the state is settled, which the `biased` rule can tell, since it does not keep Σθ = 1.
    """
    start = jnp.array(START)
    inputs = kernel.prepare(jax.random.key(seed), start, jnp.arange(1, steps + 1))
    moves, own = (kernel.dynamics, inputs.dynamics) if isinstance(kernel, cm.Contour) else (kernel, inputs)

    @jax.jit
    def run(inputs):
        def body(state, given):
            state, info = kernel.move(given, state, *jax.value_and_grad(energy)(state.position))
            state = jax.lax.cond(state.steps % settle_every == 0, kernel.settle, lambda state: state, state)
            return state, (state.position, info)

        return jax.lax.scan(body, kernel.init(start), inputs)

    state, (positions, info) = run(inputs)
    if own.noise is None:
        noise = np.zeros(positions.shape)
    else:
        noise = np.array(own.noise / moves.noise_scale(own.step_size, own.temperature)[:, None])
    theta = np.asarray(jnp.exp(kernel.settle(state).theta.levels)) if isinstance(kernel, cm.Contour) else None
    return Path(noise, *map(np.asarray, (positions, info.log_weight, info.multiplier, info.bin)), theta)


def difference(path, other):
    """The largest difference between two paths in anything, or infinity if they visit different bins."""
    if not np.array_equal(path.bins, other.bins):
        return np.inf
    pairs = [(path.positions, other.positions), (path.log_weights, other.log_weights)]
    pairs += [(path.multipliers, other.multipliers)] + ([] if path.theta is None else [(path.theta, other.theta)])
    return max(float(np.max(np.abs(a - b))) for a, b in pairs)
