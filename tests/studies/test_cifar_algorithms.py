"""The settings of the algorithms of the CIFAR study: the paper's, and those beyond it."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.kernels.schedules import evaluate
from contourmc.studies.cifar.algorithms import ALGORITHMS, Length
from contourmc.studies.cifar.sets import CIFAR10, CIFAR100
from contourmc.studies.cifar.training import Setting


def test_a_learning_rate_of_ones_own():
    """It takes the place of that of the algorithm, is in the name of the record, and must be above 0."""
    usual, own = Setting("cosine", epochs=2), Setting("cosine", epochs=2, learning_rate=0.25)
    highest = [ALGORITHMS["cosine"].how(CIFAR10, each.length)["kernel"].step_size.value for each in (usual, own)]
    np.testing.assert_allclose(highest, [0.5 / 50_000, 0.25 / 50_000])
    assert own.name == "cosine-2-epochs-learning-rate-0.25-seed-0"
    with pytest.raises(ValueError, match=r"learning_rate.*above 0"):
        Setting("cosine", learning_rate=0.0)


def test_a_temperature_of_ones_own():
    """It reaches the plain run and its automatic twin alike, is in the name of the record, and must be above 0."""
    plain, automatic = (Setting(f"stepwise-{each}", epochs=2, temperature=3e-4) for each in ("sghmc", "automatic"))
    assert plain.name == "stepwise-sghmc-2-epochs-temperature-0.0003-seed-0"
    assert ALGORITHMS[plain.algorithm].how(CIFAR100, plain.length)["kernel"].temperature == 3e-4
    assert ALGORITHMS[automatic.algorithm].how(CIFAR100, automatic.length)["temperature"] == 3e-4
    usual = Setting("stepwise-automatic", epochs=2)
    assert usual.name == "stepwise-automatic-2-epochs-seed-0"
    assert "temperature" not in ALGORITHMS[usual.algorithm].how(CIFAR100, usual.length)
    cold = ALGORITHMS["resghmc"].how(CIFAR100, plain.length)["kernel"].dynamics[0]
    annealed = ALGORITHMS["sasghmc"].how(CIFAR100, plain.length)["kernel"]
    assert (cold.temperature, annealed.temperature.value) == (3e-4, 3e-4)
    with pytest.raises(ValueError, match=r"temperature.*above 0"):
        Setting("stepwise-sghmc", temperature=0.0)


@pytest.mark.parametrize("algorithm", ["m-sgd", "sam-sgd", "cosine"])
def test_a_temperature_is_refused_where_there_is_no_noise(algorithm):
    with pytest.raises(ValueError, match=f"temperature.*{algorithm} has no noise"):
        Setting(algorithm, temperature=3e-4)


def test_settings_are_those_of_the_paper():
    length = Length(images=50_000, epochs=1000, steps_per_epoch=50)
    kernel = ALGORITHMS["csghmc"].how(CIFAR10, length)["kernel"]
    assert kernel.dynamics.step_size == 2e-7
    assert kernel.dynamics.temperature == 0.01
    assert (kernel.partition.width, kernel.partition.bins, kernel.zeta) == (1000.0, 200, 1e6)
    hundred = ALGORITHMS["csghmc"].how(CIFAR100, length)["kernel"]
    assert hundred == replace(kernel, partition=replace(kernel.partition, width=5000.0), zeta=3e6)
    assert length.precision == 25.0
    annealed = ALGORITHMS["sacsghmc"].how(CIFAR10, length)["kernel"].dynamics
    steps = jnp.array([1, 50, 51, 401 * 50, 401 * 50 + 1, 1000 * 50])  # first and last ones of epochs
    expected = 2e-6 * 1.01 ** -np.array([0, 0, 0, 0, 1.0, 599])
    np.testing.assert_allclose(evaluate(annealed.step_size, steps), expected, rtol=1e-4)
    cooled = 0.01 * 1.01 ** -np.array([0, 0, 1.0, 400, 401, 999])
    np.testing.assert_allclose(evaluate(annealed.temperature, steps), cooled, rtol=1e-4)
    assert ALGORITHMS["m-sgd"].how(CIFAR10, length)["kernel"].temperature == 0
    assert ALGORITHMS["sasghmc"].how(CIFAR100, length)["kernel"] == annealed
    assert kernel.dynamics.momentum == annealed.momentum == 0.9
    assert (kernel.rule, kernel.scheme, kernel.weights) == (cm.Biased(rho=1.0), "left", "step")
    np.testing.assert_allclose(evaluate(kernel.omega, steps), 10 / (steps**0.75 + 1000), rtol=1e-5)


def test_fewer_images_keep_the_dynamics():
    """ε·U, ε·τ and Δu per image do not depend on the number of images."""
    whole, part = (ALGORITHMS["csghmc"].how(CIFAR10, Length(n, 10, 5))["kernel"] for n in (50_000, 500))
    assert part.dynamics.step_size == pytest.approx(100 * whole.dynamics.step_size)
    assert part.dynamics.temperature == pytest.approx(whole.dynamics.temperature / 100)
    assert part.partition.width == pytest.approx(whole.partition.width / 100)


def test_a_learning_rate_falls_in_steps_and_many_late_models_count():
    setting = Setting("stepwise-automatic", epochs=500, batch_size=500)
    assert (setting.burn_in, setting.every) == (400, 2)
    assert setting.evaluations == [*range(50, 401, 50), *range(410, 501, 10)]
    plain = Setting("stepwise-sghmc", epochs=500, batch_size=500, learning_rate=0.2)
    steps = jnp.array([1, 25_000, 25_001, 37_500, 37_501, 50_000])  # 100 an epoch
    rates = [ALGORITHMS[each.algorithm].how(CIFAR100, each.length) for each in (setting, plain)]
    expected = 0.1 * np.array([1, 1, 0.2, 0.2, 0.04, 0.04])
    np.testing.assert_allclose(evaluate(rates[0]["learning_rate"], steps), expected, rtol=1e-5)
    np.testing.assert_allclose(evaluate(rates[1]["kernel"].step_size, steps), 2 * expected / 50_000, rtol=1e-5)


def test_replicas_are_exchanged_if_the_colder_one_is_higher():
    """By 2Δu or more; the second is ten times as hot."""
    kernel = ALGORITHMS["resghmc"].how(CIFAR100, Length(50_000, 10, 50))["kernel"]
    cold, hot = kernel.dynamics
    assert hot.temperature == pytest.approx(10 * cold.temperature)
    limit = (1 / cold.temperature - 1 / hot.temperature) * kernel.energy_variance
    assert limit == pytest.approx(2 * CIFAR100.width)
