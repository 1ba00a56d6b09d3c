"""Energies that are not JAX: the draws are those of the same energy in JAX, and a run tunes itself on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.data.differences import neighbours, slopes

INIT = {"a": jnp.array([0.3, -0.2]), "b": (jnp.float32(1.0), [jnp.ones((2, 1))])}
KERNEL = cm.csgld(0.01, cm.Partition(low=1.0, width=1.0, bins=20))
RUN = dict(init=INIT, steps=120, kernel=KERNEL, chains=3, thin=1, seed=4)


def in_jax(x):
    return jnp.sum(jnp.cosh(x["a"])) + x["b"][0] ** 4 + jnp.sum(x["b"][1][0] ** 2) / 2


def make(*, gradient=True, as_list=False):
    """A function of this test, which is pickled by value: workers need not import the tests."""

    def energy(x):
        assert isinstance(x["b"], tuple)
        assert isinstance(x["b"][0], float)
        assert x["a"].dtype == np.float64
        value = np.sum(np.cosh(x["a"])) + x["b"][0] ** 4 + np.sum(x["b"][1][0] ** 2) / 2
        slope = {"b": (4 * x["b"][0] ** 3, [x["b"][1][0]]), "a": np.sinh(x["a"])}
        return ([value, slope] if as_list else (value, slope)) if gradient else value

    return energy


@pytest.mark.parametrize("workers", [1, 2, "threads"])
@pytest.mark.parametrize("gradient", ["given", "differences"])
def test_the_draws_are_those_of_the_energy_in_jax(workers, gradient):
    """Both round to float32, in another order; the chains are 120 steps long and stable."""
    function = make(gradient=gradient == "given", as_list=True)
    run = cm.sample(cm.external(function, workers=workers, gradient=gradient), **RUN)
    expected = cm.sample(in_jax, **RUN)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), run.draws, expected.draws)
    np.testing.assert_allclose(run.energies, expected.energies, rtol=2e-4)
    np.testing.assert_allclose(run.log_weights, expected.log_weights, atol=2e-3)


def test_the_description_names_the_function_and_not_the_workers():
    settings = [cm.sample(cm.external(make(), workers=n), **RUN).settings["target"] for n in (1, "threads")]
    assert settings[0] == settings[1]
    assert settings[0]["kind"] == "External"
    assert settings[0]["function"].endswith("energy")


def two_modes():
    def energy(x):
        """0.3·N(−3, 1) + 0.7·N(3, 1)."""
        parts = np.log([0.3, 0.7]) - 0.5 * (x - np.array([-3.0, 3.0])) ** 2
        total = np.logaddexp(*parts)
        return -total, float(np.exp(parts - total) @ (x - np.array([-3.0, 3.0])))

    return energy


def test_a_run_without_a_kernel_tunes_itself_and_knows_the_evidence():
    """Of 4 chains × 2,800 draws some hundred are independent: the mean is within 5 standard errors of 2.9/√300."""
    run = cm.sample(cm.external(two_modes(), workers="threads"), init=-3.0, steps=4000, seed=1)
    assert run.mean() == pytest.approx(0.4 * 3, abs=0.8)
    evidence = run.log_evidence()
    assert evidence.value == pytest.approx(np.log(2 * np.pi) / 2, abs=5 * evidence.error + 0.01)


def test_noise_comes_from_the_seed_the_chain_and_the_step_alone():
    def noisy(x, random):
        return 0.5 * x**2 + random.normal(), x + 0.1 * random.normal()

    run = dict(init=0.5, steps=60, kernel=cm.sgld(0.01), thin=1, burn_in=0)
    one, two, cut = (
        cm.sample(cm.external(noisy, exact=False, workers=workers), chains=chains, **run)
        for workers, chains in (("threads", 3), (2, 3), (1, 1))
    )
    np.testing.assert_array_equal(one.draws, two.draws)
    np.testing.assert_array_equal(one.draws[:1], cut.draws)
    noise = one.energies - 0.5 * one.draws**2
    assert len(np.unique(noise)) == noise.size
    assert 0.6 < noise.std() < 1.4
    assert not one.exact
    with pytest.raises(ValueError, match=r"^step_size='auto' .*noise"):
        cm.sample(cm.external(noisy, exact=False), init=0.5, steps=2000)


def test_differences_with_noise_use_the_same_noise_on_both_sides():
    def noisy(x, random):
        return np.sum(x**2) / 2 + random.normal()

    target = cm.external(noisy, exact=False, gradient="differences", workers="threads")
    run = dict(init=np.ones(2), steps=20, kernel=cm.sgd(0.1), chains=1, thin=1, burn_in=0)
    np.testing.assert_allclose(cm.sample(target, **run).draws[0, :, 0], 0.9 ** np.arange(20), rtol=1e-4)


def test_differences_are_accurate_and_one_sided_at_walls():
    """The error of a central difference is h²/6·U‴ + 2⁻⁵³·U/h, about 10⁻⁹ for these."""
    x = np.array([[0.3, 40.0], [1.0, 0.0]])
    points = neighbours(x, 6e-6)
    energies = np.cos(points[..., 0]) + points[..., 1] ** 2
    expected = np.stack([-np.sin(x[:, 0]), 2 * x[:, 1]], axis=1)
    np.testing.assert_allclose(slopes(points, energies), expected, atol=2e-7)
    energies[points[..., 0] > 1.0] = np.inf
    np.testing.assert_allclose(slopes(points, energies)[1], expected[1], atol=1e-5)
    energies[1] = np.inf
    np.testing.assert_array_equal(slopes(points, energies)[1], 0)


def test_walls_are_walls():
    """Half a normal: its mean is √(2/π); of 4,000 × 0.7 × 4 draws more than 200 are independent."""

    def energy(x):
        return (0.5 * x**2, x) if x > 0 else (np.inf, np.nan)

    run = cm.sample(cm.external(energy, workers="threads"), init=1.0, steps=4000)
    assert np.all(run.draws > 0)
    assert run.mean() == pytest.approx((2 / np.pi) ** 0.5, abs=0.2)


def test_64_bit_numbers_keep_all_their_digits():
    with jax.enable_x64(True):
        target = cm.external(lambda x: (x**2 / 3, 2 * x / 3), workers="threads")
        run = cm.sample(target, init=0.1, steps=5, kernel=cm.sgd(0.3), chains=1, thin=1, burn_in=0)
    np.testing.assert_allclose(run.draws[0], 0.1 * 0.8 ** np.arange(5), rtol=1e-14)


def test_a_torch_function_in_a_process():
    pytest.importorskip("torch")

    def energy(x):
        import torch

        x = torch.tensor(x, requires_grad=True)
        value = torch.sum(x**4) / 4
        value.backward()
        return value.item(), x.grad.numpy()

    run = dict(init=np.ones(2), steps=5, kernel=cm.sgd(0.1), chains=1, thin=1, burn_in=0)
    expected = cm.sample(lambda x: jnp.sum(x**4) / 4, **run)
    np.testing.assert_allclose(cm.sample(cm.external(energy, workers=1), **run).draws, expected.draws, rtol=1e-5)


def test_replicas_are_evaluated_too():
    kernel = cm.replica_exchange(cm.sgld(0.01), cm.sgld(0.01, 3.0))
    run = cm.sample(cm.external(lambda x: (x**2 / 2, x), workers="threads"), init=0.5, steps=50, kernel=kernel)
    expected = cm.sample(lambda x: x**2 / 2, init=0.5, steps=50, kernel=kernel)
    np.testing.assert_allclose(run.draws, expected.draws, atol=1e-4)


def test_a_function_that_changes_between_runs_is_read_anew():
    centre = [0.0]

    def energy(x):
        return (x - centre[0]) ** 2 / 2, x - centre[0]

    target = cm.external(energy, workers=1)
    ends = []
    for centre[0] in (1.0, 5.0):
        ends.append(cm.sample(target, init=0.0, steps=60, kernel=cm.sgd(0.5), chains=1).draws[0, -1])
    np.testing.assert_allclose(ends, [1.0, 5.0], rtol=1e-5)
