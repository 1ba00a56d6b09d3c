"""Bins that follow the energies: what they find of them, and the multipliers that come of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc.flattening.following import Following
from contourmc.flattening.theta import LogTheta, log_theta

FOLLOWING = Following(bound=0.5, begin=200, smoothing=10)


def seen(energies, following=FOLLOWING):
    """What is known after these energies."""

    def step(state, given):
        energy, k = given
        state = following.seen(state, energy, k)
        return state, state

    steps = jnp.arange(1, len(energies) + 1)
    return jax.lax.scan(step, following.init(), (jnp.asarray(energies, float), steps))


def uniform(bins=FOLLOWING.bins):
    return log_theta(jnp.full(bins, 1 / bins))


def test_noise_and_spread_are_those_of_the_energies():
    """A slow wave of standard deviation 100 with noise of 20, over 20,000 steps.

    σ is known to 1/√(2·20,000), 0.5%; the spread of the wave, of which there are 20, is smoothed by 0.2% and gets the
    noise that remains, 20²/19 = 21 in 10,000. Tolerances are three times as wide. The mean and the variance go up and
    down with the wave, the mean by its height times 3/20,000 times 1,000/2π, which is 3.4.
    """
    random, k = np.random.default_rng(0), np.arange(20_000)
    energies = 5000 + 100 * np.sqrt(2) * np.sin(2 * np.pi * k / 1000) + random.normal(0, 20, k.size)
    found, _ = seen(energies)
    assert float(jnp.sqrt(found.noise)) == pytest.approx(20, rel=0.015)
    assert float(found.mean) == pytest.approx(5000, abs=7)
    assert float(jnp.sqrt(found.variance)) == pytest.approx(100, rel=0.03)
    assert float(FOLLOWING.reliability(found)) == pytest.approx(1 - 21 / 10_000, abs=1e-3)


def test_bins_follow_energies_that_fall():
    """While energies fall from 10,000 to 1,000 in 400 steps, they are some 3,000 from their mean. Of the square, e^{−8}
    is left when the flattening begins after 2,000 steps, and nothing 20,000 steps later: S² is that of the wave there,
    50, less what smoothing takes. It is a few millions at its height.
    """
    following = Following(begin=2000)
    energies = np.r_[np.geomspace(1e4, 1e3, 400), np.full(1600, 1e3), 1e3 + 10 * np.sin(np.arange(20_000) / 50)]
    found, along = seen(energies, following)
    assert float(found.mean) == pytest.approx(1e3, rel=0.001)
    assert 45 < float(found.variance) < 55
    assert float(along.variance.max()) > 1e6
    assert float(along.mean[0]) == pytest.approx(1e4)


def test_a_fall_just_before_the_flattening_is_forgotten():
    """Energies fall from 20,000 to 5,000 a little before or after bins begin, as with a learning rate that falls, and
    then walk with a standard deviation of 100 and a memory of 50 steps.

    15,000 steps later, steps before the fall count (350/15,150)³ = 1.2·10⁻⁵ of all, or less: of the square of 15,000
    this is 2,800, which adds up to 14% to S, of which smoothing leaves 95. Some 100 independent values make S known to
    7%, and the mean to 10. Limits are one such error of S besides what is left of the fall, and six of the mean; they
    hold for the seeds from 2 to 26. As a mean over all steps S would be 1,500 or more.
    """
    random = np.random.default_rng(2)
    walk = np.zeros(20_000)
    for k in range(1, walk.size):
        walk[k] = 0.98 * walk[k - 1] + random.normal(0, 100 * np.sqrt(1 - 0.98**2))
    for fall in (4800, 5000, 5200):
        found, _ = seen(np.where(np.arange(walk.size) < fall, 20_000, 5000) + walk, Following(begin=5000))
        assert float(jnp.sqrt(found.variance)) == pytest.approx(95, rel=0.21)
        assert float(found.mean) == pytest.approx(5000, abs=60)


def test_nothing_is_flattened_where_there_is_only_noise():
    """ū of white noise has the variance σ²/(2n − 1), so that r is 0 up to chance: by 5,000 steps, 500 independent."""
    found, _ = seen(np.random.default_rng(1).normal(0, 30, 5000))
    assert float(FOLLOWING.reliability(found)) < 0.2
    assert float(FOLLOWING.width(found)) >= 0.99 * 30 / np.sqrt(19)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bound", [0.3, 0.9])
def test_multipliers_stay_within_their_bound(seed, bound):
    """For any θ, any energy, and steep slopes; and the bound is reached."""
    random = np.random.default_rng(seed)
    following = Following(bound=bound, begin=200, smoothing=1)
    found, _ = seen(random.normal(0, 30, 3000).cumsum(), following)
    theta = LogTheta(jnp.asarray(random.normal(0, 5, following.bins)), jnp.zeros(()))
    spread = float(jnp.sqrt(found.variance))
    energies = found.mean + spread * np.linspace(-5, 5, 2001)
    multipliers = jax.vmap(
        lambda u: following.flatten(found._replace(smooth=u), theta, jnp.asarray(0.01), jnp.asarray(3000)).multiplier
    )(energies)
    away = np.abs(np.asarray(multipliers) - 1)
    assert away.max() <= bound * (1 + 1e-5)
    assert away.max() > 0.5 * bound


def test_the_multiplier_is_one_plus_zeta_tau_slope():
    """The weights lead back from the landscape on which the chain moves: 1 + τ·d(log weight)/du is the multiplier."""
    random = np.random.default_rng(3)
    following, temperature, step = Following(begin=200, smoothing=1), jnp.asarray(0.3), jnp.asarray(5000)
    found, _ = seen(random.normal(0, 30, 3000).cumsum(), following)
    theta = LogTheta(jnp.asarray(random.normal(0, 1, following.bins)), jnp.zeros(()))

    def log_weight(u):
        return following.flatten(found._replace(smooth=u), theta, temperature, step).log_weight

    energies = found.mean + jnp.sqrt(found.variance) * jnp.linspace(-2.7, 2.7, 40)
    expected = 1 + temperature * jax.vmap(jax.grad(log_weight))(energies)
    multipliers = jax.vmap(
        lambda u: following.flatten(found._replace(smooth=u), theta, temperature, step).multiplier
    )(energies)  # fmt: skip
    np.testing.assert_allclose(multipliers, expected, rtol=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_constant_energies_change_nothing(temperature):
    found, _ = seen(np.full(1000, 7.0))
    result = FOLLOWING.flatten(found, uniform(), jnp.asarray(temperature), jnp.asarray(1000))
    assert float(result.multiplier) == 1.0
    assert float(result.log_weight) == 0.0
    assert all(bool(jnp.isfinite(value)) for value in (*found, *result))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (dict(bound=0.0), "bound"),
        (dict(begin=5), "begin"),
        (dict(begin=50, smoothing=30), "begin"),
        (dict(smoothing=0), "smoothing"),
        (dict(bins=3), "bins"),
    ],
)
def test_impossible_settings_are_named(settings, named):
    with pytest.raises(ValueError, match=f"{named}="):
        Following(**settings)
