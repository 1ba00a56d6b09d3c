"""A partition that follows the energies, in runs whose pilot got it wrong, and by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.problems import GaussianMixture
from contourmc.tuning import adaptive_run
from contourmc.tuning.adaptive_state import LEARNING, ROUNDS
from contourmc.tuning.conclusions import Bins, Conclusions
from contourmc.tuning.rebinning import bins_to_add, rebin

MIXTURE = GaussianMixture()  # 0.4·N(−6, 1) + 0.6·N(4, 1)
CHAINS = 10


def moving(run):
    """The smallest share of draws of a chain that differ from the one before: 0 for a chain that is stuck."""
    return np.min(np.mean(np.diff(run.energies, axis=1) != 0, axis=1))


def two_wells(x):
    """0.3·N((−3, 0), 1) + 0.7·N((3, 0), 0.4²): energies around 3.7 and 1.0."""
    centres, scales, weights = jnp.array([[-3.0, 0.0], [3.0, 0.0]]), jnp.array([1.0, 0.4]), jnp.array([0.3, 0.7])
    squares = jnp.sum((x - centres) ** 2, axis=1) / scales**2
    return -jax.nn.logsumexp(-squares / 2 - 2 * jnp.log(scales), b=weights / (2 * jnp.pi))


def pretend(monkeypatch, partition, start, scale=1.0, step_size=0.2):
    """A pilot that has found one basin only, and this partition."""
    start = np.asarray(start, np.float32)

    def after_chunk(self, state):
        found = Conclusions(
            step_size=step_size,
            scale=jnp.full(start.shape, scale, jnp.float32),
            factor=None,
            acceptance=0.9,
            bins=Bins(partition.low, partition.width, partition.bins),
            temperature=2.0,
            escaped=0.0,
            minima=start[None],
            minimum_energies=np.zeros(1),
            means=None,
            factors=None,
            starts=jnp.broadcast_to(start, (self.chains, *start.shape)),
            steps=self.steps // 10,
        )
        return self._begin_learning(state._replace(stage=LEARNING, found=found, bins=found.bins, spent=found.steps))

    monkeypatch.setattr(adaptive_run.AdaptiveRun, "_after_chunk", after_chunk)


def on_the_right(run):
    return run.expectation(lambda x: x[0] > 0)


def check_bookkeeping(run, steps):
    """Steps are not made up, and θ stands still over the bins that are reported."""
    assert run.steps[-1] <= steps
    assert run.theta.shape == (CHAINS, run.partition.bins)
    assert run.comparable_weights
    assert np.all(run.trajectory.theta == run.trajectory.theta[:1, :1])


def test_a_deeper_basin_that_the_pilot_missed(monkeypatch):
    """The pilot knows the wide basin only; the other holds 0.7 and lies 5 bins below, and is found while sampling.

    P(right) to 0.15: its standard error is 0.03 to 0.05.
    """
    pretend(monkeypatch, cm.Partition(low=3.7, width=0.5, bins=30), [-3.0, 0.0], step_size=0.05)
    looks = []

    def not_while_learning(energies, partition):
        looks.append(partition)
        return (0, 0) if len(looks) < ROUNDS else bins_to_add(energies, partition)

    monkeypatch.setattr(adaptive_run, "bins_to_add", not_while_learning)
    run = cm.sample(two_wells, init=jnp.array([-3.0, 0.0]), steps=100_000, chains=CHAINS)
    changes = run.settings["automatic"]["changes"]
    assert changes
    assert all("extended" in change for change in changes)
    assert run.partition.low < 2.2  # three bins or more; one of four bins would not have been extended
    check_bookkeeping(run, 100_000)
    assert moving(run) > 0.1
    assert on_the_right(run) == pytest.approx(0.7, abs=0.15)


@pytest.fixture(scope="module")
def too_high():
    """low = 12 where energies begin at 1.4: without an extension the barrier at 14 would not be passed."""
    with pytest.MonkeyPatch.context() as patch:
        pretend(patch, cm.Partition(low=12.0, width=0.5, bins=14), -6.0)
        return cm.sample(MIXTURE.energy, init=-6.0, steps=100_000, chains=CHAINS, thin=10)


def test_a_partition_that_starts_far_too_high(too_high):
    """P(x < 0) to 0.1: 0.39 to 0.41 in seeds 0 and 1."""
    assert too_high.settings["automatic"]["changes"]
    assert too_high.partition.low < 5
    check_bookkeeping(too_high, 100_000)
    assert too_high.expectation(lambda x: x < 0) == pytest.approx(0.4, abs=0.1)


def test_extending_while_learning_takes_no_more_than_burn_in(too_high):
    """Sampling begins and ends where it was to begin and end, to the step."""
    assert too_high.steps[0] == too_high.settings["burn_in"] + 10
    assert too_high.steps[-1] == 100_000


def test_a_partition_that_ends_too_low(monkeypatch):
    """Flattened up to 4.4, with the barrier at 14: chains cross rarely, and `diagnose` says what to do about it.

    13% to 15% of the draws are above the partition in 16 seeds; it speaks from 10% on.
    """
    pretend(monkeypatch, cm.Partition(low=2.0, width=0.8, bins=5), -6.0)
    run = cm.sample(MIXTURE.energy, init=-6.0, steps=100_000, chains=CHAINS)
    check_bookkeeping(run, 100_000)
    diagnosis = run.diagnose()
    assert not diagnosis.ok
    assert "above the partition" in str(diagnosis)
    assert "give partition=Partition(" in str(diagnosis)


def test_rebinning_keeps_what_was_learnt():
    """Inner bins keep their θ; that of an end bin is shared out as its energies were visited; Σθ stays 1."""
    old = cm.Partition(low=2.0, width=1.0, bins=5)
    kernel = cm.csgld(0.1, old, theta=[0.5, 0.2, 0.15, 0.05, 0.1])
    state = jax.vmap(kernel.init)(jnp.zeros(1))
    new = old.extended(2, 1)
    energies = np.repeat([-5.0, 0.5, 1.5, 3.0, 5.5, 9.0], [100, 200, 700, 50, 300, 100])[None].astype(np.float32)
    after = rebin(state, energies, old, new)
    theta = np.exp(np.asarray(after.theta.levels + after.theta.offset[:, None])[0])
    # half a visit is added to each new bin: 0.5% here
    np.testing.assert_allclose(theta[:3], [0.05, 0.1, 0.35], rtol=0.02)
    np.testing.assert_allclose(theta[3:6], [0.2, 0.15, 0.05], rtol=1e-5)
    np.testing.assert_allclose(theta[6:], [0.075, 0.025], rtol=0.02)
    assert theta.sum() == pytest.approx(1, abs=1e-5)
    assert after.visits.shape == (1, 8)


def test_when_a_partition_is_extended():
    partition = cm.Partition(low=2.0, width=0.5, bins=10)  # up to 6
    inside = np.linspace(1.9, 5.9, 1000)[None]
    assert bins_to_add(inside, partition) == (0, 0)
    assert bins_to_add(inside[:, :0], partition) == (0, 0)
    few = np.concatenate([inside[:, 100:], np.full((1, 10), -50.0)], axis=1)  # fewer than 20 draws do not count
    assert bins_to_add(few, partition) == (0, 0)
    deep = np.concatenate([inside, np.full((1, 500), -3.0)], axis=1)
    assert bins_to_add(deep, partition) == (10, 0)  # 5 units of energy are 10 bins
    high = np.concatenate([inside, np.full((1, 400), 20.0)], axis=1)
    below, above = bins_to_add(high, partition)
    assert below == 0
    assert above > 0


def test_an_extended_partition_still_starts_above_the_lowest_energy():
    """Energies 0.36 + Exp(1), as in a basin of two dimensions: bin 0 of the new partition must not be empty."""
    for width in (0.3, 0.5, 0.8):
        partition = cm.Partition(low=6.0, width=width, bins=30)
        energies = (0.36 + np.random.default_rng(0).exponential(size=2000)).reshape(10, -1)
        below, _ = bins_to_add(energies, partition)
        assert below > 0
        assert np.mean(energies <= partition.extended(below, 0).low) > 0.05
