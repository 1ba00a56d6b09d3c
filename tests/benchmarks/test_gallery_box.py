"""The box that nested samplers get, and the likelihood that counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.gallery.box import box_of
from benchmarks.gallery.likelihood import BudgetSpentError, LogLikelihood
from benchmarks.gallery.outcome import Budget, mass_error
from benchmarks.gallery.peers import PEERS, missing_packages

from contourmc.problems import Problem, gallery
from contourmc.problems.quadrature import log_integral, midpoints

SMALL = [problem for problem in gallery().values() if problem.dimension <= 3]
DRAWN = [problem for problem in gallery().values() if problem.name != "label-switching"]


def by_name(problems: list[Problem]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("problem", problems, ids=lambda problem: problem.name)


@by_name(SMALL)
def test_the_box_holds_all_of_the_evidence(problem):
    box = box_of(problem)
    count = {1: 2000, 2: 600, 3: 60}[problem.dimension]
    sides = [midpoints(low, high, count) for low, high in zip(box.low, box.high, strict=True)]
    points = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, *problem.start.shape)
    energy = np.asarray(jax.jit(jax.vmap(problem.energy))(jnp.asarray(points)), float)
    inside = log_integral(energy, float(np.prod([side[1] - side[0] for side in sides])))
    assert inside == pytest.approx(problem.log_evidence, abs=1e-3)
    assert box.log_volume == pytest.approx(
        np.log(count) * problem.dimension + np.log([s[1] - s[0] for s in sides]).sum()
    )


@by_name(DRAWN)
def test_draws_are_in_the_box(problem):
    box, draws = box_of(problem), problem.draw(20_000).reshape(20_000, -1)
    assert np.all((draws >= box.low) & (draws <= box.high))


def test_dimensions_that_a_problem_lacks_change_no_volume():
    line, plane = box_of(gallery()["mixture"]), box_of(gallery()["mixture"], at_least=2)
    assert (line.dimension, plane.dimension) == (1, 2)
    assert plane.log_volume == line.log_volume
    np.testing.assert_allclose(plane.stretch(np.array([[0.0, 0.0], [1.0, 1.0]])), [[-12, 0], [10, 1]])


def test_points_and_batches_of_any_size_are_the_energy_and_are_counted():
    problem = gallery()["mixture-2d"]
    likelihood, draws = LogLikelihood(problem), problem.draw(70)
    expected = -np.asarray(jax.vmap(problem.energy)(jnp.asarray(draws)))
    np.testing.assert_allclose(likelihood.batch(draws), expected, rtol=1e-5)
    np.testing.assert_allclose(likelihood.batch(draws[:3]), expected[:3], rtol=1e-5)
    assert likelihood.point(draws[5]) == pytest.approx(expected[5], rel=1e-5)
    assert likelihood.evaluations == 74
    assert likelihood.compile_seconds > 0


def test_more_coordinates_than_a_problem_has_are_ignored():
    likelihood = LogLikelihood(gallery()["mixture"])
    assert likelihood.point(np.array([4.0, 0.3])) == likelihood.point(np.array([4.0, 0.9]))


def test_a_limit_ends_a_sampler_that_has_none():
    likelihood = LogLikelihood(gallery()["mixture"], limit=100)
    likelihood.batch(np.zeros((90, 1)))
    with pytest.raises(BudgetSpentError, match="90 evaluations"):
        likelihood.batch(np.zeros((20, 1)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["dynesty", "UltraNest"])
def test_a_nested_sampler_finds_masses_and_evidence(name):
    """12,000 evaluations: five standard errors."""
    if missing_packages(name):
        pytest.skip(f"{name} is not installed")
    problem, budget = gallery()["mixture"], Budget(3000, 2)
    outcome = PEERS[name].run(problem, "", None, budget, seed=0)
    assert mass_error(problem, outcome.positions, outcome.log_weights) < 0.06
    assert abs(outcome.log_evidence) < 5 * outcome.log_evidence_error
    assert 1000 < outcome.evaluations < 1.2 * budget.evaluations
