"""Draws for ArviZ: equally weighted, and with the means of the run, whether or not chains count equally."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import contourmc as cm
from contourmc.draws.trajectory import Trajectory
from contourmc.flattening.summary import Flattening
from contourmc.targets.view import Labels

pytestmark = pytest.mark.filterwarnings("ignore")  # ArviZ and its dependencies warn on import
CHAINS, DRAWS = 4, 500


@pytest.fixture(scope="module")
def run():
    """Chains at 0, 1, 2 and 3 with noise, whose weights are e⁰, e¹, e² and e³, nearly."""
    rng = np.random.default_rng(0)
    x = np.arange(CHAINS)[:, None] + 0.1 * rng.normal(size=(CHAINS, DRAWS))
    log_weights = np.floor(x + 0.5) + 0.01 * rng.normal(size=x.shape)
    trajectory = Trajectory(
        np.array([DRAWS]), np.logaddexp.reduce(log_weights, axis=1)[:, None],
        np.sum(x * np.exp(log_weights), axis=1)[:, None] / np.exp(log_weights).sum(axis=1)[:, None],
        np.zeros((CHAINS, 1)), np.zeros(CHAINS), None, None,
    )  # fmt: skip
    flattening = Flattening(cm.Partition(low=0.0, width=1.0, bins=4), 0.0, fixed=True)
    return cm.Samples(x, x, log_weights, x, np.arange(1, DRAWS + 1), trajectory, {}, 0.0, flattening=flattening)


def test_with_comparable_weights_means_agree_with_those_of_the_run(run):
    """Systematic resampling is off by at most 3 (the range) / 500 in each of 4 chains' shares."""
    data = run.to_arviz()
    values = np.asarray(data["posterior"]["x"])
    assert values.shape == (CHAINS, DRAWS)
    assert values.mean() == pytest.approx(run.mean(), abs=0.01)
    assert values.mean() == pytest.approx(2.49, abs=0.02)  # Σ i·eⁱ / Σ eⁱ; chains that count equally would give 1.5
    np.testing.assert_array_equal(data["sample_stats"]["energy"], values)  # each with its own figures


def test_rows_are_stretches_of_chains(run):
    """The last chain has a share of 64% and fills two rows and a half; the others share what is left, in order."""
    values = np.asarray(run.to_arviz()["posterior"]["x"])
    origins = np.round(values)
    assert np.all(np.diff(origins.ravel()) >= 0)
    assert np.all(origins[2:] == 3)


def test_chains_that_disagree_are_seen_by_arviz(run):
    import arviz

    rhat = float(np.asarray(arviz.rhat(run.to_arviz())["x"]))
    assert rhat > 1.2


def test_chains_that_count_equally_keep_their_places(run):
    equal = replace(run, flattening=None)
    values = np.asarray(equal.to_arviz(draws=50)["posterior"]["x"])
    np.testing.assert_array_equal(np.round(values), np.repeat(np.arange(4.0)[:, None], 50, axis=1))
    assert values.mean() == pytest.approx(equal.mean(), abs=0.01)


def test_names_are_those_of_the_arrays(run):
    named = replace(run, draws={"layer": {"bias": run.draws}, "draw": run.draws[..., None]})
    posterior = named.to_arviz(draws=3)["posterior"]
    assert set(posterior.data_vars) == {"layer.bias", "draw_"}
    assert posterior["draw_"].shape == (CHAINS, 3, 1)


def test_arviz_1_takes_one_dictionary_of_groups(run, monkeypatch):
    newer = SimpleNamespace(__version__="1.2.0", from_dict=lambda groups: groups)
    monkeypatch.setitem(sys.modules, "arviz", newer)
    assert set(run.to_arviz()) == {"posterior", "sample_stats"}


def test_arviz_1_takes_dims_and_coords_by_name(run, monkeypatch):
    newer = SimpleNamespace(__version__="1.2.0", from_dict=lambda groups, *, dims, coords: (groups, dims, coords))
    monkeypatch.setitem(sys.modules, "arviz", newer)
    labels = Labels({"draw": ("school",), "absent": ("other",)}, {"school": ["A"], "other": ["B"]})
    _, dims, coords = replace(run, draws={"draw": run.draws[..., None]}, labels=labels).to_arviz()
    assert dims == {"draw_": ["school"]}  # by the name that the array has for ArviZ
    assert coords == {"school": ["A"]}


def test_bad_requests(run):
    with pytest.raises(ValueError, match=r"draws=0 .*1 or more"):
        run.to_arviz(draws=0)
    with pytest.raises(ValueError, match="store=True"):
        replace(run, draws=None).to_arviz()


def test_where_means_come_from_kept_draws_those_of_arviz_agree(run):
    """Off by about √2 / 2000 standard deviations; by systematic resampling, by 1 / √2000 of them."""
    kept = run.map(lambda x: {"x": x, "square": x**2})
    posterior = kept.to_arviz()["posterior"]
    for name, mean in kept.mean().items():
        assert float(np.mean(posterior[name])) == pytest.approx(float(mean), abs=3e-3 * float(kept[name].std()))
    equal = replace(kept, flattening=None)
    values = np.asarray(equal.to_arviz(draws=50)["posterior"]["x"])
    np.testing.assert_array_equal(np.round(values), np.repeat(np.arange(4.0)[:, None], 50, axis=1))
