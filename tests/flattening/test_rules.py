"""The rules that learn θ, against the formulas of the paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc.flattening.rules import Biased, Scalable, as_rule, learn, learn_together
from contourmc.flattening.theta import LogTheta, at_bin, log_theta, normalised


def random_theta(bins, seed=0):
    return jnp.asarray(np.random.default_rng(seed).dirichlet(np.ones(bins)), jnp.result_type(float))


def theta_of(log):
    return np.exp(np.asarray(log.levels, float) + float(log.offset))


# --- Learning ----------------------------------------------------------------------------------------


def paper(theta, J, w, omega, rho):
    """θ(i) + ω·(w + ωρ·1[i ≥ J])·(1[i = J] − θ(i)), as the paper writes it."""
    i = np.arange(len(theta))
    return theta + omega * (w + omega * rho * (i >= J)) * ((i == J) - theta)


def random_updates(rho, count=300):
    """θ before, θ after by the paper, θ after by `learn`: ω from 1e-5 to 0.5, w from 1e-4 to 1."""
    rng = np.random.default_rng(3)
    before = rng.dirichlet(np.ones(20), count)
    bins = rng.integers(20, size=count)
    omega, w = 10 ** rng.uniform(-5, np.log10(0.5), count), 10 ** rng.uniform(-4, 0, count)
    offset = rng.uniform(-5, 5, count)
    expected = np.stack([paper(*one, rho) for one in zip(before, bins, w, omega, strict=True)])

    def one(levels, offset, J, log_w, log_omega):
        after = learn(LogTheta(levels, offset), J, log_w, log_omega, rho)
        return jnp.exp(after.levels + after.offset)

    inputs = np.log(before) - offset[:, None], offset, bins, np.log(w), np.log(omega)
    found = jax.jit(jax.vmap(one))(*(jnp.asarray(array) for array in inputs))
    return before, expected, np.asarray(found, float)


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_learning_is_the_papers_formula(rho):
    """To float32: levels of about 10 are rounded to 1e-6, and so is θ, relatively."""
    _, expected, found = random_updates(rho)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_learning_changes_theta_by_the_papers_formula(rho):
    """The same for the change itself, which float32 cannot show for a small ω: to 1e-5 of it."""
    before, expected, found = random_updates(rho)
    changed = np.abs(expected - before) > 1e-9 * before  # less is lost to rounding: 1e-15 / 1e-9 = 1e-6
    assert changed.mean() > 0.9
    np.testing.assert_allclose((found - before)[changed], (expected - before)[changed], rtol=1e-5)


def test_a_thousand_updates_without_normalising():
    """Against the paper's formula in float64, all along; Σθ = 1.

    Each update rounds a level near −5 to 2e-7: √1000 or, at worst, 1000 of them make 1e-5 to 2e-4.
    """
    rng = np.random.default_rng(4)
    theta = rng.dirichlet(np.ones(20))
    bins, omegas = rng.integers(20, size=1000), 10 / (np.arange(1, 1001) ** 0.6 + 100)

    def body(log, inputs):
        J, log_omega = inputs
        return learn(log, J, at_bin(log, J), log_omega), None

    start = log_theta(jnp.asarray(theta, jnp.float32))
    log, _ = jax.lax.scan(body, start, (jnp.asarray(bins), jnp.log(jnp.asarray(omegas, jnp.float32))))
    for J, omega in zip(bins, omegas, strict=True):
        theta = paper(theta, J, theta[J], omega, 0.0)
    assert log.offset != 0  # nothing normalised on the way
    assert theta_of(log).sum() == pytest.approx(1, abs=2e-4)
    np.testing.assert_allclose(theta_of(log), theta, rtol=2e-4)


def test_a_million_updates_keep_the_sum():
    """Normalised every 1000 updates; the sums are those just before."""

    def body(log, inputs):
        J, log_omega = inputs
        return learn(log, J, at_bin(log, J), log_omega), None

    def thousand(log, number):
        steps = number * 1000 + 1 + jnp.arange(1000)
        bins = jax.random.randint(jax.random.fold_in(jax.random.key(0), number), (1000,), 0, 10)
        log, _ = jax.lax.scan(body, normalised(log), (bins, jnp.log(10 / (steps**0.6 + 100))))
        return log, jnp.sum(jnp.exp(log.levels + log.offset))

    log, sums = jax.jit(lambda log: jax.lax.scan(thousand, log, jnp.arange(1000)))(log_theta(random_theta(10)))
    np.testing.assert_allclose(sums, 1, atol=2e-4)
    assert theta_of(normalised(log)).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_extreme_numbers_stay_finite(rho):
    """θ(J) = e⁻³⁰⁰ and w = θ^ζ with ζ = 10⁶: e^(−3·10⁸)."""
    levels = jnp.asarray([0.0, -300.0, -5.0, -300.0])
    log = normalised(LogTheta(levels, jnp.float32(0)))
    for J in range(4):
        index = jnp.int32(J)
        after = learn(log, index, 1e6 * at_bin(log, index), jnp.log(jnp.float32(0.01)), rho)
        assert np.all(np.isfinite(after.levels))
        assert np.isfinite(after.offset)
        gain = np.log(1e-4) if rho else -np.inf  # ω²ρ is all that is left of the update
        expected = np.logaddexp(np.asarray(log.levels, float)[J] + np.log1p(-np.exp(gain)), gain)
        assert float(at_bin(after, index)) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_a_bin_of_e_minus_300_can_be_learnt():
    """From nowhere to ω·w in one step, as θ(J)(1 − ωw) + ωw says."""
    log = LogTheta(jnp.asarray([0.0, -300.0]), jnp.float32(0))
    after = learn(log, jnp.int32(1), jnp.float32(0.0), jnp.log(jnp.float32(0.1)))
    np.testing.assert_allclose(theta_of(after), [0.9, 0.1], rtol=1e-5)


def test_an_empty_bin_has_a_logarithm():
    assert np.all(np.isfinite(log_theta(jnp.asarray([0.0, 1.0])).levels))


# --- Learning together -------------------------------------------------------------------------------


def together(theta, offset, bins, log_w, log_omega, rho=0.0):
    """`learn_together` of chains that share θ: log θ afterwards, a row for each chain."""

    def chain(J, log_w):
        after = learn_together(LogTheta(jnp.log(theta) - offset, offset), J, log_w, log_omega, "chains", rho)
        return after.levels + after.offset

    return np.asarray(jax.jit(jax.vmap(chain, axis_name="chains"))(bins, log_w), float)


def random_crowd(chains, seed=7):
    """θ over 20 bins, a bin and a weight for each chain (some of them in the same bin), ω and an offset."""
    rng = np.random.default_rng(seed)
    theta, bins = rng.dirichlet(np.ones(20)), rng.integers(12, size=chains)
    return theta, bins, 10 ** rng.uniform(-1, 0, chains), 0.3, rng.uniform(-5, 5)


@pytest.mark.parametrize(("chains", "rho"), [(1, 0.0), (10, 0.0), (40, 0.0), (2, 1.0), (10, 0.7)])
def test_learning_together_is_the_mean_of_the_learning_field(chains, rho):
    """θ + ω·mean_c (w_c + ωρ·1[i ≥ J_c])(1[i = J_c] − θ) in float64, to 1e-5; the same bits in every chain."""
    theta, bins, w, omega, offset = random_crowd(chains)
    found = together(
        jnp.asarray(theta, jnp.float32),
        jnp.float32(offset),
        jnp.asarray(bins),
        jnp.log(jnp.asarray(w, jnp.float32)),
        jnp.log(jnp.float32(omega)),
        rho,
    )
    expected = np.mean([paper(theta, *one, omega, rho) for one in zip(bins, w, strict=True)], axis=0)
    np.testing.assert_allclose(np.exp(found[0]), expected, rtol=1e-5)
    assert np.all(found == found[0])
    assert np.exp(found[0]).sum() == pytest.approx(expected.sum(), abs=1e-5)  # 1 without ρ
    assert np.abs(expected / theta - 1).max() > 0.01  # something was learnt


def test_learning_together_alone_is_learning():
    """One chain, any bin: what `learn` does, to float32 (1e-5)."""
    theta, _, _, omega, offset = random_crowd(1)
    log_omega = jnp.log(jnp.float32(omega))
    for J in (0, 7, 19):
        log = LogTheta(jnp.log(jnp.asarray(theta, jnp.float32)) - offset, jnp.float32(offset))
        found = together(
            jnp.asarray(theta, jnp.float32), jnp.float32(offset), jnp.asarray([J]), jnp.asarray([-1.5]), log_omega
        )
        np.testing.assert_allclose(
            np.exp(found[0]), theta_of(learn(log, jnp.int32(J), jnp.float32(-1.5), log_omega)), rtol=1e-5
        )


def test_a_thousand_updates_together_keep_the_sum():
    """8 chains; against float64. 1,000 roundings of a level near −5 to 2e-7 make 2e-4 at worst."""
    rng = np.random.default_rng(4)
    theta = rng.dirichlet(np.ones(20))
    bins, omegas = rng.integers(20, size=(8, 1000)), 10 / (np.arange(1, 1001) ** 0.6 + 100)

    def chain(log, bins):
        def body(log, inputs):
            J, log_omega = inputs
            return learn_together(log, J, at_bin(log, J), log_omega, "chains"), None

        return jax.lax.scan(body, log, (bins, jnp.log(jnp.asarray(omegas, jnp.float32))))[0]

    start = log_theta(jnp.asarray(theta, jnp.float32))
    log = jax.jit(jax.vmap(chain, (None, 0), axis_name="chains"))(start, jnp.asarray(bins))
    for J, omega in zip(bins.T, omegas, strict=True):
        theta = np.mean([paper(theta, j, theta[j], omega, 0.0) for j in J], axis=0)
    found = np.exp(np.asarray(log.levels, float) + np.asarray(log.offset, float)[:, None])
    np.testing.assert_array_equal(found, np.broadcast_to(found[0], found.shape))
    np.testing.assert_allclose(found[0], theta, rtol=2e-4)
    assert found[0].sum() == pytest.approx(1, abs=2e-4)


def test_learning_together_with_extreme_weights():
    """w = θ^ζ with ζ = 10⁶ of bins down to e⁻³⁰⁰, weights e^(10⁸) times others': all finite, and θ stays."""
    levels = normalised(LogTheta(jnp.asarray([0.0, -300.0, -5.0, -300.0]), jnp.float32(0))).levels
    bins = jnp.asarray([1, 2, 1, 3])
    log_w = 1e6 * levels[bins]

    def chain(J, log_w):
        return learn_together(LogTheta(levels, jnp.float32(0)), J, log_w, jnp.log(jnp.float32(0.01)), "chains")

    after = jax.vmap(chain, axis_name="chains")(bins, log_w)
    assert np.all(np.isfinite(after.levels))
    assert np.all(np.isfinite(after.offset))
    # the largest weight is e^(−5·10⁶): nothing is learnt, to the rounding of a level of 300
    np.testing.assert_allclose(after.levels[0], levels, atol=1e-4)


# --- Where learning leads ----------------------------------------------------------------------------

MASSES = np.array([0.6, 0.25, 0.1, 0.04, 0.01])


@jax.jit
def learn_from_bins(power, zeta):
    """θ of 64 replicas that see bins J drawn from p(i) ∝ π(i)/θ(i)^ζ, as a chain that mixes at once would.

    w = θ(J)^power: `original` for a power of ζ, `scalable` for 1.
    """
    log_masses = jnp.log(jnp.asarray(MASSES, jnp.float32))

    def body(log, inputs):
        key, log_omega = inputs
        J = jax.random.categorical(key, log_masses - zeta * log.levels)
        return learn(log, J, power * at_bin(log, J), log_omega), None

    def block(log, number):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(5), number), (1000, 64))
        omegas = 10 / ((number * 1000 + 1 + jnp.arange(1000)) ** 0.8 + 100)
        many = jax.vmap(body, in_axes=(0, (0, None)))
        return jax.lax.scan(many, jax.vmap(normalised)(log), (keys, jnp.log(omegas)))

    start = LogTheta(jnp.full((64, len(MASSES)), -jnp.log(5.0)), jnp.zeros(64))
    log, _ = jax.lax.scan(block, start, jnp.arange(100))
    return jnp.exp(jax.vmap(normalised)(log).levels)


def learnt(power, zeta):
    """The mean over the replicas, and its standard error."""
    theta = np.asarray(learn_from_bins(power, zeta), float)
    return theta.mean(axis=0), theta.std(axis=0) / 8


# The last ω is 10/(10⁵^0.8 + 100) = 1e-3. Around the fixed point log θ is an Ornstein–Uhlenbeck process of
# variance ω/(2ζ) (0.02² here), and its curvature moves the mean of θ by a few ω at most: so the mean over
# replicas must agree to 5 standard errors and 0.5%. A wrong power of π would be wrong by far more.


def test_original_rule_finds_the_masses():
    theta, error = learnt(0.75, 0.75)
    assert np.all(np.abs(theta - MASSES) < 5 * error + 0.005 * MASSES)
    assert np.all(error < 0.02 * MASSES)


def test_scalable_rule_finds_a_power_of_the_masses():
    theta, error = learnt(1.0, 3.0)
    expected = MASSES ** (1 / 3) / np.sum(MASSES ** (1 / 3))
    assert np.all(np.abs(theta - expected) < 5 * error + 0.005 * expected)
    assert np.all(error < 0.02 * expected)


# --- Rules by name --------------------------------------------------------------------------------------


def test_rules_have_names():
    assert as_rule("biased") == Biased(rho=1.0)
    assert as_rule(Scalable()) == Scalable()
    with pytest.raises(ValueError, match=r"^rule='paper'.*original, biased, scalable"):
        as_rule("paper")


@pytest.mark.parametrize("rho", [-1.0, float("nan")])
def test_bad_rho_is_named(rho):
    with pytest.raises(ValueError, match=r"^rho"):
        Biased(rho)
