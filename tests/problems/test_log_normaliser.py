"""True log normalisers against sums over `energy` itself, which know nothing of how they were found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc.problems import GaussianMixture, LabelSwitching, MultivariateMixture, Problem, gallery
from contourmc.problems.quadrature import log_integral

TEMPERATURES = (0.5, 1.0, 3.0)
PLANE = [problem for problem in gallery().values() if problem.dimension == 2]
MIXTURES = [problem for problem in gallery().values() if isinstance(problem, MultivariateMixture)]


def energies(problem: Problem, points: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(problem.energy))(jnp.asarray(points, jnp.float32)), float)


def by_name(problems: list) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("problem", problems, ids=lambda problem: problem.name)


def test_the_evidence_of_every_problem_is_known():
    assert all(problem.log_evidence == problem.log_normaliser(1.0) for problem in gallery().values())
    assert all(problem.log_evidence is not None for problem in gallery().values())
    assert all(mixture.log_evidence == pytest.approx(0, abs=1e-12) for mixture in [GaussianMixture(), *MIXTURES])


@by_name(PLANE)
def test_a_grid_over_the_energy_finds_the_same(problem):
    """Unlike the quadrature of most, in Cartesian coordinates over both; single precision gives five digits."""
    line = np.linspace(-18, 18, 901)
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    energy = energies(problem, points)
    for temperature in TEMPERATURES:
        expected = log_integral(energy / temperature, float(line[1] - line[0]) ** 2)
        assert problem.log_normaliser(temperature) == pytest.approx(expected, abs=1e-3)


def test_the_mixture_on_the_line():
    for mixture in (GaussianMixture(), GaussianMixture((0.3, 0.7), (0.0, 2.0), (0.5, 2.0))):
        line = np.linspace(-40, 40, 8001)
        for temperature in TEMPERATURES:
            expected = log_integral(energies(mixture, line) / temperature, 0.01)
            assert mixture.log_normaliser(temperature) == pytest.approx(expected, abs=1e-4)


@by_name(MIXTURES)
def test_importance_sampling_of_mixtures_finds_the_same(problem):
    """Draws of Σ w_k N(μ_k, T σ_k²), of which the target at T is nearly a multiple: five standard errors."""
    temperature, count = 3.0, 40_000
    wide = MultivariateMixture(
        problem.weights, problem.means, tuple(tuple(row) for row in (problem._scales * temperature**0.5).tolist())
    )
    draws = wide.draw(count, seed=5)
    log_weights = energies(wide, draws) - energies(problem, draws) / temperature
    weights = np.exp(log_weights - log_weights.max())
    estimate, error = np.log(weights.mean()) + log_weights.max(), weights.std() / weights.mean() / count**0.5
    assert error < 0.02
    assert problem.log_normaliser(temperature) == pytest.approx(estimate, abs=5 * error + 2e-4)


@pytest.mark.parametrize("temperature", [1.0, 5.0])
def test_label_switching_by_gauss_legendre_over_all_of_space(temperature):
    """Panels that are narrow where the data are; at temperature 5 means that leave the data count."""
    edges, sizes = (-140, -25, -6, -2, 2, 6, 25, 140), (12, 14, 14, 14, 14, 14, 12)
    parts = [np.polynomial.legendre.leggauss(size) for size in sizes]
    halves, middles = np.diff(edges) / 2, (np.array(edges[1:]) + edges[:-1]) / 2
    line = np.concatenate([m + h * x for (x, _), h, m in zip(parts, halves, middles, strict=True)])
    log_weights = np.log(np.concatenate([h * w for (_, w), h in zip(parts, halves, strict=True)]))
    points = np.stack(np.meshgrid(line, line, line), axis=-1).reshape(-1, 3)
    volumes = np.sum(np.meshgrid(log_weights, log_weights, log_weights), axis=0).ravel()
    expected = log_integral(energies(LabelSwitching(), points) / temperature - volumes, 1.0)
    assert LabelSwitching().log_normaliser(temperature) == pytest.approx(expected, abs=2e-3)


def test_modes_that_are_not_round_alike_have_no_known_normaliser_but_at_temperature_one():
    ellipses = MultivariateMixture((0.5, 0.5), ((0.0, 0.0), (9.0, 0.0)), ((1.0, 2.0), (2.0, 1.0)))
    assert ellipses.log_normaliser(2.0) is None
    assert ellipses.log_evidence == pytest.approx(0)


def test_four_centres_in_space_are_too_many_but_not_in_a_plane():
    corners = ((0.0, 0.0, 0.0), (9.0, 0.0, 0.0), (0.0, 9.0, 0.0), (0.0, 0.0, 9.0))
    assert MultivariateMixture((0.25,) * 4, corners, (1.0,) * 4).log_normaliser(2.0) is None
    assert MultivariateMixture((1 / 3,) * 3, corners[:3], (1.0,) * 3).log_normaliser(2.0) is not None


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_a_temperature_is_positive(temperature):
    with pytest.raises(ValueError, match="temperature"):
        GaussianMixture().log_normaliser(temperature)
