"""What the tests of all doors share."""

import contextlib

import jax
import pytest

with contextlib.suppress(ImportError):
    import torch

    torch.set_num_threads(1)  # tests run side by side, and PyTorch's threads would wait for one another


@pytest.fixture
def double_precision():
    """Everything in float64."""
    with jax.enable_x64(True):
        yield
