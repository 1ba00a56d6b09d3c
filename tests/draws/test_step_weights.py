"""The diagnosis compares step weights with continuous ones.

Most runs here are made by hand: independent draws of π/Ψ^ζ with a fixed θ, for which both means are known by
quadrature. Numbers in a message must be within 5 of the errors in the message, which chance exceeds once in a million.
"""

import pickle
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import contourmc as cm
from contourmc.draws import run_data, step_weights
from contourmc.draws.trajectory import Trajectory
from contourmc.flattening.summary import Flattening
from contourmc.problems import GaussianMixture

MIXTURE = GaussianMixture(weights=(1 / 6, 5 / 6))  # its mean is 2.333
SYMMETRIC = GaussianMixture(weights=(0.5, 0.5), means=(-5.0, 5.0))
PARTITION = cm.Partition(low=2.7, width=1.0, bins=50)
ZETA = 0.75
MEANS = re.compile(
    r"the (mean .+) is (\S+) ± (\S+) with step weights and (\S+) ± (\S+) with continuous weights"
    r" \(difference (\S+) ± (\S+)\)\."
)


def by_hand(problem=MIXTURE, theta=None, zeta=ZETA, chains=4, count=10_000, seed=0):
    """Independent draws of π/Ψ^ζ for the scheme `left`, as a kernel with step weights would keep them."""
    theta = problem.theta(PARTITION) if theta is None else theta
    x, energy, probability = problem.grid()
    # Here `left` is written a second time: log Ψ is linear between the upper ends of bins, and constant beyond them.
    flat = probability / np.exp(zeta * np.interp(energy, PARTITION.edges, np.log(theta)[:-1]))
    step = zeta * np.log(theta[np.clip(np.ceil(energy - PARTITION.low).astype(int), 0, PARTITION.bins - 1)])
    chosen = np.random.default_rng(seed).choice(x.size, (chains, count), p=flat / flat.sum())
    draws, logs = x[chosen], step[chosen]
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    means, squares = (np.sum(weights * draws**p, axis=1) / weights.sum(axis=1) for p in (1, 2))
    run = cm.Samples(
        draws=draws,
        energies=energy[chosen],
        log_weights=logs,
        multipliers=np.linspace(-1, 2, draws.size).reshape(draws.shape),
        steps=1 + np.arange(count),
        trajectory=Trajectory(
            steps=np.array([count]),
            log_weights=np.log(weights.sum(axis=1))[:, None],
            means=means[:, None],
            squares=squares[:, None],
            centre=np.zeros(chains),
            theta=np.tile(theta, (chains, 1, 1)),
            visits=np.full((chains, 1, PARTITION.bins), 20),
        ),
        settings={},
        seconds=0.0,
        flattening=Flattening(
            PARTITION, 1 - zeta, fixed=True, temperature=1.0, zeta=zeta, scheme="left", step_weights=True
        ),
    )
    stepped = flat * np.exp(step)
    return SimpleNamespace(
        run=run,
        mean=lambda f, power=1.0: _ratio(f(x, energy), probability**power),
        step_mean=lambda f, power=1.0: _ratio(f(x, energy), stepped * probability ** (power - 1)),
    )


def _ratio(values, weights):
    return float(values @ weights / weights.sum())


def found(run):
    """The finding about step weights, or None."""
    several = [finding for finding in run.diagnose().findings if finding.check == "step weights"]
    assert len(several) < 2
    return several[0] if several else None


def numbers(finding):
    """What was compared, and (value, error) with step weights, with continuous weights, and of the difference."""
    name, *values = MEANS.search(finding.message).groups()
    values = [float(value.replace(",", "")) for value in values]
    return name, *zip(values[::2], values[1::2], strict=True)


def close(estimate, truth):
    return abs(estimate[0] - truth) < 5 * estimate[1]


def test_both_means_are_those_of_theory():
    """Step weights give 3.06, continuous ones the truth; errors of 0.02 tell them apart."""
    case = by_hand()
    finding = found(case.run)
    name, step, continuous, difference = numbers(finding)
    assert (finding.severity, name) == ("problem", "mean of x")
    assert finding.advice == 'Use weights="continuous", the default.'
    assert not case.run.diagnose().ok
    wrong, right = case.step_mean(lambda x, u: x), case.mean(lambda x, u: x)
    assert right == pytest.approx(7 / 3)
    assert close(step, wrong)
    assert close(continuous, right)
    assert close(difference, wrong - right)
    assert max(step[1], continuous[1], difference[1]) < 0.05 * (wrong - right)


def test_its_errors_hold():
    """Of 40 runs the root mean square of (estimate − theory) / error is 1, to 4 of its standard errors 1/√80."""
    case, off = by_hand(), []
    wrong, right = case.step_mean(lambda x, u: x), case.mean(lambda x, u: x)
    for seed in range(40):
        finding = found(by_hand(count=1000, seed=seed).run)
        _, step, continuous, difference = numbers(finding)
        pairs = [(step, wrong), (continuous, right), (difference, wrong - right)]
        off.append([(estimate[0] - truth) / estimate[1] for estimate, truth in pairs])
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(off), axis=0)), 1.0, atol=4 / 80**0.5)


def test_a_mean_that_is_not_shifted_is_not_blamed():
    """By symmetry the mean of x stays 0. The mean energy does not: it is off by 0.08, 0.13 standard deviations."""
    case = by_hand(SYMMETRIC)
    name, step, continuous, _ = numbers(found(case.run))
    assert name == "mean energy"
    assert close(step, case.step_mean(lambda x, u: u))
    assert close(continuous, case.mean(lambda x, u: u))


def test_a_small_bias_is_no_problem():
    """At ζ = 0.01 theory shifts x by less than 10⁻³ standard deviations, the energy by 0.003; 0.01 is the limit."""
    case = by_hand(zeta=0.01)
    for f in (lambda x, u: x, lambda x, u: u):
        spread = case.mean(lambda x, u, f=f: f(x, u) ** 2) - case.mean(f) ** 2
        assert abs(case.step_mean(f) - case.mean(f)) < 0.004 * spread**0.5
    finding = found(case.run)
    assert finding.severity == "warning"
    assert "small, or within its error" in finding.message


def test_noise_is_not_blamed():
    """In many of these runs of 200 draws chance shifts the mean of x by more than 0.01 standard deviations.

    A shift must exceed √(9 + 2 ln 2) = 3.2 errors, which chance does once in 800 runs.
    """
    runs = [by_hand(SYMMETRIC, count=50, seed=seed).run for seed in range(20)]
    shifts = [step_weights._shift(run.draws, step_weights._both_kinds(run)) for run in runs]
    assert np.sum(np.abs(shifts) > step_weights.LEAST) > 5
    assert {numbers(found(run))[0] for run in runs if found(run).severity == "problem"} == {"mean energy"}


@pytest.mark.parametrize("alike", [{"zeta": 0.0}, {"theta": np.full(50, 1 / 50)}], ids=["no flattening", "uniform"])
def test_nothing_is_said_where_both_weights_are_the_same(alike):
    assert found(by_hand(**alike).run) is None


def test_at_another_temperature_the_means_are_those_of_it():
    """e^{−U/1.5} has the density probability^{2/3}."""
    case = by_hand()
    name, step, continuous, _ = numbers(found(case.run.at_temperature(1.2).at_temperature(1.5)))
    assert name == "mean of x"
    assert abs(case.mean(lambda x, u: x, 2 / 3) - case.mean(lambda x, u: x)) > 0.8
    assert close(step, case.step_mean(lambda x, u: x, 2 / 3))
    assert close(continuous, case.mean(lambda x, u: x, 2 / 3))


@pytest.mark.parametrize("without", ["draws", "few coordinates"])
def test_energies_alone_are_compared_where_draws_are_not(without, monkeypatch):
    case = by_hand()
    if without == "draws":
        run, reason = replace(case.run, draws=None), "the draws are not stored"
    else:
        monkeypatch.setattr(run_data, "_FEW", 0)
        trajectory = case.run.trajectory.without_moments()
        run, reason = replace(case.run, trajectory=trajectory), "a draw has too many coordinates"
    finding = found(run)
    name, step, continuous, _ = numbers(finding)
    assert name == "mean energy"
    assert f"Only energies were compared, because {reason}." in finding.message
    assert close(step, case.step_mean(lambda x, u: u))
    assert close(continuous, case.mean(lambda x, u: u))


def test_files_and_pickles_keep_what_the_check_needs(tmp_path):
    run = by_hand(count=500).run
    again = cm.Samples.load(run.save(tmp_path / "run.nc"))
    assert again.flattening == run.flattening
    assert str(again.diagnose()) == str(run.diagnose())
    assert str(pickle.loads(pickle.dumps(run)).diagnose()) == str(run.diagnose())


def test_of_many_coordinates_the_one_that_differs_most_is_named():
    """Noise is not named: of 200 shifts without a cause the largest is 2.8 errors by chance, and the limit is 4.4."""
    case, noise = by_hand(), np.random.default_rng(1).normal(size=(4, 10_000, 200))
    means = noise.mean(axis=1, keepdims=True)
    moments = dict(means=means, squares=means**2 + 1, centre=np.zeros((4, 200)))
    positions = {"a": noise, "b": {"c": case.run.draws}}
    both = {name: {"a": part, "b": {"c": getattr(case.run.trajectory, name)}} for name, part in moments.items()}
    run = replace(case.run, draws=positions, trajectory=replace(case.run.trajectory, **both))
    assert numbers(next(step_weights.check_step_weights(run)))[0] == "mean of b.c"
    alone = replace(case.run, draws=noise, trajectory=replace(case.run.trajectory, **moments))
    assert numbers(next(step_weights.check_step_weights(alone)))[0] == "mean energy"


# --- Runs of kernels ---------------------------------------------------------------------------------


def sample(steps=400_000, chains=4, **settings):
    settings = dict(zeta=ZETA, scheme="left", weights="step") | settings
    return cm.sample(MIXTURE.energy, init=0.0, steps=steps, chains=chains, kernel=cm.csgld(0.1, PARTITION, **settings))


def test_the_papers_weights_are_not_trusted():
    """Its continuous mean is the one that a run with continuous weights finds, to 5 of both runs' errors."""
    run, better = sample(), sample(weights="continuous")
    name, step, continuous, _ = numbers(found(run))
    assert found(run).severity == "problem"
    assert not run.diagnose().ok
    assert name == "mean of x"
    assert step[0] == pytest.approx(run.expectation(lambda x: x), abs=step[1])
    assert found(better) is None
    error = np.hypot(continuous[1], better.standard_error("batches"))
    assert abs(continuous[0] - better.mean()) < 5 * error
    assert step[0] - continuous[0] > 5 * error


@pytest.mark.parametrize("settings", [{"chains": 1}, {"shared": True}, {"scheme": "smooth"}], ids=str)
def test_one_chain_shared_theta_and_other_schemes(settings):
    finding = found(sample(100_000, **settings))
    assert finding is not None
    assert np.isfinite(numbers(finding)[1:]).all()


@pytest.mark.parametrize("settings", [{"steps": 1}, {"steps": 3}, {"zeta": 1e6, "rule": "scalable"}], ids=str)
def test_runs_of_little_use_are_diagnosed(settings):
    run = sample(**({"steps": 2000, "chains": 1} | settings))
    assert not run.diagnose().ok


def test_a_flat_landscape_is_diagnosed():
    kernel = cm.csgld(0.1, PARTITION, weights="step")
    run = cm.sample(lambda x: 3.0 + 0.0 * x, init=0.0, steps=1000, chains=2, kernel=kernel)
    assert found(run) is None
