"""`sample`: bad input, bad luck, interruption."""

import os
import pickle
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core.progress import Progress
from contourmc.engine import pace
from contourmc.problems import GaussianMixture

ENERGY = GaussianMixture().energy
PARTITION = cm.Partition(low=1.5, width=1.0, bins=50)
GOOD = dict(init=0.0, steps=100, kernel=cm.csgld(0.1, PARTITION), chains=2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(steps=0), "steps"),
        (dict(steps=2.5), "steps"),
        (dict(steps=2**31), "steps"),
        (dict(chains=0), "chains"),
        (dict(thin=0), "thin"),
        (dict(thin=1000), "thin"),
        (dict(burn_in=100), "burn_in"),
        (dict(burn_in=-1), "burn_in"),
        (dict(kernel="csgld"), "kernel"),
        (dict(init=0), "init.*float"),
        (dict(init={"a": np.arange(3)}), "init.*float"),
        (dict(init=()), "init"),
        (dict(init=float("nan")), "init.*finite"),
        (dict(init=jnp.zeros(3)), "target.*one float"),
        (dict(init=jnp.zeros(3), per_chain_init=True), "leading axis of 2"),
        (dict(init=0.0, per_chain_init=True), "leading axis of 2"),
    ],
)
@pytest.mark.usefixtures("untyped")
def test_bad_input_names_the_argument(changes, words):
    with pytest.raises(ValueError, match=words):
        cm.sample(ENERGY, **(GOOD | changes))


@pytest.mark.usefixtures("untyped")
def test_an_energy_that_is_not_a_function_or_not_a_float():
    with pytest.raises(ValueError, match="target"):
        cm.sample(3.0, **GOOD)
    with pytest.raises(ValueError, match="target"):
        cm.sample(lambda x: jnp.int32(3), **GOOD)


def test_an_init_where_only_one_chain_is_not_finite_names_it():
    with pytest.raises(ValueError, match="chain 1"):
        cm.sample(ENERGY, **(GOOD | dict(init=jnp.array([0.0, jnp.inf]), per_chain_init=True)))


def test_init_per_chain_and_by_a_function():
    starts = jnp.array([-6.0, 4.0])
    run = cm.sample(ENERGY, **(GOOD | dict(init=starts, per_chain_init=True, burn_in=0, thin=1)))
    np.testing.assert_array_equal(run.draws[:, 0], starts)
    run = cm.sample(ENERGY, **(GOOD | dict(init=jax.random.normal, burn_in=0, thin=1)))
    assert run.draws[0, 0] != run.draws[1, 0]


@pytest.mark.parametrize("fuses", [True, False])
def test_a_divergence_is_found_and_named(fuses, monkeypatch):
    """A quartic energy with a large step explodes; the error tells where, and keeps what was drawn before."""
    if not fuses:
        monkeypatch.setenv("CONTOURMC_FUSE", "0")

    def energy(x):  # a harmless valley with a cliff beyond x = 3
        return jnp.where(x < 3, 0.5 * x**2, -jnp.exp(40 * x))

    with pytest.raises(cm.DivergenceError, match=r"chain \d+ met .* at step (\d+).*last finite energy") as caught:
        cm.sample(energy, init=0.0, steps=1_000_000, kernel=cm.sgld(0.1), chains=3, burn_in=0, thin=1)
    error = caught.value
    step = int(str(error).split("step ")[1].split(";")[0])
    draws = error.samples.draws
    assert draws.shape[1] == step - 1 > 0  # nothing is lost before it
    assert np.isfinite(draws).all()
    assert np.isfinite(error.samples.energies).all()
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # it comes back from another process


def test_the_step_of_a_divergence_is_exact(monkeypatch):
    """The same chain, found when segments end wherever they do, and when each is a single step."""

    def energy(x):
        return jnp.where(x < 2, 0.5 * x**2, jnp.nan)

    def message() -> str:
        with pytest.raises(cm.DivergenceError) as caught:
            cm.sample(energy, init=0.0, steps=100_000, kernel=cm.sgld(0.1), chains=1, seed=2)
        return str(caught.value).split(";")[0]

    as_it_comes = message()
    assert int(as_it_comes.split("step ")[1]) > 65  # beyond the first segment, in the middle of a block
    monkeypatch.setattr(pace, "SEGMENT_SECONDS", 0.0)
    monkeypatch.setattr(pace, "least_steps", lambda plan: 1)
    assert message() == as_it_comes


def test_a_divergence_in_the_first_block_still_gives_an_error_with_samples():
    with pytest.raises(cm.DivergenceError) as caught:
        cm.sample(lambda x: x**4, init=10.0, steps=1000, kernel=cm.sgld(1.0), chains=1)
    assert caught.value.samples.draws.shape[1] == 0


def test_an_energy_that_is_nan_only_now_and_then_is_not_passed_over():
    def energy(x):  # finite gradient, NaN energy beyond 2.5
        return 0.5 * x**2 + jax.lax.stop_gradient(jnp.where(x > 2.5, jnp.nan, 0.0))

    with pytest.raises(cm.DivergenceError):
        cm.sample(energy, init=0.0, steps=100_000, kernel=cm.sgld(0.1), chains=2)


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where the tests were started in the background, where it would be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_returns_what_there_is(monkeypatch):
    """A real signal, sent by the run itself when it reports for the fourth time."""
    reports = []

    def update(self, stage, step, note=""):
        reports.append(step)
        if len(reports) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Progress, "update", update)
    settings = GOOD | dict(steps=200_000_000, burn_in=0, thin=1)
    run = cm.sample(ENERGY, **settings)
    assert run.interrupted
    assert run.trajectory.steps[-1] == reports[-1] < settings["steps"]
    assert run.draws.shape[1] == reports[-1]
    assert "interrupted" in str(run.diagnose())


def test_a_run_that_is_advanced_step_by_step_is_the_same():
    """Pieces of any length, with samples taken in between."""
    settings = GOOD | dict(steps=3000, burn_in=100, thin=7)
    whole = cm.sample(ENERGY, **settings)
    run = cm.start(ENERGY, **settings)
    for steps in (1, 99, 1000, 1024):
        run.advance(steps)
        assert run.samples().interrupted
    assert run.step == 2124
    assert run.positions.shape == (2,)
    run.advance()
    cut = run.samples()
    for name in ("draws", "energies", "log_weights", "theta", "steps"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name))
    np.testing.assert_array_equal(cut.mean(), whole.mean())
    assert not cut.interrupted


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("steps", [0, -1, 2.5, "all"])
def test_a_number_of_steps_that_makes_no_sense_is_named(steps):
    with pytest.raises(ValueError, match="steps"):
        cm.start(ENERGY, **GOOD).advance(steps)


def test_a_run_is_not_advanced_beyond_its_end_nor_after_it_is_closed():
    run = cm.start(ENERGY, **GOOD)
    run.advance(60)
    run.advance(60)  # 40 of them
    assert run.step == 100
    with pytest.raises(ValueError, match="all of its 100 steps"):
        run.advance(1)
    closed = cm.start(ENERGY, **GOOD)
    closed.advance(50)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.advance(1)
    assert closed.samples().energies.shape == (2, 40)


def test_there_are_no_estimates_before_the_end_of_burn_in():
    run = cm.start(ENERGY, **GOOD)
    run.advance(5)
    samples = run.samples()
    for estimate in (samples.mean, samples.variance, samples.standard_error, samples.ess):
        with pytest.raises(ValueError, match="no draw was kept"):
            estimate()
    assert not samples.diagnose().ok


def test_progress_is_quiet_unless_asked(capfd):
    cm.sample(ENERGY, **GOOD)
    assert capfd.readouterr() == ("", "")
    cm.sample(ENERGY, **(GOOD | dict(steps=5000, progress=True)))
    shown = capfd.readouterr().err
    for word in ("steps/s", "energy", "uphill", "weight ESS"):
        assert word in shown
