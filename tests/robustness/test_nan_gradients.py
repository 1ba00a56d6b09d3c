"""An energy that is finite where its gradient is NaN, as `jnp.where` around √x makes one, is named: a Metropolis test
would take the place for a wall, and the draws would miss a part of the distribution.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm

# Where the condition does not hold, each has the right value, and the gradient 0 · ∞ or 0 · NaN.
TERMS = {
    "sqrt": lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0),
    "log of sqrt": lambda x: jnp.where(x > 0, jnp.log(0.1 + jnp.sqrt(x)), -1.0),
    "log of log": lambda x: jnp.where(x > 0.3, jnp.log(2 + jnp.log(x)), 0.0),
    "log1p of sqrt": lambda x: jnp.where(x > 0, jnp.log1p(jnp.sqrt(x)), 0.0),
    "arccos": lambda x: jnp.where(jnp.abs(x) < 0.7, jnp.arccos(x / 0.7), 0.0),
    "arcsin": lambda x: jnp.where(jnp.abs(x) < 0.7, jnp.arcsin(x / 0.7), 0.0),
    "arccosh": lambda x: jnp.where(x > -0.5, jnp.arccosh(1.5 + x), 0.0),
    "a power": lambda x: jnp.where(x > 0, x**0.7, 0.0),
    "a power of a square": lambda x: jnp.where(x > 0, (x * jnp.abs(x)) ** 0.75, 0.0),
    "exp": lambda x: jnp.where(x > 0, jnp.exp(-200 * x), 1.0 - x / 10),
}
RIGHT = {
    "a wall": lambda x: jnp.where(x > 0, jnp.sqrt(x), jnp.inf),  # where the gradient is NaN
    "a wall of NaN": lambda x: jnp.sqrt(x),
    "a double where": lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0),
}
ALL = [*TERMS.values(), *RIGHT.values()]
NAMED = r"NaN where the energy is finite.*jnp\.where\(x > 0, jnp\.sqrt\(jnp\.where\(x > 0, x, 1\.0\)\), 0\.0\)"


def energy_of(name):
    """One of the energies; which one is an array, so that all of them are one program."""
    number = jnp.asarray(list(TERMS | RIGHT).index(name))
    return lambda x: jax.lax.switch(number, ALL, x) + x**2 / 2


def findings_of(run):
    return {finding.check: finding for finding in run.diagnose().findings}


@pytest.mark.parametrize("name", TERMS)
def test_a_pilot_names_it(name):
    with pytest.raises(ValueError, match=f"^target=.*{NAMED}"):
        cm.sample(energy_of(name), init=0.5, steps=4000)


@pytest.fixture(scope="module")
def by_metropolis():
    """A run in which every chain has its own energy, and the share of steps that met such a gradient."""
    targets = [cm.ExactEnergy(energy_of(name)) for name in TERMS | RIGHT]
    with cm.start(targets, init=0.5, steps=4000, kernel=cm.adjusted(0.3)) as run:
        run.advance()
        counts = np.asarray(run.state.chains.state.undefined)
        return run.samples(), dict(zip(TERMS | RIGHT, counts / 4000, strict=True))


@pytest.mark.parametrize("name", TERMS)
def test_a_metropolis_test_counts_it(name, by_metropolis):
    assert 0.01 < by_metropolis[1][name] < 0.5


@pytest.mark.parametrize("name", RIGHT)
def test_walls_and_right_gradients_do_not_count(name, by_metropolis):
    assert by_metropolis[1][name] == 0


def test_the_diagnosis_names_it(by_metropolis):
    run, shares = by_metropolis
    finding = findings_of(run)["gradients"]
    assert finding.severity == "problem"
    assert finding.figure == run.settings["nan_gradients"] == pytest.approx(np.mean([*shares.values()]))
    assert "jnp.where" in finding.advice


def test_a_single_point_without_a_gradient_is_only_a_note(by_metropolis):
    run = replace(by_metropolis[0], settings=by_metropolis[0].settings | {"nan_gradients": 1e-6})
    assert findings_of(run)["gradients"].severity == "note"


def test_a_pilot_lets_walls_stand():
    with cm.start(energy_of("a wall"), init=0.5, steps=4000) as run:
        run.advance(300)


def test_without_a_metropolis_test_the_error_names_it():
    with pytest.raises(cm.DivergenceError, match=r"energy was .*became NaN, as by a gradient.*jnp\.where"):
        cm.sample(energy_of("sqrt"), init=0.5, steps=4000, kernel=cm.sghmc(0.01))


def test_a_start_is_refused():
    with pytest.raises(
        ValueError, match=r"^init='a start of chain 0 where the gradient is not finite'.*1\.0\)\), 0\.0"
    ):
        cm.sample(energy_of("sqrt"), init=-0.5, steps=100, kernel=cm.sgld(0.1))


def two_wells(x):
    """One at −6 and one at 6, where the gradient is NaN."""
    return jnp.sum(-jnp.logaddexp(-((x + 6) ** 2) / 2, -((x - 6) ** 2) / 2) + jnp.where(x < 2, jnp.sqrt(2 - x), 0.0))


def test_a_jump_to_such_a_place_is_refused_and_counted():
    """A chain that jumped there could not leave any more, since its next proposal would be NaN."""
    shapes = cm.basin_shapes(means=[[-6.0], [6.0]], factors=[[[1.0]], [[1.0]]])
    kernel = cm.jumps(cm.adjusted(0.3), shapes)
    run = cm.sample(two_wells, init=jnp.array([-6.0]), steps=2000, kernel=kernel, chains=2)
    assert 0.01 < run.settings["nan_gradients"] < 1 / 12  # the share of jumps
    assert run.mean() < -5
    assert not run.still.any()


def test_what_only_flattened_chains_meet_is_a_finding_of_an_automatic_run():
    """At temperature 1 the pilot's walkers stay in the left well."""
    with cm.start(two_wells, init=-6.0, steps=10_000) as run:
        run.advance(2500)
        assert findings_of(run.samples())["gradients"].severity == "problem"
