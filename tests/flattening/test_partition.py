"""J(u) = clip(ceil((u − u₁)/Δu), 0, m−1): right-closed bins between two unbounded ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contourmc import Partition

# Edges 2, 2.5, … 5, all of them exact in float32.
PARTITION = Partition(low=2.0, width=0.5, bins=8)


def bins_of(energies, partition=PARTITION):
    return np.asarray(partition.index(jnp.asarray(energies, jnp.float32)))


def test_an_edge_belongs_to_the_bin_below_it():
    edges = PARTITION.edges.astype(np.float32)
    np.testing.assert_array_equal(bins_of(edges), np.arange(7))
    np.testing.assert_array_equal(bins_of(np.nextafter(edges, np.float32(np.inf))), np.arange(1, 8))
    np.testing.assert_array_equal(bins_of(np.nextafter(edges, np.float32(-np.inf))), np.arange(7))


def test_the_end_bins_take_everything_beyond():
    np.testing.assert_array_equal(bins_of([1.9, -7.0, -1e30, -3e38, -np.inf]), 0)
    np.testing.assert_array_equal(bins_of([5.1, 100.0, 1e30, 3e38, np.inf]), 7)


def test_energies_beyond_the_integers_under_jit():
    """2³¹ bins away and more."""
    index = jax.jit(PARTITION.index)
    assert index(jnp.float32(1e30)) == 7
    assert index(jnp.float32(-1e30)) == 0


@pytest.mark.parametrize("width", [0.1, 1 / 3, 7.0, 1000.0])
def test_widths_that_are_not_exact(width):
    """The edge itself may go either way by rounding; a millionth of the energy to its sides may not."""
    partition = Partition(low=-3.0, width=width, bins=200)
    edges = partition.edges
    around = 1e-6 * (np.abs(edges) + 3)
    np.testing.assert_array_equal(bins_of(edges - around, partition), np.arange(199))
    np.testing.assert_array_equal(bins_of(edges + around, partition), np.arange(1, 200))


def test_edges_and_high():
    assert PARTITION.edges.shape == (7,)
    assert PARTITION.edges[0] == PARTITION.low
    assert PARTITION.edges[-1] == PARTITION.high == 5.0
    np.testing.assert_allclose(np.diff(PARTITION.edges), PARTITION.width)


def test_two_bins_have_one_edge():
    partition = Partition(low=1.0, width=3.0, bins=2)
    assert partition.edges.tolist() == [1.0] == [partition.high]
    np.testing.assert_array_equal(bins_of([0.0, 1.0, 1.1, 50.0], partition), [0, 0, 1, 1])


def test_index_keeps_the_shape():
    energies = jnp.linspace(0, 9, 12).reshape(3, 4)
    index = PARTITION.index(energies)
    assert index.shape == (3, 4)
    assert index.dtype == jnp.int32
    np.testing.assert_array_equal(index, jax.vmap(jax.vmap(PARTITION.index))(energies))


def test_equal_settings_are_equal_objects():
    """The compiled loop is cached by them."""
    assert Partition(2, 1, 50) == Partition(2.0, 1.0, 50)
    assert hash(Partition(2, 1, 50)) == hash(Partition(2.0, 1.0, 50))
    assert Partition(2, 1, 50) != Partition(2, 1, 51)


def test_extended_keeps_the_bins_there_were():
    """Old edges are among the new ones, and an energy's bin moves by what was added below."""
    wider = PARTITION.extended(3, 2)
    assert (wider.low, wider.width, wider.bins) == (0.5, 0.5, 13)
    assert wider.high == 6.0
    np.testing.assert_array_equal(wider.edges[3:-2], PARTITION.edges)
    inner = np.linspace(2.1, 4.9, 57)
    np.testing.assert_array_equal(bins_of(inner, wider), bins_of(inner) + 3)
    assert PARTITION.extended(0, 0) == PARTITION
    assert wider.extended(-3, -2) == PARTITION


def test_extended_cannot_shrink_below_two_bins():
    assert PARTITION.extended(-3, -3).bins == 2
    with pytest.raises(ValueError, match=r"^bins="):
        PARTITION.extended(-4, -3)


@pytest.mark.usefixtures("untyped")
def test_numbers_of_other_kinds_become_plain_ones():
    partition = Partition(low=np.float32(2), width=np.int64(1), bins=1e2)
    assert partition == Partition(2.0, 1.0, 100)
    assert [type(value) for value in (partition.low, partition.width, partition.bins)] == [float, float, int]


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("bins", 1), ("bins", 0), ("bins", -3), ("bins", 2.5), ("bins", float("nan")), ("bins", "ten"),
        ("bins", None), ("bins", True),
        ("width", 0.0), ("width", -1.0), ("width", float("nan")), ("width", float("inf")), ("width", "wide"),
        ("low", float("nan")), ("low", float("inf")), ("low", -float("inf")), ("low", "low"), ("low", None),
    ],
)  # fmt: skip
def test_bad_input_is_named(argument, value):
    with pytest.raises(ValueError, match=f"^{argument}="):
        Partition(**({"low": 0.0, "width": 1.0, "bins": 10} | {argument: value}))
