"""SGLD: SGD at temperature 0, the right noise above it, any pytree, pure functions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from contourmc import CyclicCosine, sgd, sgld

POSITION = {"a": jnp.linspace(-1.0, 2.0, 6).reshape(2, 3), "b": (jnp.float32(0.7), jnp.ones(4))}


def energy(x):
    """Coupled and not quadratic, so that an error anywhere spreads everywhere."""
    return jnp.sum(jnp.cos(3 * x["a"])) * x["b"][0] + jnp.sum((x["b"][1] - jnp.mean(x["a"])) ** 4)


@functools.partial(jax.jit, static_argnums=(0, 2))
def run(kernel, position, steps):
    """A loop of one's own, as in the docstring of `Kernel`."""

    def body(state, key):
        state, info = kernel.step(key, state, *jax.value_and_grad(energy)(state.position))
        return state, (state.position, info)

    return jax.lax.scan(body, kernel.init(position), jax.random.split(jax.random.key(0), steps))


def assert_equal(tree, other):
    jax.tree.map(np.testing.assert_array_equal, tree, other)


@pytest.mark.parametrize("step_size", [0.01, CyclicCosine(0.02, 30)])
def test_temperature_0_is_sgd_to_the_bit(step_size):
    # optax counts steps from 0, we from 1.
    optimiser = optax.sgd((lambda count: step_size(count + 1)) if callable(step_size) else step_size)

    def body(carry, _):
        position, state = carry
        updates, state = optimiser.update(jax.grad(energy)(position), state)
        position = optax.apply_updates(position, updates)
        return (position, state), position

    start = POSITION, optimiser.init(POSITION)
    _, expected = jax.jit(lambda start: jax.lax.scan(body, start, None, 100))(start)
    _, (positions, _) = run(sgld(step_size, temperature=0.0), POSITION, 100)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(expected))
    assert_equal(positions, expected)


def test_a_step_is_the_formula():
    """x − ε∇U + √(2τε)·w, with w a standard Gaussian that does not depend on ε and τ."""
    x, gradient = jnp.linspace(-1.0, 2.0, 9), jnp.linspace(3.0, -5.0, 9)

    def noise(step_size, temperature):
        kernel = sgld(step_size, temperature)
        state, _ = kernel.step(jax.random.key(3), kernel.init(x), jnp.float32(0.0), gradient)
        return (state.position - x + step_size * gradient) / (2 * temperature * step_size) ** 0.5

    np.testing.assert_allclose(noise(0.1, 1.0), noise(0.02, 7.0), atol=1e-4)
    assert len(np.unique(noise(0.1, 1.0))) == 9  # every coordinate has noise of its own


def test_leaves_have_noise_of_their_own():
    position, kernel = {"a": jnp.zeros(3), "b": jnp.zeros(3)}, sgld(0.1)
    state, _ = kernel.step(jax.random.key(0), kernel.init(position), jnp.float32(0.0), position)
    assert not np.any(state.position["a"] == state.position["b"])


def test_temperature_0_from_a_schedule():
    """A schedule that is 0 gives no noise either."""
    cooled, frozen = sgld(0.01, lambda k: 0.0 * k), sgd(0.01)
    x = jnp.linspace(-1.0, 2.0, 9)
    arguments = jax.random.key(0), frozen.init(x), jnp.float32(0.0), 3 * x
    assert_equal(cooled.step(*arguments), frozen.step(*arguments))


def test_schedules_count_steps_from_1():
    kernel = sgd(lambda k: 0.1 * k)
    state = kernel.init(jnp.float32(0.0))
    for k in (1, 2, 3):
        before = state.position
        state, _ = kernel.step(jax.random.key(0), state, jnp.float32(0.0), jnp.float32(1.0))
        assert state.steps == k
        assert float(before - state.position) == pytest.approx(0.1 * k, rel=1e-5)


def test_position_keeps_structure_shapes_and_kinds():
    position = {"half": jnp.ones(3, jnp.bfloat16), "nested": [jnp.ones((2, 1)), {"scalar": jnp.float32(1)}]}
    kernel = sgld(0.1)
    state, _ = kernel.step(jax.random.key(0), kernel.init(position), jnp.float32(0.0), position)
    shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), position)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state.position) == shapes


def test_info_of_an_unweighted_kernel():
    kernel = sgld(0.01)
    _, info = kernel.step(jax.random.key(0), kernel.init(POSITION), jnp.float32(2.5), POSITION)
    assert (info.energy, info.bin, info.multiplier, info.log_weight) == (2.5, 0, 1, 0)
    assert info.bin.dtype == jnp.int32
    assert all(field.dtype == jnp.float32 for field in (info.energy, info.multiplier, info.log_weight))


def test_step_is_pure_and_can_be_compiled_and_vectorised():
    kernel, x = sgld(0.1), jnp.linspace(-1.0, 2.0, 9)
    state, value, gradient = kernel.init(x), jnp.float32(2.0), 3 * x
    keys = jax.random.split(jax.random.key(1), 3)
    together = jax.jit(jax.vmap(kernel.step, (0, None, None, None)))(keys, state, value, gradient)
    for i, key in enumerate(keys):
        alone = kernel.step(key, state, value, gradient)
        assert_equal(alone, kernel.step(key, state, value, gradient))
        this = jax.tree.map(lambda leaf, i=i: leaf[i], together)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), this, alone)
    assert_equal(state, kernel.init(x))


def test_equal_settings_are_equal_objects():
    assert sgld(0.1) == sgld(0.1, 1.0)
    assert hash(sgld(CyclicCosine(0.1, 5))) == hash(sgld(CyclicCosine(0.1, 5)))
    assert sgd(0.1) == sgld(0.1, 0.0) != sgld(0.1)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("step_size", 0.0), ("step_size", -0.1), ("step_size", float("nan")), ("step_size", float("inf")),
        ("step_size", "a"), ("step_size", None), ("step_size", lambda k: -0.1 * k),
        ("temperature", -1.0), ("temperature", float("nan")), ("temperature", "a"),
        ("temperature", lambda k: -0.1 * k),
    ],
)  # fmt: skip
def test_bad_input_is_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument}"):
        sgld(**{"step_size": 0.1} | {argument: value})
