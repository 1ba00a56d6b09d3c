"""The contour combinator: its step against the paper's formulas, and what it must leave alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc import Biased, Partition, Polynomial, contour, csghmc, csgld, ksgld, sghmc, sgld

PARTITION = Partition(low=1.0, width=0.5, bins=8)  # edges 1, 1.5, … 4
POSITION = jnp.linspace(-1.0, 2.0, 6)
THETA = np.random.default_rng(1).dirichlet(np.ones(8))
STEPS = 200


def energy(x):
    """Mostly between 1 and 5 at temperature 1: in the inner bins."""
    return jnp.sum(x**2) / 2 + jnp.sin(3 * x[0])


@functools.partial(jax.jit, static_argnums=(0, 2))
def run_from(kernel, state, steps=STEPS):
    def body(state, key):
        new, info = kernel.step(key, state, *jax.value_and_grad(energy)(state.position))
        return new, (state.position, info)

    return jax.lax.scan(body, state, jax.random.split(jax.random.key(0), steps))


def run(kernel, steps=STEPS):
    """The last state, and position and info of every step."""
    return run_from(kernel, kernel.init(POSITION), steps)


def log_theta(state):
    return np.asarray(state.theta.levels, float) + float(state.theta.offset)


def assert_equal(tree, other):
    jax.tree.map(np.testing.assert_array_equal, tree, other)


def assert_finite(tree):
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(tree))


# --- One step, by hand -------------------------------------------------------------------------------


def log_psi(theta, u, scheme):
    """log Ψ as the paper draws it, a straight line from knot to knot; flat beyond both ends, but for `right` below."""
    if scheme == "step":
        return np.log(theta)[np.clip(int(np.ceil((u - 1.0) / 0.5)), 0, 7)]
    edges = 1.0 + 0.5 * np.arange(7)
    if scheme == "smooth":  # the slope is a straight line from edge to edge; integrate it
        slopes = np.diff(np.log(theta)) / 0.5 * ([0] + [1] * 5 + [0])
        path = [*edges[edges < u], np.clip(u, 1.0, 4.0)]
        return np.log(theta[1]) + np.trapezoid(np.interp(path, edges, slopes), path)
    if scheme == "right" and u < 1.0:
        return np.log(theta[1]) + (u - 1.0) * np.log(theta[1] / theta[0]) / 0.5
    knots = {"left": edges, "right": edges - 0.5, "centred": edges - 0.25}[scheme]
    return np.interp(np.clip(u, 1.0, 4.0), [*knots, knots[-1] + 0.5], np.log(theta))


@pytest.mark.parametrize(
    ("scheme", "rule", "weights"),
    [
        ("left", "original", "step"),  # the paper's own choice
        ("smooth", "original", "continuous"),  # ours
        ("right", "biased", "continuous"),
        ("centred", "biased", "step"),
        ("step", "scalable", "continuous"),
    ],
)
def test_a_step_is_the_papers_algorithm(scheme, rule, weights):
    """Bin, weigh, learn θ and move by a multiple of the gradient, all from one evaluation at x_k."""
    zeta, temperature, omega, rho = 2.5, 0.7, 0.2, 0.3
    dynamics = sgld(0.1, temperature)
    chosen = Biased(rho) if rule == "biased" else rule
    kernel = contour(dynamics, PARTITION, zeta=zeta, omega=omega, scheme=scheme, rule=chosen, weights=weights)
    key, x, gradient = jax.random.key(1), jnp.array([1.0, -2.0]), jnp.array([3.0, 0.5])
    before = kernel.init(x)
    before = before._replace(theta=before.theta._replace(levels=jnp.log(jnp.asarray(THETA, jnp.float32))))
    lowest = 0.7 if scheme == "right" else -5.0
    energies = np.array([lowest, 1.2, 1.4, 2.1, 2.9, 3.6, 3.9, 50.0])
    steps = jax.jit(jax.vmap(kernel.step, (None, None, 0, None)))
    all_after, infos = steps(key, before, jnp.asarray(energies, jnp.float32), gradient)

    for i, u in enumerate(energies):
        after, info = jax.tree.map(lambda leaf, i=i: leaf[i], (all_after, infos))
        J = np.clip(int(np.ceil((u - 1.0) / 0.5)), 0, 7)
        slope = 0.0
        if scheme != "step" and (u > 1.0 or scheme == "right") and u < 4.0:
            slope = (log_psi(THETA, u + 1e-6, scheme) - log_psi(THETA, u - 1e-6, scheme)) / 2e-6
        log_weight = zeta * (np.log(THETA[J]) if weights == "step" else log_psi(THETA, u, scheme))
        assert info.energy == jnp.float32(u)
        assert info.bin == J
        assert float(info.multiplier) == pytest.approx(1 + zeta * temperature * slope, rel=1e-4)
        assert float(info.log_weight) == pytest.approx(log_weight, rel=1e-5)

        moved, _ = dynamics.step(key, dynamics.init(x), jnp.float32(u), info.multiplier * gradient)
        np.testing.assert_allclose(after.position, moved.position, rtol=1e-5, atol=1e-6)
        w = THETA[J] if rule == "scalable" else np.exp(log_weight)
        bins = np.arange(8)
        high_order = omega * rho * (bins >= J) if rule == "biased" else 0.0
        theta = THETA + omega * (w + high_order) * ((bins == J) - THETA)
        np.testing.assert_allclose(np.exp(log_theta(after)), theta / theta.sum(), rtol=1e-5)
        np.testing.assert_array_equal(after.visits, bins == J)
        assert after.steps == 1
    if scheme != "step":  # both downhill and uphill were among the cases
        assert infos.multiplier.min() < 0 < infos.multiplier.max()


def test_far_below_the_first_edge_theta_stays_a_distribution():
    """The line of `right` rises without limit there, and with it w = Ψ^ζ; a step is held below ωw = 1/2."""
    kernel = contour(sgld(0.1), PARTITION, zeta=2.5, omega=0.2, scheme="right")
    state = kernel.init(jnp.zeros(2))
    state = state._replace(theta=state.theta._replace(levels=jnp.log(jnp.asarray(THETA, jnp.float32))))
    assert THETA[0] > THETA[1]
    after, info = jax.jit(kernel.step)(jax.random.key(0), state, jnp.float32(-20.0), jnp.ones(2))
    assert float(info.log_weight) + np.log(0.2) > 0
    expected = 0.5 * THETA + 0.5 * (np.arange(8) == 0)
    np.testing.assert_allclose(np.exp(log_theta(after)), expected, rtol=1e-5)


# --- Without flattening ------------------------------------------------------------------------------


@pytest.mark.parametrize("dynamics", [sgld(0.05), sghmc(0.01)])
def test_zeta_0_is_the_dynamics_itself_to_the_bit(dynamics):
    """Operation by operation. Compiled, up to rounding: a compiler may order two programs differently."""
    kernel = contour(dynamics, PARTITION, zeta=0.0)
    np.testing.assert_allclose(run(kernel, steps=30)[1][0], run(dynamics, steps=30)[1][0], rtol=1e-5, atol=1e-5)
    with jax.disable_jit():
        state, (positions, info) = run(kernel, steps=30)
        plain, (expected, plain_info) = run(dynamics, steps=30)
    assert_finite(expected)
    assert_equal(positions, expected)
    assert_equal(state.dynamics, plain)
    assert_equal(info.energy, plain_info.energy)
    assert np.all(info.log_weight == 0)
    assert np.all(info.multiplier == 1)
    assert state.visits.sum() == 30


def test_zeta_above_0_is_not():
    """So that the test above can fail."""
    _, (positions, info) = run(csgld(0.05, PARTITION))
    _, (expected, _) = run(sgld(0.05))
    assert not np.array_equal(positions, expected)
    assert np.any(info.multiplier != 1)


# --- θ -----------------------------------------------------------------------------------------------


def test_known_theta_is_left_alone():
    """To the bit, after any number of steps."""
    kernel = ksgld(0.05, PARTITION, THETA.tolist())
    start = kernel.init(POSITION)
    state, (_, info) = run_from(kernel, start)
    assert_equal(state.theta, start.theta)
    np.testing.assert_allclose(np.exp(log_theta(state)), THETA, rtol=1e-5)
    np.testing.assert_array_equal(state.visits, np.bincount(info.bin, minlength=8))


def test_without_omega_theta_stands_still():
    """To the bit; the moves are those of a kernel that knows this θ."""
    kernel = csgld(0.05, PARTITION, omega=None)
    start = kernel.init(POSITION)
    state, (positions, info) = run_from(kernel, start)
    assert_equal(state.theta, start.theta)
    np.testing.assert_array_equal(state.visits, np.bincount(info.bin, minlength=8))
    known = ksgld(0.05, PARTITION, [1 / 8] * 8)
    assert_equal(positions, run(known)[1][0])


def test_chains_that_share_theta_have_the_same_one():
    """To the bit, all along; the chains are not the same, and θ has moved. The same seed gives the same bits."""
    kernel = csgld(0.05, PARTITION, shared=True)
    settings = dict(init=POSITION, steps=3000, kernel=kernel, chains=3, thin=1)
    first = cm.sample(energy, **settings)
    assert np.all(first.trajectory.theta == first.trajectory.theta[:1])
    assert np.abs(np.log(first.theta[0] * 8)).max() > 0.1
    assert not np.array_equal(first.draws[0], first.draws[1])
    again = cm.sample(energy, **settings)
    np.testing.assert_array_equal(again.draws, first.draws)
    np.testing.assert_array_equal(again.theta, first.theta)
    assert not first.comparable_weights  # it was still moving: the weights of two steps cannot be compared


def test_chains_that_do_not_share_theta_have_their_own():
    """So that the test above can fail."""
    run = cm.sample(energy, init=POSITION, steps=3000, kernel=csgld(0.05, PARTITION), chains=3)
    assert not np.array_equal(run.theta[0], run.theta[1])


def test_ksgld_is_csgld_with_theta():
    assert ksgld(0.05, PARTITION, THETA.tolist()) == csgld(0.05, PARTITION, theta=THETA.tolist())


def test_learnt_theta_is_a_distribution_and_moves():
    state, (_, info) = run(csgld(0.05, PARTITION))
    theta = np.exp(log_theta(state))
    assert theta.sum() == pytest.approx(1, abs=1e-5)
    assert len(np.unique(info.bin)) > 2
    assert not np.allclose(theta, 1 / 8, rtol=0.01)


def test_biased_without_its_term_is_original_to_the_bit():
    assert_equal(run(csgld(0.05, PARTITION, rule=Biased(rho=0.0))), run(csgld(0.05, PARTITION)))


@pytest.mark.parametrize("rule", ["biased", "scalable"])
def test_the_papers_zeta_for_deep_networks(rule):
    """ζ = 10⁶ at τ = 10⁻⁶: multipliers of ordinary size, log weights of −10⁶, all of it finite."""
    kernel = csghmc(0.001, PARTITION, temperature=1e-6, zeta=1e6, rule=rule, omega=Polynomial(10, 0.75, 1000))
    state, out = run(kernel)
    assert_finite((state, out))
    assert np.exp(log_theta(state)).sum() == pytest.approx(1, abs=1e-5)
    assert np.abs(out[1].log_weight).max() > 1e5
    assert np.any(out[1].multiplier != 1)


@pytest.mark.parametrize("bins", [2, 10_000])
def test_few_and_many_bins(bins):
    state, out = run(csgld(0.01, Partition(1.0, 0.001, bins)))
    assert state.visits.shape == state.theta.levels.shape == (bins,)
    assert state.visits.sum() == STEPS
    assert_finite((state, out))


# --- A kernel like any other -------------------------------------------------------------------------


def test_contour_over_sghmc():
    kernel = csghmc(0.01, PARTITION, temperature=0.5, momentum=0.8, zeta=0.9)
    assert kernel == contour(sghmc(0.01, 0.5, 0.8), PARTITION, zeta=0.9)
    state, (_, info) = run(kernel)
    assert state.dynamics.velocity.shape == POSITION.shape
    assert state.steps == STEPS
    assert_finite((state, info))
    assert np.any(info.multiplier != 1)


def test_position_keeps_structure_shapes_and_kinds():
    position = {"half": jnp.ones(3, jnp.bfloat16), "nested": [jnp.ones((2, 1)), jnp.float32(1)]}
    kernel = csghmc(0.1, PARTITION)
    state, info = jax.jit(kernel.step)(jax.random.key(0), kernel.init(position), jnp.bfloat16(2.2), position)
    shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), position)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state.position) == shapes
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state.dynamics.velocity) == shapes
    assert all(field.dtype == jnp.float32 for field in (info.energy, info.multiplier, info.log_weight))


def test_step_is_pure():
    kernel = csghmc(0.01, PARTITION, temperature=0.5, momentum=0.8, zeta=0.9)
    start = kernel.init(POSITION)
    assert_equal(run_from(kernel, start), run_from(kernel, start))
    assert_equal(start, kernel.init(POSITION))


def test_info_describes_the_point_a_step_started_from():
    _, (positions, info) = run(csgld(0.05, PARTITION))
    np.testing.assert_allclose(info.energy, jax.vmap(energy)(positions), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(info.bin, PARTITION.index(info.energy))


# --- Increments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [csgld(0.05, PARTITION), csghmc(0.05, PARTITION, rule="scalable")])
def test_a_step_is_its_increment_added_to_the_position(kernel):
    """For a loop that holds the position itself: the state has none, and θ, velocity and info are the same."""
    state = kernel.init(POSITION)
    inputs = jax.tree.map(lambda leaf: leaf[0], kernel.prepare(jax.random.key(0), POSITION, jnp.arange(1, 2)))
    u, gradient = jax.value_and_grad(energy)(POSITION)
    moved, info = kernel.move(inputs, state, u, gradient)
    added, after, same = kernel.increment(inputs, state.at(None), u, gradient)
    assert after.position is None
    assert_equal((POSITION + added, after.at(moved.position), same), (moved.position, moved, info))
