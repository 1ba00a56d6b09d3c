"""Bounded and structured parameters: sampled free, seen in the user's own coordinates."""

import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import constraints as numpyro_constraints

import contourmc as cm
from contourmc.targets.constraints import Given
from contourmc.targets.transformed import Transformed

PERIOD = 2 * np.pi
INIT = {"angle": 1.0, "mean": 0.0, "rate": 0.5, "scale": 1.0, "weights": np.array([0.2, 0.3, 0.5])}


def energy(p):
    """An angle with two modes, N(0, 1), Beta(3, 1), Gamma(2, 1) and Dirichlet(2, 2, 2), all but one unnormalised."""
    circle = 3 * jnp.cos(2 * p["angle"]) + 0.5 * jnp.cos(p["angle"] - 1.0)
    return circle + p["mean"] ** 2 / 2 - 2 * jnp.log(p["rate"]) + p["scale"] - jnp.sum(
        jnp.log(jnp.append(p["weights"], p["scale"]))
    )  # fmt: skip


def make():
    spec = {"scale": cm.positive, "weights": cm.simplex, "angle": cm.periodic(PERIOD), "rate": cm.interval(0, 1)}
    return cm.transformed(energy, spec)


@pytest.fixture(scope="module")
def run():
    return cm.sample(make(), init=INIT, steps=60_000, chains=4, seed=1)


def circle():
    """Quadrature over the circle, exact to many digits: its points, and its density at them."""
    angle = np.arange(4096) * (PERIOD / 4096)
    return angle, np.exp(-3 * np.cos(2 * angle) - 0.5 * np.cos(angle - 1.0))


def test_draws_are_in_the_users_coordinates(run):
    assert np.all((run["angle"] >= 0) & (run["angle"] < PERIOD))
    assert np.all((run["rate"] > 0) & (run["rate"] < 1))
    assert np.all(run["scale"] > 0)
    np.testing.assert_allclose(run["weights"].sum(axis=-1), 1, atol=1e-5)
    assert {name: leaf.shape[2:] for name, leaf in run.unconstrained.items()} == {
        "angle": (2,), "mean": (), "rate": (), "scale": (), "weights": (2,),
    }  # fmt: skip


def test_means_and_variances_are_right(run):
    """Within 5 of their own standard errors, which are below 0.02; the truth is that of the densities above."""
    truth = {"mean": 0.0, "rate": 0.75, "scale": 2.0, "weights": np.full(3, 1 / 3)}
    mean, error = run.mean(), run.standard_error()
    for name, expected in truth.items():
        assert np.all(error[name] < 0.04)
        assert np.all(np.abs(mean[name] - expected) < 5 * error[name] + 1e-3)
    np.testing.assert_allclose(run.variance()["scale"], 2.0, rtol=0.15)
    np.testing.assert_allclose(run.quantile(0.5)["rate"], 0.5 ** (1 / 3), atol=0.02)  # of Beta(3, 1)


def test_modes_on_a_circle_have_the_right_masses(run):
    """Two modes, around π/2 and 3π/2, divided where the energy is highest; masses by quadrature to 0.03, 4 errors."""
    angle, density = circle()
    truth = density[(angle > 0) & (angle < np.pi)].sum() / density.sum()
    found = run.expectation(lambda p: jnp.sin(p["angle"]) > 0)
    assert found == pytest.approx(truth, abs=0.03)
    modes = run.modes()
    assert len(modes) == 2
    assert sorted(round(float(mode.minimum["angle"]), 0) for mode in modes) == [2.0, 5.0]
    assert sum(mode.mass for mode in modes) == pytest.approx(1)


def test_evidence_is_that_of_the_users_density(run):
    """∫ over the circle by quadrature, √2π, 1/3, 1, and Γ(2)³/Γ(6) over the simplex; to 0.03, several errors."""
    _, density = circle()
    truth = np.log(density.mean() * PERIOD * np.sqrt(2 * np.pi) / 3 / 120)
    found = run.log_evidence()
    assert found.error < 0.01
    assert found.value == pytest.approx(truth, abs=0.03)


def test_files_keep_both_coordinates(run, tmp_path):
    loaded = cm.Samples.load(run.save(tmp_path / "run.nc"))
    jax.tree.map(np.testing.assert_array_equal, loaded.draws, run.draws)
    assert [mode.mass for mode in loaded.modes()] == [mode.mass for mode in run.modes()]
    assert loaded.modes()[0].minimum["rate"] == run.modes()[0].minimum["rate"]
    assert loaded.log_evidence(energy=make()).value == pytest.approx(run.log_evidence().value, abs=0.02)
    again = pickle.loads(pickle.dumps(run))
    jax.tree.map(np.testing.assert_array_equal, again.sampled, run.sampled)


def test_a_folder_keeps_both_coordinates(tmp_path):
    call = dict(init=INIT, steps=4_000, chains=2, kernel=cm.sgld(0.01), thin=10)
    whole = cm.sample(make(), **call, checkpoint=tmp_path / "a", checkpoint_every=0.0)
    opened = cm.Samples.open(tmp_path / "a")
    for samples in (opened, cm.sample(make(), **call)):
        jax.tree.map(np.testing.assert_array_equal, samples.positions, whole.positions)
        jax.tree.map(np.testing.assert_array_equal, samples.sampled, whole.sampled)
    cut = cm.start(make(), **call, checkpoint=tmp_path / "b")
    cut.advance(1_500)
    cut.close()
    jax.tree.map(np.testing.assert_array_equal, cm.resume(tmp_path / "b").positions, whole.positions)


def test_everything_works_on_the_users_coordinates(run):
    """Estimates, tables, functions of draws, other temperatures, ArviZ."""
    assert "weights[2]" in run.summary().rows
    mapped = run.map(lambda p: p["scale"] ** 2)
    assert mapped.mean() == pytest.approx(float(run.expectation(lambda p: p["scale"] ** 2)), rel=1e-5)
    with pytest.raises(ValueError, match=r"energy=None .*was mapped"):
        mapped.log_evidence()
    assert np.all(run.resample(100)["scale"] > 0)
    warm = run.at_temperature(1.3)
    assert warm.variance()["mean"] == pytest.approx(1.3, rel=0.1)
    posterior = run.to_arviz(draws=100)["posterior"]
    assert set(posterior.data_vars) == set(INIT)
    assert not [finding for finding in run.diagnose().findings if finding.severity == "problem"]


def test_a_run_that_has_no_draws_yet():
    with cm.start(make(), init=INIT, steps=2_000) as begun:
        samples = begun.samples()
    assert samples["weights"].shape == (4, 0, 3)
    assert samples.diagnose()


def test_averages_see_the_users_coordinates(run):
    class Scale(cm.Average):
        def init(self):
            return jnp.zeros(2)

        def add(self, sums, info, position, state):
            return sums + jnp.array([1.0, position["scale"]])

        def finish(self, sums, comparable_weights=False):
            return float(sums[:, 1].sum() / sums[:, 0].sum())

    plain = cm.sample(make(), init=INIT, steps=2_000, kernel=cm.sgld(0.01), thin=1, average=Scale())
    assert plain.average == pytest.approx(float(plain["scale"].mean()), rel=1e-4)
    assert Scale().over(plain) == pytest.approx(plain.average, rel=1e-4)


@pytest.mark.parametrize("parts", [1, 2])
def test_gradients_are_those_of_the_energy(parts):
    """Of a posterior on data, in one or two parts, against the derivative of its energy with the Jacobian added."""
    data = np.random.default_rng(0).normal(2.0, 3.0, 64).astype(np.float32)
    posterior = cm.Posterior(
        lambda p, y: -jnp.log(p["scale"]) - ((y - p["mean"]) / p["scale"]) ** 2 / 2,
        lambda p: -p["scale"], data, batch_size=64, batch_parts=parts,
    )  # fmt: skip
    target = cm.transformed(posterior, {"scale": cm.positive})
    z = {"mean": jnp.asarray(0.3), "scale": jnp.asarray(0.7)}

    def expected(z):
        return posterior.energy({"mean": z["mean"], "scale": jnp.exp(z["scale"])}) - z["scale"]

    if parts == 1:
        found = target.evaluate_from((None, None), z, None)[:2]
    else:
        halves = [target.evaluate_part((None, None), jnp.int32(i), z, None)[:2] for i in range(parts)]
        found = jax.tree.map(jnp.add, *halves)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(jax.value_and_grad(expected)(z)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)


def test_a_posterior_on_mini_batches():
    """A mean and a scale from 1,000 observations, on batches of 100: to 5 posterior deviations, √(s²/N)."""
    data = np.random.default_rng(0).normal(2.0, 3.0, 1000).astype(np.float32)
    posterior = cm.Posterior(
        lambda p, y: -jnp.log(p["scale"]) - ((y - p["mean"]) / p["scale"]) ** 2 / 2, lambda p: -p["scale"],
        data, batch_size=100,
    )  # fmt: skip
    target = cm.transformed(posterior, {"scale": cm.positive})
    with pytest.raises(ValueError, match=r"learning_rate=None .*mini-batches"):
        cm.sample(target, init={"mean": 0.0, "scale": 1.0}, steps=2_000)
    run = cm.sample(target, init={"mean": 0.0, "scale": 1.0}, steps=5_000, kernel=cm.sgld(1e-4))
    assert run.mean()["mean"] == pytest.approx(data.mean(), abs=0.5)
    assert run.mean()["scale"] == pytest.approx(data.std(), abs=0.35)


def test_noise_and_lists_of_targets():
    """Gradients with noise have it in the user's coordinates; of a list all must be seen in the same way."""
    noisy = cm.transformed(cm.NoisyEnergy(lambda p: jnp.sum(p["w"] ** 2), 0.01), {"w": cm.simplex})
    run = cm.sample([noisy, noisy], init={"w": np.full(4, 0.25)}, steps=500, kernel=cm.sgld(0.01))
    np.testing.assert_allclose(run["w"].sum(axis=-1), 1, atol=1e-5)
    other = cm.transformed(cm.NoisyEnergy(lambda p: jnp.sum(p["w"] ** 2), 0.01), {"w": cm.positive})
    with pytest.raises(ValueError, match=r"the same coordinates"):
        cm.sample([noisy, other], init={"w": np.full(4, 0.25)}, steps=500, kernel=cm.sgld(0.01))


def test_starts_may_be_functions_or_differ_by_chain():
    target = cm.transformed(lambda x: jnp.sum(x), cm.positive)
    with cm.start(target, init=cm.Box(np.full(2, 0.5), np.full(2, 2.0)), steps=1_000) as run:
        assert np.all(np.exp(run.positions) > 0.49)
        assert np.unique(np.asarray(run.positions)).size == 8
    with cm.start(target, init=np.arange(1.0, 5.0)[:, None], steps=1_000, per_chain_init=True) as run:
        np.testing.assert_allclose(np.exp(run.positions)[:, 0], np.arange(1.0, 5.0), rtol=1e-5)


def test_constraints_of_numpyro_and_for_a_part_of_a_position():
    spec = {"layer": cm.positive, "factor": numpyro_constraints.lower_cholesky, "free": None}
    target = cm.transformed(
        lambda p: jnp.sum(p["factor"] ** 2) + p["layer"]["a"] + p["layer"]["b"] + p["free"] ** 2, spec
    )
    init = {"layer": {"a": 1.0, "b": 2.0}, "factor": np.eye(2), "free": 0.0}
    run = cm.sample(target, init=init, steps=1_000, kernel=cm.sgld(0.01))
    assert np.all(run["layer.a"] > 0)
    assert np.all(run["factor"][..., 0, 1] == 0)
    assert run.unconstrained["factor"].shape[2:] == (3,)
    ordered = cm.sample(cm.transformed(lambda x: jnp.sum(x**2), cm.ordered), init=np.arange(3.0), steps=1_000)
    assert np.all(np.diff(ordered.positions, axis=-1) > 0)


def test_equal_constraints_share_compiled_code():
    assert make().coordinates == make().coordinates
    assert hash(make().coordinates) == hash(make().coordinates)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cm.interval(1, 0), r"high=0 .*above low=1"),
        (lambda: cm.interval(0, np.inf), r"high=inf .*finite"),
        (lambda: cm.periodic(0.0), r"period=0.0 .*above 0"),
        (lambda: cm.transformed(energy, {}), r"constraints=\{\} .*one or more"),
        (lambda: cm.transformed(energy, {"scale": "positive"}), r"constraints\['scale'\]='positive' .*cm.positive"),
        (lambda: cm.transformed(energy, numpyro_constraints.boolean), r"constraints=.*no map"),
        (lambda: cm.transformed(3.0, cm.positive), r"target=3.0 .*function"),
        (lambda: cm.transformed(make(), cm.positive), r"target='Transformed' .*its own coordinates"),
        (lambda: cm.sample(make(), steps=1_000), r"init=None .*give a position"),
        (lambda: cm.sample(lambda x: x**2, steps=1_000), r"init=None .*give a position"),
    ],
)
def test_what_is_not_possible(call, message, untyped):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 1.5}, r"init\['rate'\]=.*1.5.* not in interval\(0.0, 1.0\)"),
        ({"rate": 1.0}, r"init\['rate'\]=.*edge of its support"),
        ({"scale": -1.0}, r"init\['scale'\]=.*-1.* not in positive"),
        ({"weights": np.array([0.2, 0.2, 0.2])}, r"init\['weights'\]=.*not in simplex"),
        ({"weights": np.zeros(0)}, r"init\['weights'\]=.*too small for simplex"),
        ({"weights": 1.0}, r"init\['weights'\]=.*too small for simplex"),
        ({"scale": np.nan}, r"init\['scale'\]="),
        ({"angle": np.inf}, r"init\['angle'\]=.*not finite"),
    ],
)
def test_starts_outside_of_the_support(change, message):
    with pytest.raises(ValueError, match=message):
        cm.sample(make(), init=INIT | change, steps=1_000)


def test_a_name_that_the_position_lacks():
    with pytest.raises(ValueError, match=r"constraints='sigma' .*the position, which has x"):
        cm.sample(cm.transformed(lambda p: p["x"] ** 2, {"sigma": cm.positive}), init={"x": 1.0}, steps=1_000)


def test_without_numpyro_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro.distributions", None)
    with pytest.raises(ImportError):
        Given(numpyro_constraints.positive).constrain(jnp.zeros(()))
    code = "import sys, importlib.util as u; find = u.find_spec; " \
        "u.find_spec = lambda name: None if name == 'numpyro' else find(name); " \
        "import contourmc as cm; cm.periodic(1.0); cm.transformed(lambda x: x, cm.positive)"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'contourmc[numpyro]'" in done.stderr


def test_the_result_is_a_target():
    assert isinstance(make(), Transformed)
    assert make().exact
