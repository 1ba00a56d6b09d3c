"""Compiling programs, and finding them again.

The compiler takes longer than many a run. On a CPU, half of its time goes into optimisations that make short programs
hardly faster: programs that will not run for long are compiled without them.
"""

import logging
import os
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from contourmc._core.mesh import chosen_device

Result = TypeVar("Result")
_LOG = logging.getLogger(__name__)

# `full`: for long runs.  `short`: for others.  `kernel`: for a program with a single kernel (`cpu_single_kernel.py`),
# without the passes that only prepare other kernels, for the same result.
Effort = Literal["full", "short", "kernel"]
_NO_EMITTERS = {"xla_cpu_use_fusion_emitters": False}
_CPU_OPTIONS: dict[Effort, tuple[dict[str, Any], ...]] = {
    "full": (),
    "short": ({"xla_backend_optimization_level": 1} | _NO_EMITTERS,),
    "kernel": (_NO_EMITTERS,),
}


class _Fork:
    """late: whether this process was forked from one in which JAX was in use, with threads that are not in this one."""

    late = coming = False

    def before(self) -> None:
        try:
            # JAX has no public name for it, and asking for a backend would start one.
            from jax._src.xla_bridge import backends_are_initialized
        except ImportError:  # another version of JAX: then it waits for ever, as it would without this
            return
        self.coming = backends_are_initialized()

    def after_in_child(self) -> None:
        self.late = self.late or self.coming


_fork = _Fork()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_fork.before, after_in_child=_fork.after_in_child)


def require_no_late_fork() -> None:
    """Raise where JAX would wait for ever."""
    if _fork.late:
        remedy = 'start it by multiprocessing.get_context("spawn"), or fork before anything uses JAX'
        raise RuntimeError(f"JAX cannot be used in this process, which was forked from one that had used it: {remedy}")


def compile_for(function: Any, effort: Effort, *arguments: Any, **static: Any) -> Callable[..., Any] | None:
    """A function compiled for such arguments, here and now, or taken from an earlier call with equal ones.

    Only shapes and types of the arguments matter, and how they lie on a mesh of devices. None if the compiler refuses
    to make a single kernel. The program may be called from other threads, which do not share this one's JAX
    configuration.
    """
    require_no_late_fork()
    leaves, structure = jax.tree.flatten(arguments)
    types = tuple((jax.typeof(leaf), _on_mesh(leaf)) for leaf in leaves)
    return _compile(function, effort, structure, types, tuple(static.items()), chosen_device())


def _on_mesh(leaf: Any) -> NamedSharding | None:
    sharding = getattr(leaf, "sharding", None)
    return sharding if isinstance(sharding, NamedSharding) else None


@lru_cache(maxsize=16)
def _compile(
    function: Any, effort: Effort, structure: Any, types: tuple[Any, ...], static: tuple[Any, ...], device: Any
) -> Any:
    leaves = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding) for leaf, sharding in types]

    # A new function: JAX keeps what it compiled as long as the function lives, and after hundreds of programs the
    # system has no more room for them.
    @wraps(function)
    def anew(*given: Any) -> Any:
        return function(*given, **dict(static))

    lowered = jax.jit(anew).lower(*structure.unflatten(leaves))
    for options in _CPU_OPTIONS[effort] if jax.default_backend() == "cpu" else ():
        try:
            return lowered.compile(compiler_options=options)
        except jax.errors.JaxRuntimeError as error:  # a newer compiler may not know an option
            _LOG.debug("the compiler refuses %s: %s", options, error)
    try:
        return lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        if effort != "kernel":
            raise
        _LOG.debug("the compiler refuses a single kernel: %s", error)
        return None


def call_compiled(function: Callable[..., Result], *arguments: Any, **static: Any) -> Result:
    """Call a function of arrays that is compiled quickly, and once for arguments of the same shapes and types."""
    return compiled_call(function, *arguments, **static)()


def compiled_call(function: Callable[..., Result], *arguments: Any, **static: Any) -> Callable[[], Result]:
    """`call_compiled`, all but the call, which any thread may make."""
    arguments = jax.tree.map(jnp.asarray, arguments)
    program = compile_for(function, "short", *arguments, **static)
    assert program is not None
    return lambda: program(*arguments)
