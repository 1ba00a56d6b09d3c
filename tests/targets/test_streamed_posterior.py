"""Posteriors on a stream of batches: each step gets its batch, errors name theirs, threads end."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contourmc as cm
from contourmc._core.compiling import _compile
from contourmc.data.batch_stream import BatchStream
from contourmc.engine import pace

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(50, 2)).astype(np.float32)
Y = (X @ [1.0, -2.0] + 0.5 * RANDOM.normal(size=50)).astype(np.float32)
PARAMS = {"slope": jnp.array([0.3, 0.1]), "bias": jnp.float32(0.2)}
LIKELIHOOD = cm.GaussianLikelihood(lambda params, x: x @ params["slope"] + params["bias"], noise=0.5)
KERNEL = cm.csgld(1e-3, cm.Partition(low=60.0, width=10.0, bins=20))
BATCHES = [(X[i : i + 10], Y[i : i + 10]) for i in range(0, 50, 10)]


class Loader:
    """As a PyTorch loader: lists of arrays, a new iterator each time, a length."""

    def __iter__(self):
        return iter([list(batch) for batch in BATCHES])

    def __len__(self):
        return len(BATCHES)


def generate():
    yield from BATCHES


def streamed(batches, **changes):
    settings = dict(log_likelihood=LIKELIHOOD, log_prior=cm.GaussianPrior(1.0), batches=batches, size=50)
    return cm.StreamedPosterior(**(settings | changes))


def run(target, **changes):
    return cm.sample(target, **(dict(init=PARAMS, steps=60, kernel=KERNEL, chains=2, seed=5, burn_in=0) | changes))


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def no_threads():
    return not [thread for thread in threading.enumerate() if thread.name.startswith("contourmc")]


def test_step_k_gets_batch_k_and_the_energy_is_the_formula():
    """A step size so small that the chains do not move: the energies are those of the batches, epoch after epoch."""
    whole = cm.Posterior(LIKELIHOOD, cm.GaussianPrior(1.0), (X, Y), batch_size=10)
    expected = [whole.evaluate((jnp.arange(i, i + 10), None), PARAMS)[0] for i in range(0, 50, 10)]
    for batches, chains in ((Loader(), 1), (BATCHES, 2), (generate, 2)):
        result = run(streamed(batches), steps=12, kernel=cm.sgld(1e-12), thin=1, chains=chains)
        np.testing.assert_allclose(result.energies, [(expected * 3)[:12]] * chains, rtol=1e-5)
        assert no_threads()


def test_runs_are_the_same_however_they_are_cut(monkeypatch):
    target = streamed(Loader())
    whole = run(target)
    monkeypatch.setattr(pace, "SEGMENT_SECONDS", 0.0)  # a step at a time
    assert same(whole.draws, run(target).draws)
    compiled = _compile.cache_info().misses
    run(streamed(generate))
    assert _compile.cache_info().misses == compiled  # the stream is not part of the program


def test_an_iterator_is_read_no_further_than_needed_and_cannot_come_back():
    """Its 60 batches are enough for the 60 steps of a run, and there is no second run."""
    target = streamed(batch for _ in range(12) for batch in BATCHES)
    run(target)
    with pytest.raises(ValueError, match=r"^batches='an iterator that an earlier run has read'.*function"):
        run(target)
    assert no_threads()


def test_an_iterator_that_ends_too_early_is_named():
    with pytest.raises(cm.DataError, match=r"^batch 26 .*batches='an iterator that ended after 25 batches'.*function"):
        run(streamed(batch for _ in range(5) for batch in BATCHES))


def test_a_divergence_is_found_on_the_same_batches():
    """Batch 131 alone has numbers so large that the energy overflows. The search runs its block once more, to the
    end of it: an iterator that has no more batches then does not hide what was found.
    """
    batches = [*BATCHES * 26, (X[:10], np.full(10, 1e30, np.float32))]
    for given, steps in ((batches, 200), (iter(batches), 131)):
        with pytest.raises(cm.DivergenceError, match="at step 131;"):
            run(streamed(given), kernel=cm.sgld(1e-4), steps=steps)
    assert no_threads()


@pytest.mark.parametrize("more", [0, 2**15])  # a large position is a vector within a run
def test_an_error_of_the_loader_names_the_batch_and_keeps_the_draws(more):
    class LostError(Exception):
        pass

    def broken():
        yield from BATCHES * 8
        raise LostError("the disk is gone")

    settings = dict(init=PARAMS | {"more": jnp.zeros(more)} if more else PARAMS, thin=1)
    with pytest.raises(cm.DataError, match=r"^batch 41 could not be read: LostError: the disk is gone\.") as caught:
        run(streamed(broken), **settings)
    assert isinstance(caught.value.__cause__, LostError)
    drawn = caught.value.samples
    assert drawn.interrupted
    assert drawn.steps[-1] == 40  # all steps whose batches there were
    whole = run(streamed(BATCHES), **settings)
    assert same(drawn.draws, jax.tree.map(lambda leaf: leaf[:, :40], whole.draws))
    assert no_threads()


def test_a_thread_reads_ahead_and_not_too_far():
    read = []

    def count():
        for i in range(1000):
            read.append(threading.current_thread().name)
            yield (np.full(1, i),)

    stream = BatchStream(count, 3, lambda batch: None)
    del read[:]

    def batch_of(step):
        return int(stream.read(np.array(step))[0][0])

    with stream.session():
        assert batch_of(1) == 0
        until = time.monotonic() + 10
        while len(read) < 5 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)
        assert set(read) == {"contourmc batches"}
        assert len(read) == 5  # one was taken, three wait, and one waits for room
        assert [batch_of(step) for step in (2, 3, 1, 3)] == [1, 2, 0, 2]
        stream.forget(2)
        assert sorted(stream._kept) == [3]
    assert no_threads()


def nan_batch():
    x = X[:10].copy()
    x[3, 1] = np.nan
    return x, Y[:10]


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([*BATCHES, (X[:3], Y[:3])], r"batches\[0\]='an array of shape \(3, 2\)'.*\(10, 2\).*drop_last"),
        ([*BATCHES, nan_batch()], r"batches\[0\]='1 numbers that are not finite'"),
        ([*BATCHES, X[:10]], r"batches=PyTreeDef"),
    ],
)
def test_a_bad_batch_is_named_when_it_comes(batches, words):
    with pytest.raises(cm.DataError, match="^batch 6 could not be read: ValueError: " + words):
        run(streamed(batches))


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(batches=[]), "^batches=.*holds no batch"),
        (dict(batches=3), "^batches=3.*iterable"),
        (dict(batches=[nan_batch()]), r"^batches\[0\]=.*not finite"),
        (dict(batches=[()]), "^batches=.*at least one array"),
        (dict(size=9), "^size=9.*10 observations"),
        (dict(prefetch=0), "^prefetch=0"),
        (dict(log_prior=None), "^log_prior=None"),
    ],
)
def test_bad_input_is_named(changes, words):
    with pytest.raises(ValueError, match=words):
        streamed(**(dict(batches=BATCHES) | changes))
