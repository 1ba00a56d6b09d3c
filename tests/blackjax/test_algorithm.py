"""Kernels in BlackJAX's loops: the steps of one's own loop, weights that belong to the draws, batches in order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

blackjax = pytest.importorskip("blackjax", reason="BlackJAX is an optional extra: pip install 'contourmc[blackjax]'")

from contourmc.blackjax import algorithm  # noqa: E402

PARTITION = cm.Partition(low=2.2, width=0.5, bins=20)
SHAPES = cm.basin_shapes(np.array([[-3.0], [3.0]]), np.ones((2, 1, 1)))
KERNELS = {
    "sgld": cm.sgld(0.1),
    "sghmc": cm.sghmc(0.02),
    "langevin": cm.langevin(0.1),
    "csghmc": cm.csghmc(0.02, PARTITION),
    "adjusted": cm.adjusted(0.1),
    "jumps": cm.contour(cm.jumps(cm.adjusted(0.1), SHAPES), PARTITION),
    "replicas": cm.replica_exchange(cm.sgld(0.1), cm.sgld(0.1, 5.0)),
    "schedule": cm.sgld(cm.Polynomial(0.1, 0.5)),
}


def log_density(x):
    """0.3·N(−3, 1) + 0.7·N(3, 1), up to a constant."""
    return jax.nn.logsumexp(jnp.log(jnp.array([0.3, 0.7])) - (x[0] - jnp.array([-3.0, 3.0])) ** 2 / 2)


def test_a_weighted_estimate_from_blackjaxs_own_loop():
    """The share of the right mode is 0.7. Of 4 chains × 90,000 steps a thousand or so are independent, crossings being
    a hundred steps apart: the standard error is about 0.015, and 0.07 is more than four of them.
    """
    sampler = algorithm(cm.csgld(0.2, PARTITION), cm.from_log_density(log_density))

    def chain(key):
        _, (xs, weights) = blackjax.util.run_inference_algorithm(
            rng_key=key, inference_algorithm=sampler, num_steps=100_000, initial_position=jnp.array([-3.0]),
            transform=lambda state, info: (state.position[0], info.log_weight),
        )  # fmt: skip
        return xs, weights

    xs, log_weights = jax.vmap(chain)(jax.random.split(jax.random.key(0), 4))
    xs, log_weights = xs[:, 10_000:], log_weights[:, 10_000:]
    weights = jax.nn.softmax(log_weights.ravel())
    assert jnp.sum(weights * (xs.ravel() > 0)) == pytest.approx(0.7, abs=0.07)
    assert jnp.sum(weights * jnp.minimum((xs.ravel() - 3) ** 2, (xs.ravel() + 3) ** 2)) == pytest.approx(1, abs=0.15)
    assert log_weights.std() > 0.3


def test_info_describes_the_draw():
    sampler = algorithm(cm.csgld(0.2, PARTITION), cm.from_log_density(log_density))
    state = sampler.init(jnp.array([-3.0]))
    for key in jax.random.split(jax.random.key(1), 5):
        state, info = sampler.step(key, state)
        assert info.energy == pytest.approx(float(-log_density(state.position)), rel=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_runs_compiled_mapped_and_scanned(name):
    sampler = algorithm(KERNELS[name], cm.from_log_density(log_density))
    keys = jax.random.split(jax.random.key(2), (50, 3))
    states = jax.vmap(sampler.init)(jnp.array([[-3.0], [0.0], [3.0]]), keys[0])

    @jax.jit
    def run(states):
        return jax.lax.scan(lambda states, keys: _recorded(jax.vmap(sampler.step)(keys, states)), states, keys)

    last, (xs, infos) = run(states)
    assert xs.shape == (50, 3, 1)
    assert infos.log_weight.shape == (50, 3)
    assert np.isfinite(xs).all()
    assert len(np.unique(xs)) > 20
    assert jax.tree.map(lambda leaf: leaf[0], last.kernel).steps == 50


def _recorded(stepped):
    states, info = stepped
    return states, (states.position, info)


def test_a_step_is_that_of_ones_own_loop():
    kernel = cm.csghmc(0.02, PARTITION)
    sampler = algorithm(kernel, lambda x: -log_density(x))
    position = jnp.array([1.0])
    state, own = sampler.init(position), kernel.init(position)
    for key in jax.random.split(jax.random.key(3), 10):
        state, info = sampler.step(key, state)
        energy, gradient = jax.value_and_grad(lambda x: -log_density(x))(own.position)
        own, expected = kernel.step(key, own, energy, gradient)
        jax.tree.map(np.testing.assert_array_equal, (state.kernel, info), (own, expected))


def test_an_epoch_of_mini_batches_goes_through_all_data_and_the_state_is_carried():
    y = jnp.arange(12.0)

    def likelihood(x, state, batch):
        return -((batch - x) ** 2) / 2, {"seen": state["seen"] + jnp.sum(batch), "count": state["count"] + 1}

    start = {"seen": jnp.float32(0.0), "count": jnp.int32(0)}
    target = cm.Posterior(likelihood, lambda x: -(x**2) / 2, y, batch_size=3, state=start)
    sampler = algorithm(cm.sgld(1e-3), target)
    last, _ = blackjax.util.run_inference_algorithm(
        rng_key=jax.random.key(4), inference_algorithm=sampler, num_steps=8, initial_position=jnp.float32(0.0)
    )
    assert last.target["count"] == 8
    assert last.target["seen"] == 2 * y.sum()


def test_an_external_energy_in_blackjaxs_loop():
    target = cm.external(lambda x: (np.sum(x**2) / 2, x), workers="threads")
    results = []
    with target.session():
        for given in (target, lambda x: jnp.sum(x**2) / 2):
            last, _ = blackjax.util.run_inference_algorithm(
                rng_key=jax.random.key(5), inference_algorithm=algorithm(cm.sgld(0.1), given), num_steps=20,
                initial_position=jnp.ones(2),
            )  # fmt: skip
            results.append(last.position)
        target.after(0)
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_what_is_not_possible(untyped):
    with pytest.raises(ValueError, match=r"^kernel=3 .*csgld"):
        algorithm(3, log_density)
    with pytest.raises(ValueError, match=r"^kernel=Contour.*shared=False"):
        algorithm(cm.csgld(0.1, PARTITION, shared=True), log_density)
    with pytest.raises(ValueError, match=r"^target=5 .*function"):
        algorithm(cm.sgld(0.1), 5)
    with pytest.raises(ValueError, match=r"^init=1 .*floats"):
        algorithm(cm.sgld(0.1), log_density).init(1)
    with pytest.raises(ValueError, match=r"^target=.*must be one float"):
        algorithm(cm.sgld(0.1), lambda x: x).init(jnp.ones(2))


def test_without_blackjax_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("contourmc.blackjax.sampling_algorithm.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"contourmc\[blackjax\]"):
        algorithm(cm.sgld(0.1), log_density)
