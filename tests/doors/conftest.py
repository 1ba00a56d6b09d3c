"""What the tests of all doors share."""

import jax
import pytest


@pytest.fixture
def double_precision():
    """Everything in float64."""
    with jax.enable_x64(True):
        yield
