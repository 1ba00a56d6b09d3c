"""The examples run as they stand, and do what they say."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_a_network_of_ones_own(capsys):
    """The noise has standard deviation 0.1, the curve 0.7: the test error must come near the former."""
    run = runpy.run_path(str(EXAMPLES / "network.py"))["run"]
    assert run.average.rmse < 0.15
    assert run.average.nll < -0.5
    assert 0.8 < run.average.coverage(0.9) <= 1
    assert "equally weighted" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["flax_linen", "flax_nnx", "equinox_module"])
def test_a_network_of_any_framework(name):
    """It learns "the same sign", which no linear model can tell, to 90% of the test set."""
    pytest.importorskip(name.split("_")[0])
    run = runpy.run_path(str(EXAMPLES / f"{name}.py"))["run"]
    assert run.average.accuracy > 0.9
    assert run.average.models >= 100


def test_a_loop_of_optax():
    """A linear model is right on 95% of the digits."""
    pytest.importorskip("sklearn")
    assert runpy.run_path(str(EXAMPLES / "optax_loop.py"))["accuracy"] > 0.96
