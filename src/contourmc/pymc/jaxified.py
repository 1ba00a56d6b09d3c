"""Graphs of PyMC as functions for JAX, without what PyMC does to JAX's settings on the way."""

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def jaxified(inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[..., tuple[Array, ...]]:
    """The outputs of a graph as a function of its inputs, in the precision that JAX has."""
    computed = _compiler()(inputs=[*inputs], outputs=[*outputs])

    def compute(*values: Any) -> tuple[Array, ...]:
        with warnings.catch_warnings():
            # The graph asks for float64, and is content with what JAX gives it.
            warnings.filterwarnings("ignore", message="Explicitly requested dtype")
            found = computed(*values)
        return tuple(map(jnp.asarray, found))  # an input that is an output comes back as it was

    return compute


def _compiler() -> Callable[..., Any]:
    """PyMC's own. Its import would turn on float64, and set a flag for 100 devices; both stay as they were."""
    jax.devices()  # JAX reads the user's flags when it starts: this must be before PyMC puts its own in their place
    with ThreadPoolExecutor(1) as thread:  # in which settings are those of the process, also within `jax.enable_x64`
        return thread.submit(_import_compiler).result()


def _import_compiler() -> Callable[..., Any]:
    flags, double = os.environ.get("XLA_FLAGS"), jax.config.read("jax_enable_x64")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pymc.sampling.jax import get_jaxified_graph  # pyright: ignore[reportMissingImports]
    finally:
        if flags is None:
            os.environ.pop("XLA_FLAGS", None)
        else:
            os.environ["XLA_FLAGS"] = flags
        jax.config.update("jax_enable_x64", double)
    return get_jaxified_graph
