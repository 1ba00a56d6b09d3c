"""Positions of many arrays as one vector: nothing changes but the speed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core.layout import layout_of
from contourmc.engine import kernel_run, plan
from contourmc.engine.cpu_single_kernel import has_convolutions

INIT = {"a": jnp.ones((3, 2)), "b": [jnp.zeros(()), jnp.arange(4.0)]}


def energy(position):
    return sum(jnp.sum((leaf - 1) ** 2) for leaf in jax.tree.leaves(position)) + position["b"][0] * position["a"][0, 1]


def test_there_and_back():
    layout = layout_of(INIT)
    assert layout is not None
    back = layout.to_position(layout.to_vector(INIT))
    assert jax.tree.structure(back) == jax.tree.structure(INIT)
    jax.tree.map(np.testing.assert_array_equal, back, INIT)
    assert layout_of(jnp.zeros(3)) is None
    assert layout_of({"a": jnp.zeros(3), "b": jnp.zeros(3, jnp.float16)}) is None


@pytest.mark.parametrize("chains", [1, 2])
def test_a_run_is_the_same(monkeypatch, chains):
    """Without noise there is nothing random: the draws agree to rounding."""
    monkeypatch.setattr(plan, "LARGE", 4)  # also these positions are large
    settings = dict(init=INIT, steps=50, kernel=cm.momentum_sgd(0.05), chains=chains, burn_in=0, thin=10)
    as_vector = cm.sample(energy, **settings)
    monkeypatch.setattr(kernel_run, "layout_of", lambda position: None)
    plain = cm.sample(energy, **settings)
    assert jax.tree.structure(as_vector.draws) == jax.tree.structure(INIT)
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, atol=1e-6), as_vector.draws, plain.draws)
    np.testing.assert_allclose(as_vector.energies, plain.energies, rtol=1e-5)


def test_convolutions_on_a_cpu_are_not_looped_over(monkeypatch):
    """The step is compiled alone, since XLA's loops slow convolutions down; the draws are the same to rounding."""
    images = jax.random.normal(jax.random.key(0), (4, 8, 8, 1))

    def convolved(kernel):
        dimensions = ("NHWC", "HWIO", "NHWC")
        features = jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=dimensions)
        return jnp.sum((features - images) ** 2)

    assert has_convolutions(convolved, jnp.zeros((3, 3, 1, 1)))
    assert not has_convolutions(energy, INIT)
    settings = dict(init=jnp.zeros((3, 3, 1, 1)), steps=30, kernel=cm.sgd(1e-4), chains=1, burn_in=0, thin=3)
    stepped = cm.sample(convolved, **settings)
    monkeypatch.setattr(plan, "has_convolutions", lambda *arguments: False)
    looped = cm.sample(convolved, **settings)
    assert stepped.energies.shape == (1, 10)
    np.testing.assert_allclose(stepped.draws, looped.draws, atol=1e-6)
    assert looped.energies[0, -1] < 0.9 * looped.energies[0, 0]
