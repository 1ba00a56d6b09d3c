"""Energies of every ordinary kind run, and give the same draws on both paths of the CPU."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.engine import plan

RANDOM = np.random.default_rng(0)


def normal(*shape):
    return jnp.asarray(RANDOM.normal(size=shape), jnp.float32)


CENTRES, MATRIX, INPUTS, TARGETS, MANY = normal(2, 10), normal(10, 10), normal(50, 3), normal(50), normal(4096)
ROWS, LABELS = normal(10_000, 5), jnp.asarray(RANDOM.integers(0, 2, 10_000), jnp.float32)


def mixture(x):
    return -jax.nn.logsumexp(-0.5 * (((x - CENTRES) @ MATRIX) ** 2).sum(-1))


def network(params):
    hidden = jnp.tanh(INPUTS @ params["first"] + params["bias"])
    return jnp.sum((hidden @ params["second"] - TARGETS) ** 2) + sum(jnp.sum(x**2) for x in jax.tree.leaves(params))


def logistic(weights):
    logits = ROWS @ weights
    return jnp.sum(jnp.logaddexp(0.0, logits) - LABELS * logits)


KINDS = {
    "a product of matrices": (mixture, jnp.zeros(10)),
    "a small network": (network, {"first": jnp.full((3, 8), 0.1), "bias": jnp.zeros(8), "second": jnp.full(8, 0.1)}),
    "a sum over 4,096 numbers": (lambda x: jnp.sum((MANY - x) ** 2) / 2, 0.1),
    "5,000 dimensions": (lambda x: jnp.sum(x**2) / 2, jnp.zeros(5000)),
    "logistic regression on 10,000 rows": (logistic, jnp.zeros(5)),
    "a quadratic form": (lambda x: x @ MATRIX @ MATRIX.T @ x / 2, jnp.ones(10)),
    "a Cholesky factor": (lambda x: jnp.sum(jnp.linalg.cholesky(jnp.eye(3) * (1 + jnp.sum(x**2)))), jnp.ones(3)),
    "a sort": (lambda x: jnp.sum(jnp.sort(x) ** 2 * jnp.arange(1, 5)), jnp.ones(4)),
    "a Fourier transform": (lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2), jnp.ones(8)),
}


def run(kind, **changes):
    energy, init = KINDS[kind]
    return cm.sample(energy, init=init, steps=30, kernel=cm.sgld(1e-5), chains=2, burn_in=0, thin=10, **changes)


@pytest.mark.parametrize("kind", KINDS)
def test_both_paths_give_the_same_draws(kind, monkeypatch):
    """30 steps in float32, which round differently: to 1e-4."""
    by_default = run(kind)
    monkeypatch.setenv("CONTOURMC_FUSE", "0")
    vectorised = run(kind)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), by_default.draws, vectorised.draws
    )
    assert np.ptp(by_default.energies) > 0


def test_a_compiler_that_refuses_the_single_kernel_costs_nothing_but_speed(monkeypatch, caplog):
    """Asked for a single kernel that it cannot make, it answers with an error; the chains are then a vector."""
    expected = run("a product of matrices")
    monkeypatch.setattr(plan, "can_fuse", lambda *_: True)
    with caplog.at_level(logging.DEBUG, "contourmc"):
        refused = run("a product of matrices")
    assert "refuses a single kernel" in caplog.text
    np.testing.assert_array_equal(refused.draws, expected.draws)
