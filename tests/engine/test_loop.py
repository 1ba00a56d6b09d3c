"""The compiled loop: the same bits however a run is cut, and no draw lost or kept twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.engine import pace, plan
from contourmc.engine.cpu_single_kernel import can_fuse
from contourmc.engine.state import start_chain
from contourmc.engine.step import prepare_block
from contourmc.problems import GaussianMixture

MIXTURE = GaussianMixture()
TARGET = cm.NoisyEnergy(MIXTURE.energy, gradient_variance=0.01)
PARTITION = cm.Partition(low=1.5, width=1.0, bins=50)
KERNEL = cm.csgld(0.1, PARTITION, zeta=0.75)


def run(**changes):
    settings = dict(init=0.0, steps=5000, kernel=KERNEL, chains=2, burn_in=137, thin=7, seed=3)
    return cm.sample(TARGET, **(settings | changes))


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_same_seed_gives_the_same_bits_and_another_seed_does_not():
    one, two, other = run(), run(), run(seed=4)
    for field in ("draws", "energies", "log_weights", "multipliers", "theta"):
        assert same(getattr(one, field), getattr(two, field))
    assert same(one.trajectory.means, two.trajectory.means)
    assert not same(one.draws, other.draws)


def test_cutting_a_run_into_segments_does_not_change_a_bit(monkeypatch):
    """Segments follow the clock; with no time at all each is a single step, blocks are cut everywhere."""
    whole = run(steps=2100)
    monkeypatch.setattr(pace, "SEGMENT_SECONDS", 0.0)
    monkeypatch.setattr(pace, "least_steps", lambda plan: 1)
    cut = run(steps=2100)
    assert same(whole.draws, cut.draws)
    assert same(whole.theta, cut.theta)
    assert same(whole.trajectory.means, cut.trajectory.means)


def test_a_chain_does_not_depend_on_how_many_run():
    few, many = run(chains=1), run(chains=5)
    assert same(few.draws[0], many.draws[0])
    assert same(few.theta[0], many.theta[0])


def test_one_kernel_and_vectorised_chains_agree(monkeypatch):
    """Different programs round differently, so only a short run can agree, to rounding."""
    fused = run(steps=40, burn_in=0, thin=1)
    monkeypatch.setattr(plan, "can_fuse", lambda *_: False)
    plain = run(steps=40, burn_in=0, thin=1)
    np.testing.assert_allclose(fused.draws, plain.draws, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(fused.theta, plain.theta, rtol=1e-3)


def test_draws_are_the_path_of_the_kernel_itself():
    """The engine against a plain Python loop over kernel.move with the same block noise."""
    steps, burn_in, thin = 50, 11, 3
    result = run(steps=steps, burn_in=burn_in, thin=thin, chains=1)
    key = jax.random.fold_in(jax.random.key(3), 0)
    block = plan.make_plan(TARGET, KERNEL, jnp.float32(0.0), steps, thin).build.block
    chain = start_chain(TARGET, KERNEL, key, jnp.float32(0.0), None, large=False)
    inputs = prepare_block(TARGET, KERNEL, key, chain.state.position, jnp.int32(1), block)
    state, positions, weights = chain.state, [], []
    for i in range(steps):
        target_inputs, kernel_inputs = jax.tree.map(lambda leaf, i=i: leaf[i], inputs)
        energy, gradient = TARGET.evaluate(target_inputs, state.position)
        positions.append(float(state.position))
        state, info = KERNEL.move(kernel_inputs, state, energy, gradient)
        weights.append(float(info.log_weight))
    expected = [positions[step - 1] for step in result.steps]
    assert list(result.steps) == list(range(burn_in + thin, steps + 1, thin))
    np.testing.assert_allclose(result.draws[0], expected, rtol=1e-3, atol=1e-4)
    kept = np.exp(weights[burn_in:])
    mean = np.sum(kept * positions[burn_in:]) / kept.sum()
    np.testing.assert_allclose(result.mean(), mean, rtol=1e-3)


@pytest.mark.parametrize("thin", [1, 5, 1024, 3000])
def test_every_draw_is_kept_once(thin):
    result = run(steps=9000, burn_in=1000, thin=thin)
    assert result.energies.shape == (2, 8000 // thin)
    assert np.all(result.energies != 0)  # no row was left empty
    assert len(np.unique(result.draws[0])) > 0.99 * (8000 // thin)  # two floats may be equal by chance
    energies = np.asarray(jax.vmap(MIXTURE.energy)(jnp.asarray(result.draws[0])))
    np.testing.assert_allclose(result.energies[0], energies, rtol=1e-4)


def test_positions_are_any_pytree():
    def energy(x):
        return 0.5 * jnp.sum(x["a"] ** 2) + 0.5 * jnp.sum((x["b"] - 2) ** 2)

    init = {"a": jnp.zeros(3), "b": jnp.ones((2, 2))}
    result = cm.sample(energy, init=init, steps=20_000, kernel=cm.sgld(0.05), chains=2)
    assert result.draws["b"].shape[2:] == (2, 2)
    assert result.variance()["a"].shape == (3,)
    # 2 chains of 18,000 steps with autocorrelation time 2/0.05: about 900 independent draws, sd 0.033
    np.testing.assert_allclose(result.mean()["b"], 2, atol=0.2)


def test_a_target_that_does_not_fuse_still_runs():
    """Sorting is not known to the single kernel; the chains are then a vector."""

    def energy(x):
        return 0.5 * jnp.sum(jnp.sort(x) ** 2)

    assert not can_fuse(jax.value_and_grad(energy), jnp.ones(3))
    result = cm.sample(energy, init=jnp.ones(3), steps=5000, kernel=cm.sgld(0.1), chains=3)
    assert np.isfinite(result.energies).all()


def test_a_constant_gradient_and_unused_inputs_compile():
    """Arguments that nothing reads abort XLA's single kernel; a flat target reads almost nothing."""
    result = cm.sample(lambda x: 0.0 * x, init=1.0, steps=2000, kernel=cm.sgd(0.1), chains=1)
    assert np.all(result.draws == 1.0)


def test_float64_when_it_is_on():
    with jax.enable_x64(True):
        result = cm.sample(MIXTURE.energy, init=0.0, steps=3000, kernel=KERNEL, chains=2)
    assert result.draws.dtype == np.float64
    assert np.isfinite(result.mean())


def falling(position):
    """Without an end: each step of `sgd(0.125)` goes up by 0.125, and beyond 7,100 of them nothing is finite."""
    return jnp.where(position > 7100 * 0.125, jnp.nan, -position)


@pytest.mark.parametrize("stop", [3000, 7000])
def test_where_a_run_is_cut_does_not_matter(stop):
    """Estimates on the way change nothing; and a number that is not finite is found at the same step, 7102.

    Both stops lie within a block of 1,024 steps; segments may be as long as a stretch, of 8,192.
    """

    def begin():
        return cm.start(falling, init=0.0, kernel=cm.sgd(0.125), chains=1, steps=200_000, burn_in=0, thin=10)

    whole, cut = begin(), begin()
    whole.advance(6000)
    for step in (2500, min(stop, 6000), 6000):
        if step > cut.step:
            cut.advance(step - cut.step)
            cut.samples()
    one, two = whole.samples(), cut.samples()
    np.testing.assert_array_equal(one.trajectory.steps, two.trajectory.steps)
    np.testing.assert_array_equal(one.mean(), two.mean())
    if stop > 6000:
        cut.advance(stop - 6000)
    for run in (whole, cut):
        with pytest.raises(cm.DivergenceError, match="chain 0 met a number that is not finite at step 7102") as error:
            run.advance()
        assert "the last finite energy was -887.5" in str(error.value)
        assert error.value.samples.steps[-1] == 7100  # the last draw before it: one in ten
        assert run.step == 7101
