"""Every annotation of the package is checked while the tests run, and what they compile is kept for the next time."""

import os
from pathlib import Path

# Before JAX is imported. Most of the time goes into the compiler, and hardly any into what it compiles.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")

import jax
import pytest
from jaxtyping import config, install_import_hook

# Before the package is first imported. An int where a float is asked for is fine, as PEP 484 says.
install_import_hook("contourmc", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

# A second run of the tests needs about a third of the time; remove the folder to start afresh.
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent / ".compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture
def untyped():
    """No type checks: for tests of what somebody without them reads after passing a wrong type."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def double_precision():
    """Everything in float64."""
    with jax.enable_x64(True):
        yield
