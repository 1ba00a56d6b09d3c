"""Draws as a DataTree and in a file: what the groups hold, and that every field comes back."""

from dataclasses import fields, is_dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import contourmc as cm
from contourmc.draws.basins import Basins

INIT = {"layer": {"weights": jnp.zeros((2, 3)), "bias": jnp.zeros(2)}}


def energy(x):
    return 0.5 * jnp.sum(x["layer"]["weights"] ** 2) + 0.5 * jnp.sum(x["layer"]["bias"] ** 2)


@pytest.fixture(scope="module")
def run():
    """A run with everything in it that there can be."""
    average = cm.RegressionAverage(lambda x, inputs: (inputs * x["layer"]["bias"][0], inputs), jnp.ones(3), jnp.ones(3))
    kernel = cm.csgld(0.05, cm.Partition(low=1.0, width=1.0, bins=6))
    made = cm.sample(energy, init=INIT, steps=300, kernel=kernel, chains=2, average=average)
    minima = jax.tree.map(lambda leaf: np.arange(3.0 * leaf.size).reshape(3, *leaf.shape), INIT)
    return replace(
        made,
        basins=Basins(minima, np.arange(3.0), jax.tree.map(np.ones_like, INIT)),
        target_states={"count": np.ones(made.energies.shape, np.int32)},
        virials=np.full(made.energies.shape, 0.5),
        interrupted=True,
        stage="learning",
        exact=False,
    )


def assert_same(one, other):
    """Equal in every field, number and type."""
    assert type(one) is type(other)
    if is_dataclass(one) and not isinstance(one, type):
        for field in fields(one):
            if not field.compare:  # such as the target, which is not part of files
                continue
            assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert jax.tree.structure(one) == jax.tree.structure(other)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)


def test_every_field_comes_back(run, tmp_path):
    assert_same(cm.Samples.load(run.save(tmp_path / "new" / "run.nc")), run)


def test_what_a_run_does_not_have_is_none_again(run, tmp_path):
    bare = replace(run, draws=None, basins=None, target_states=None, average=None, flattening=None, virials=None)
    bare = replace(
        bare, trajectory=replace(run.trajectory, means=None, squares=None, centre=None, theta=None, visits=None)
    )
    assert_same(cm.Samples.load(bare.save(tmp_path / "run.nc")), bare)


def test_a_list_of_averages_is_one_again(run, tmp_path):
    listed = replace(run, average=[run.average.chain(i % 2) for i in range(11)])  # "10" comes before "2" in a file
    back = cm.Samples.load(listed.save(tmp_path / "run.nc")).average
    assert len(back) == 11
    for one, other in zip(back, listed.average, strict=True):
        assert_same(one, other)


def test_a_run_without_draws_comes_back(run, tmp_path):
    def none(leaf):
        return leaf[:, :0]

    changes = {name: none(getattr(run, name)) for name in ("energies", "log_weights", "multipliers", "virials")}
    empty = replace(run, draws=jax.tree.map(none, run.draws), target_states=None, steps=run.steps[:0], **changes)
    assert_same(cm.Samples.load(empty.save(tmp_path / "run.nc")), empty)


def test_groups_and_names_are_readable(run, tmp_path):
    file = run.save(tmp_path / "run.nc")
    with xarray.open_datatree(file, engine="h5netcdf") as tree:
        assert tree.identical(run.to_xarray())
        assert set(tree.children) == {"draws", "target_states", "trajectory", "basins", "average"}
        assert tree["draws/layer.weights"].dims == ("chain", "draw", "layer.weights_0", "layer.weights_1")
        assert tree["draws"]["layer.bias"].attrs["path"] == "['layer']['bias']"
        np.testing.assert_array_equal(tree["draws"]["layer.bias"]["draw"], run.steps)
        assert tree["trajectory/theta"].dims == ("chain", "mark", "bin")
        assert tree["trajectory/means/layer.bias"].dims == ("chain", "mark", "layer.bias_0")
    with xarray.open_dataset(file, group="draws", engine="h5netcdf") as draws:
        np.testing.assert_array_equal(draws["layer.bias"], run.draws["layer"]["bias"])
