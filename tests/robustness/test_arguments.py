"""Calls that cannot work, one in each line: the error names what was given, what is wrong with it, and what to do.

Nearly all are refused before anything is compiled.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.kernels.scale import Factor

DATA = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
BIG_ENDIAN = DATA.astype(">f4")  # as FITS files have it
ZEROS = np.zeros(2, np.float32)


def energy(x):
    return jnp.sum(x**2) / 2


def log_likelihood(x, batch):
    return -jnp.sum((batch - x) ** 2, axis=-1) / 2


def log_prior(x):
    return -jnp.sum(x**2) / 2


def fails(*_):
    raise KeyError("mu")


def sample(target=energy, **changes):
    return cm.sample(target, **(dict(init=ZEROS, steps=200, kernel=cm.sgld(0.1)) | changes))


def posterior(likelihood=log_likelihood, prior=log_prior, data=DATA, batch_size=10, **more):
    return cm.Posterior(likelihood, prior, data, batch_size, **more)


def regression(predict):
    return cm.RegressionAverage(predict, DATA, DATA[:, 0])


def scaled(scale, init=ZEROS, target=energy):
    return sample(target, init=init, kernel=cm.adjusted(0.1, scale=scale))


def of_scale(size):
    size = jnp.asarray(size)  # an array, so that the pilots of all sizes are one program
    return cm.sample(lambda x: (x / size) ** 2 / 2, init=float(size), steps=2000)


def schedule(value):
    return lambda step: value


TWO = {"a": 0.0, "b": 0.0}
of_two = lambda p: p["a"] ** 2 + p["b"] ** 2  # noqa: E731
at_init = r"at an init of shape \(2,\) it fails with KeyError\('mu'\)"

CALLS = {
    # Averages
    "a bare mean": (
        lambda: sample(average=regression(lambda x, inputs: inputs @ x)),
        r"^predict='an array of shape \(20,\)'.*a mean and a variance for each of the 20 targets",
    ),
    "three predictions": (
        lambda: sample(average=regression(lambda x, inputs: (inputs @ x,) * 3)),
        r"^predict=.*tuple of 3.*a mean and a variance",
    ),
    "a prediction that fails": (lambda: sample(average=regression(fails)), rf"^average=<function fails.*{at_init}"),
    # Constraints
    "a simplex of one": (
        lambda: sample(cm.transformed(jnp.sum, cm.simplex), init=jnp.ones(1)),
        r"^init=.*simplex of one number is always 1",
    ),
    "a simplex of one, alone": (
        lambda: sample(
            cm.transformed(lambda p: jnp.sum(p["w"]), {"w": cm.simplex}),
            init={"w": jnp.ones(1)},
            kernel=None,
            steps=2000,
        ),
        r"^init=.*simplex of one number is always 1",
    ),
    "an interval of words": (lambda: cm.interval("a", 1.0), r"^low='a' is not possible: give a finite number, such as"),
    # Scales
    "a scale in words": (lambda: scaled("x"), r"^scale='x'.*above 0"),
    "a scale that is an object": (lambda: scaled(object()), r"^scale=<object.*above 0"),
    "a scale with NaN": (lambda: scaled(np.array([1.0, np.nan])), r"^scale=.*nan.*above 0"),
    "a scale of 0": (lambda: scaled(np.array([1.0, 0.0])), r"^scale=.*above 0"),
    "a scale below 0": (lambda: scaled(np.array([1.0, -1.0])), r"^scale=.*above 0"),
    "an infinite scale": (lambda: scaled(jnp.array([1.0, jnp.inf])), r"^scale=.*finite"),
    "a complex scale": (lambda: scaled(np.array([1j, 2])), r"^scale=.*above 0"),
    "a scale of truth values": (lambda: scaled(np.array([True, True])), r"^scale=.*above 0"),
    "a list for an array": (lambda: scaled([1.0, 1.0]), r"^scale=\[1\.0, 1\.0\].*shaped like a position"),
    "a matrix for widths": (lambda: scaled(np.eye(2)), r"^scale=.*shaped like a position"),
    "three widths for two": (lambda: scaled(np.ones(3)), r"^scale='an array of shape \(3,\)'.*shape \(2,\)"),
    "a dictionary for an array": (lambda: scaled({"a": 1.0}), r"^scale=\{'a': 1\.0\}.*shaped like a position"),
    "an array for a dictionary": (lambda: scaled(1.0, TWO, of_two), r"^scale=1\.0.*shaped like a position"),
    "a scale without a key": (lambda: scaled({"a": 1.0}, TWO, of_two), r"^scale=\{'a': 1\.0\}.*shaped like a position"),
    "a factor of another size": (lambda: scaled(Factor(jnp.eye(3))), r"^scale=.*\(3, 3\).*\(2, 2\)"),
    # Starts
    "mixed keys": (
        lambda: sample(lambda p: p["a"] ** 2, init={"a": 0.0, 1: 0.0}),
        r"^init=\{'a': 0\.0, 1: 0\.0\}.*sorted",
    ),
    "the energy as a start": (
        lambda: sample(init=energy),
        r"^init=<function energy.*this is the target.*position where",
    ),
    "a start that fails": (
        lambda: sample(init=fails),
        r"^init=<function fails.*with a random key it fails with KeyError\('mu'\)",
    ),
    "a start without an argument": (
        lambda: sample(init=lambda: ZEROS),
        r"^init=<function.*with a random key it fails with TypeError",
    ),
    "a start in words": (
        lambda: sample(init=lambda key: "x"),
        r"^init=<function.*with a random key it fails with TypeError",
    ),
    "a box of words": (lambda: cm.Box("a", 1.0), r"^low='a'.*numbers"),
    # Schedules
    "words": (
        lambda: cm.sgld(schedule("x")),
        r"^step_size=<function.*at step 1 it fails with.*one number for each step",
    ),
    "a vector": (lambda: cm.sgld(schedule(jnp.ones(3))), r"^step_size=<function.*one number for each step"),
    "a vector for each step": (
        lambda: cm.sgld(lambda k: jnp.ones((2, *jnp.shape(k)))),
        r"^step_size=<function.*one number for each step",
    ),
    "nothing": (lambda: cm.sgld(schedule(None)), r"^step_size=<function.*one number for each step"),
    "a dictionary": (lambda: cm.sgld(schedule({"a": 1.0})), r"^step_size=<function.*one number for each step"),
    "a list": (lambda: cm.sgld(schedule([0.1])), r"^step_size=<function.*one number for each step"),
    "a complex number": (lambda: cm.sgld(schedule(1j)), r"^step_size=<function.*one number for each step"),
    "NaN": (lambda: cm.sgld(schedule(jnp.nan)), r"^step_size at step 1=nan"),
    "a schedule that fails": (
        lambda: cm.sgld(fails),
        r"^step_size=<function fails.*at step 1 it fails with KeyError\('mu'\)",
    ),
    "a branch in Python": (
        lambda: cm.sgld(lambda k: 0.1 if k < 10 else 0.2),
        r"^step_size=<function.*at step 1 it fails with Tracer.*jnp\.where",
    ),
    "a temperature in words": (lambda: cm.sgld(0.1, temperature=schedule("x")), r"^temperature=<function.*one number"),
    "an ω in words": (
        lambda: cm.csgld(0.1, cm.Partition(0.0, 1.0, 10), omega=schedule("x")),
        r"^omega=<function.*one number",
    ),
    "a learning rate in words": (
        lambda: sample(posterior(), kernel=None, learning_rate=schedule("x"), steps=1000),
        r"^learning_rate=<function.*one number",
    ),
    # Functions of the user's that fail
    "an energy": (lambda: sample(fails), rf"^target=<function fails.*{at_init}"),
    "a log likelihood": (lambda: sample(posterior(fails)), rf"^log_likelihood=<function fails.*{at_init}"),
    "a log prior": (lambda: sample(posterior(prior=fails)), rf"^log_prior=<function fails.*{at_init}"),
    "an augmentation": (
        lambda: sample(posterior(augment=fails)),
        r"^augment=<function fails.*it fails with KeyError\('mu'\)",
    ),
    "an augmentation of nothing": (
        lambda: sample(posterior(augment=lambda key, batch: None)),
        r"^augment=None.*the batch of 10",
    ),
    "an augmentation that drops rows": (
        lambda: sample(posterior(augment=lambda key, batch: batch[:3])),
        r"^log_likelihood=.*each of the 10.*shapes \(3, 2\), from augment",
    ),
    "a streamed log likelihood": (
        lambda: sample(cm.StreamedPosterior(fails, log_prior, [DATA[:10]], size=20)),
        rf"^log_likelihood=<function fails.*{at_init}",
    ),
    "a likelihood of another shape": (
        lambda: sample(posterior(), init=np.zeros(3, np.float32)),
        r"^log_likelihood=<function log_likelihood.*shape \(3,\).*it fails with",
    ),
    "a model": (
        lambda: sample(
            cm.Posterior(cm.GaussianLikelihood(fails, noise=0.1), cm.GaussianPrior(1.0), (DATA, DATA[:, 0]), 10)
        ),
        r"^log_likelihood=GaussianLikelihood.*it fails with KeyError",
    ),
    "a model of another shape": (
        lambda: sample(
            cm.Posterior(
                cm.GaussianLikelihood(lambda x, inputs: inputs, noise=0.1),
                cm.GaussianPrior(1.0),
                (DATA, DATA[:, 0]),
                10,
            )
        ),
        r"^apply='outputs of shape \(10, 2\)' is not possible: give one mean",
    ),
    "an energy of big-endian data": (
        lambda: sample(lambda x: jnp.sum((x - BIG_ENDIAN) ** 2)),
        r"^target=.*astype\(x\.dtype\.newbyteorder\('='\)\)",
    ),
    # Whole numbers
    "half a chain": (lambda: sample(chains=2.5), r"^chains=2\.5 is not possible: give a whole number"),
    "chains in words": (lambda: sample(chains="4"), r"^chains='4' is not possible: give a whole number"),
    "chains that are true": (lambda: sample(chains=True), r"^chains=True is not possible: give a whole number"),
    "no chain": (lambda: sample(chains=0), r"^chains=0 is not possible: a run needs at least 1 chain"),
    "steps without end": (lambda: sample(steps=float("inf")), r"^steps=inf is not possible: give a whole number"),
    "steps of NaN": (lambda: sample(steps=float("nan")), r"^steps=nan is not possible: give a whole number"),
    "a share of the steps": (lambda: sample(burn_in=0.1), r"^burn_in=0\.1 is not possible: give a whole number"),
    "half a bin": (lambda: cm.Partition(0.0, 1.0, 2.5), r"^bins=2\.5 is not possible: give a whole number"),
    "a step size in words": (lambda: cm.sgld("x"), r"^step_size='x' is not possible: give a number: the step size"),
    "a step size of NaN": (
        lambda: cm.sgld(float("nan")),
        r"^step_size=nan is not possible: give a finite number: the step size",
    ),
    "a step size below 0": (lambda: cm.sgld(-1.0), r"^step_size=-1\.0 is not possible: the step size"),
    # Units
    "scales of 10⁹": (lambda: of_scale(1e9), r"^target=.*units of 1e\+09, in which they vary by about 1"),
    "scales of 10⁻¹⁸": (
        lambda: of_scale(1e-18),
        r"^target='an energy by which even steps of 1e-11 are all refused'.*units",
    ),
}


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_what_was_given(name):
    call, words = CALLS[name]
    with pytest.raises(ValueError, match=f"(?s){words}"):
        call()


def test_big_endian_data_are_converted():
    on_device = posterior(data=BIG_ENDIAN).data
    on_host = posterior(data=BIG_ENDIAN, resident=False).data.reader.read(np.arange(20))
    streamed = cm.StreamedPosterior(log_likelihood, log_prior, [BIG_ENDIAN], size=20).batches.reader.read(np.array(1))
    for data in (on_device, on_host, streamed):
        assert data.dtype == np.float32
        np.testing.assert_array_equal(data, DATA)


def test_big_endian_starts_and_inputs_are_converted():
    average = cm.RegressionAverage(lambda x, inputs: (inputs @ x, jnp.ones(20)), BIG_ENDIAN, BIG_ENDIAN[:, 0])
    np.testing.assert_array_equal(average.inputs, DATA)
    with cm.start(energy, init=BIG_ENDIAN[:4], per_chain_init=True, steps=100, kernel=cm.sgld(0.1)) as run:
        np.testing.assert_array_equal(run.positions, DATA[:4])


def test_a_simplex_of_one_beside_others_is_sampled():
    target = cm.transformed(lambda p: p["x"] ** 2 / 2 + jnp.sum(p["w"]), {"w": cm.simplex})
    with cm.start(target, init={"w": jnp.ones(1), "x": 0.0}, steps=100, kernel=cm.sgld(0.1)) as run:
        assert run.positions["w"].shape == (4, 0)
