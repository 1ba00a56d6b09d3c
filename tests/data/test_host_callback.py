"""Data that stay on the host: the same draws as resident ones, errors that say what, no thread left behind."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.engine import pace

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(53, 2)).astype(np.float32)
Y = (X @ [1.0, -2.0] + 0.5 * RANDOM.normal(size=53)).astype(np.float32)
PARAMS = {"slope": jnp.array([0.3, 0.1]), "bias": jnp.float32(0.2)}
LIKELIHOOD = cm.GaussianLikelihood(lambda params, x: x @ params["slope"] + params["bias"], noise=0.5)
KERNEL = cm.csgld(1e-3, cm.Partition(low=60.0, width=10.0, bins=20))


def posterior(data=(X, Y), **changes):
    settings = dict(log_likelihood=LIKELIHOOD, log_prior=cm.GaussianPrior(1.0), data=data, batch_size=10)
    return cm.Posterior(**(settings | changes))


def run(target, **changes):
    return cm.sample(target, **(dict(init=PARAMS, steps=230, kernel=KERNEL, chains=2, thin=4, seed=5) | changes))


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@pytest.fixture
def mapped(tmp_path):
    """The data as memory-mapped files."""
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    return np.load(tmp_path / "x.npy", mmap_mode="r"), np.load(tmp_path / "y.npy", mmap_mode="r")


@pytest.mark.parametrize(("changes", "chains"), [(dict(), 1), (dict(replace=True), 2)])
def test_the_draws_are_those_of_resident_data(mapped, changes, chains):
    resident, streamed = (run(posterior(data, **changes), chains=chains) for data in ((X, Y), mapped))
    for field in ("draws", "energies", "theta"):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5),
            getattr(resident, field),
            getattr(streamed, field),
        )


def test_cutting_a_run_in_the_middle_of_blocks_does_not_change_a_bit(mapped, monkeypatch):
    whole = run(posterior(mapped))
    monkeypatch.setattr(pace, "SEGMENT_SECONDS", 0.0)  # a step at a time
    assert same(whole.draws, run(posterior(mapped)).draws)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("contourmc")]
    assert "on the host: float32[2], float32[]" in whole.settings["target"]["data"]


def test_the_rows_of_the_next_step_are_read_ahead(mapped):
    """All but the first batch of the run are there when they are asked for, also those of the next block."""
    target = posterior(mapped)
    waited, gather = [], target.data.reader._gather
    target.data.reader._gather = lambda chosen: (waited.append(threading.current_thread().name), gather(chosen))[1]
    run(target, steps=1100)  # more than a block
    ahead = [name for name in waited if name.startswith("contourmc memmap reader")]
    assert len(waited) - len(ahead) <= 2  # the check of the start, and the first step
    assert len(ahead) >= 1099


def test_the_energy_of_all_data_and_its_gradient_need_no_copy_of_them(mapped):
    (streamed, slope), (resident, expected) = (
        jax.value_and_grad(posterior(data).energy)(PARAMS) for data in (mapped, (X, Y))
    )
    np.testing.assert_allclose(streamed, resident, rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), slope, expected)


def test_resident_is_a_choice(mapped):
    assert posterior(mapped, resident=True).resident
    assert not posterior(mapped).resident
    assert posterior((X, Y)).resident
    assert not posterior((X, Y), resident=False).resident


def test_a_number_that_is_not_finite_is_told_when_its_row_is_read():
    x = X.copy()
    x[7, 1] = np.nan
    with pytest.raises(cm.DataError, match=r"^rows of the data .*: data\[0\]='1 numbers that are not finite'"):
        run(posterior((x, Y), resident=False))


def test_chains_with_data_of_their_own_need_them_resident(mapped):
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), posterior(mapped), posterior(mapped))
    with pytest.raises(ValueError, match=r"^target=.*resident=True"):
        stacked.session()
