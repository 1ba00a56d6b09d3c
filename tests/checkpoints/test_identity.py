"""Another run of the same settings is told by its numbers: schedules, data, inputs, predictions and starts."""

import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc.checkpoints import identity
from contourmc.checkpoints.identity import differences, sketches_of

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 2)).astype(np.float32)
Y = (X @ np.array([1.0, -2.0], np.float32)).astype(np.float32)
PARTITION = cm.Partition(low=0, width=0.5, bins=20)


def changed(array, index=17):
    """With one changed row."""
    array = array.copy()
    array[index] += 0.01
    return array


def constant(value):
    return lambda step: jnp.full(step.shape, value)


def steps(first, later):
    return lambda step: jnp.where(step < 4000, first, later)


def line(w, x):
    return x @ w


def times(factor):
    """A model; all of them have the same name."""

    def predict(w, x):
        return factor * (x @ w), jnp.ones(len(x))

    return predict


ONCE = times(1.0)


def posterior(x=X, y=Y, **options):
    likelihood = cm.GaussianLikelihood(line, noise=1.0)
    return cm.Posterior(likelihood, cm.GaussianPrior(1.0), (x, y), batch_size=20, **options)


def energy_of(x):
    return lambda w: jnp.sum((w - x) ** 2) / 2


def average(predict=ONCE, inputs=X[:50], targets=Y[:50]):
    return cm.RegressionAverage(predict, inputs, targets)


def trained(learning_rate):
    return dict(target=posterior(), init=np.zeros(2, np.float32), kernel=None, learning_rate=constant(learning_rate))


def averaged(**options):
    return dict(target=posterior(), init=np.zeros(2, np.float32), kernel=cm.sgld(1e-4), average=average(**options))


CASES = {
    "a temperature": (
        dict(kernel=cm.sgld(0.01, constant(1.0))),
        dict(kernel=cm.sgld(0.01, constant(5.0))),
        r"kernel\.temperature was 1 and is 5 now at step 1",
    ),
    "a temperature that is the same at first": (
        dict(kernel=cm.sgld(0.01, steps(1.0, 1.0))),
        dict(kernel=cm.sgld(0.01, steps(1.0, 0.5))),
        r"kernel\.temperature was 1 and is 0\.5 now at step",
    ),
    "the step size of a dynamics within": (
        dict(kernel=cm.contour(cm.sgld(constant(0.01)), PARTITION)),
        dict(kernel=cm.contour(cm.sgld(constant(0.02)), PARTITION)),
        r"kernel\.dynamics\.step_size was 0\.01 and is 0\.02 now at step 1",
    ),
    "the learning rate of theta": (
        dict(kernel=cm.csgld(0.01, PARTITION, omega=constant(0.1))),
        dict(kernel=cm.csgld(0.01, PARTITION, omega=constant(0.2))),
        r"kernel\.omega was 0\.1 and is 0\.2 now at step 1",
    ),
    "a temperature of replicas": (
        dict(kernel=cm.replica_exchange(cm.sgld(0.01), cm.sgld(0.01, constant(3.0)))),
        dict(kernel=cm.replica_exchange(cm.sgld(0.01), cm.sgld(0.01, constant(4.0)))),
        r"temperature was 3 and is 4 now at step 1",
    ),
    "a learning rate": (
        trained(0.1),
        trained(0.2),
        r"kernel\.dynamics\.step_size was 0\.0005 and is 0\.001 now at step 1",
    ),
    "a row of the data": (
        averaged(), averaged() | dict(target=posterior(x=changed(X))), r"target\.data\.0 has other numbers now",
    ),
    "a row of data that the energy uses": (
        dict(target=energy_of(X)), dict(target=energy_of(changed(X))), r"target\.captured\.0 has other numbers now",
    ),
    "the inputs": (averaged(), averaged(inputs=changed(X[:50])), r"average\.inputs has other numbers now"),
    "the targets": (averaged(), averaged(targets=changed(Y[:50])), r"average\.targets has other numbers now"),
    "no targets": (averaged(), averaged(targets=None), r"average\.targets is gone"),
    "predict": (averaged(), averaged(predict=times(2.0)), r"what predict of the average gives"),
    "a start": ({}, dict(init=-jnp.ones(2)), r"init has other numbers now"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_run_with_other_numbers_is_refused_by_name(case, begin, tmp_path):
    before, now, words = CASES[case]
    begin(**before).close()
    written = (tmp_path / "run" / "run.json").read_bytes()
    begin(**before).close()  # the same call, with its functions made anew or not
    with pytest.raises(ValueError, match=words):
        begin(**now)
    assert (tmp_path / "run" / "run.json").read_bytes() == written


def test_a_schedule_is_compared_by_its_values_also_where_a_run_was_extended(begin):
    begin(kernel=cm.sgld(0.01, steps(1.0, 0.5))).close()
    begin(kernel=cm.sgld(0.01, steps(1.0, 0.5)), steps=9000).close()
    begin(kernel=cm.sgld(0.01, steps(1.0, 0.5)), steps=9500).close()


@pytest.mark.parametrize("large", [False, True])
def test_memory_mapped_data_are_compared_too(begin, tmp_path, monkeypatch, large):
    """All of it, or of a large array some rows."""
    monkeypatch.setattr(identity, "MOST_BYTES", 0 if large else 2**28)
    monkeypatch.setattr(identity, "ROWS", 3)

    def mapped(x):
        np.save(tmp_path / "x.npy", x)
        return posterior(x=np.load(tmp_path / "x.npy", mmap_mode="r"))

    call = dict(init=np.zeros(2, np.float32), kernel=cm.sgld(1e-4))
    begin(mapped(X), **call).close()
    for row in (0, 99, 199):
        with pytest.raises(ValueError, match=r"target\.data\.0 has other numbers now"):
            begin(mapped(changed(X, row)), **call)
    if large:
        begin(mapped(changed(X, 50)), **call).close()  # which is not read
    with pytest.raises(ValueError, match=r"target\.data\.0 has other numbers now"):
        begin(mapped(X.astype(np.float64)), **call)


def test_starts_that_are_rounded_differently_are_the_same():
    x = RANDOM.normal(size=(3, 100_000))
    before = sketches_of({"a": x}, "init")
    assert not differences(before, sketches_of({"a": x * (1 + 1e-7 * RANDOM.normal(size=x.shape))}, "init"))
    other = x.copy()
    other[1, 5] += 0.1
    assert differences(before, sketches_of({"a": other}, "init")) == ["init.a has other numbers now"]
    assert differences(before, sketches_of({"a": x[:, ::-1]}, "init"))
