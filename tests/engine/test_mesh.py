"""Which devices a run uses, and what processes must tell. With several of both: test_layouts.py."""

import jax
import pytest

import contourmc as cm
from contourmc._core import mesh


@pytest.fixture
def eight_devices(monkeypatch):
    """As if the one device here were eight."""
    monkeypatch.setattr(jax, "local_device_count", lambda: 8)
    monkeypatch.setattr(jax, "devices", lambda: [jax.local_devices()[0]] * 8)


@pytest.mark.parametrize(
    ("chains", "parts", "shape"),
    [(8, 1, (8, 1)), (12, 1, (6, 1)), (10, 1, (5, 1)), (3, 1, (3, 1)), (4, 2, (4, 2)), (4, 4, (2, 4)), (4, 3, (4, 1))],
)
def test_every_device_gets_equally_many_chains(eight_devices, chains, parts, shape):
    """And as many devices as possible are used; three parts cannot be dealt to eight devices."""
    made = mesh.make_mesh(chains, parts)
    assert made.axis_names == (mesh.DEVICES, mesh.DATA)
    assert made.devices.shape == shape


def test_one_chain_or_one_device_needs_no_mesh(eight_devices, monkeypatch):
    assert mesh.make_mesh(1) is None
    with jax.default_device(jax.local_devices()[0]):
        assert mesh.make_mesh(8) is None
    assert mesh.make_mesh(8, calls_host=True) is None
    monkeypatch.setattr(jax, "local_device_count", lambda: 1)
    assert mesh.make_mesh(8) is None


def test_processes_need_equally_many_chains(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    with pytest.raises(ValueError, match="chains=4 is not possible: each of the 3 processes"):
        mesh.make_mesh(4)


def test_a_program_of_another_device_is_another_program():
    """`jax.default_device` is part of what a program is compiled for."""
    from contourmc._core import compiling

    before = compiling._compile.cache_info().misses
    with jax.default_device(jax.local_devices()[0]):
        compiling.call_compiled(_doubled, 1.0)
        compiling.call_compiled(_doubled, 2.0)
    compiling.call_compiled(_doubled, 3.0)
    assert compiling._compile.cache_info().misses == before + 2


def _doubled(x):
    return 2 * x


def test_distributed_wants_all_or_nothing():
    with pytest.raises(ValueError, match="give coordinator_address, num_processes and process_id, or none of them"):
        cm.distributed(num_processes=2)


def test_distributed_must_come_first():
    jax.devices()
    with pytest.raises(RuntimeError, match="call it once, before anything else that uses JAX"):
        cm.distributed("127.0.0.1:1", 2, 0)
