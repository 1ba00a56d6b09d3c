"""One kernel for a whole loop on a CPU.

XLA on a CPU runs each operation that it cannot fuse as a separate kernel, at 0.05–0.3 µs a call; a step in one
dimension takes two dozen of them for 0.1 µs of work. Its compiler can also emit a whole call, loops and all, as a
single kernel, and does so unasked for loops over less than 1 KiB. `fused` asks for this with the attributes that the
compiler's own pass sets. A compiler that does not know them ignores them: the results are the same, only slower. The
single kernel supports fewer operations and runs on one core; `can_fuse` says whether it supports the operations of a
step and is faster.
"""

import os
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

_ELEMENTWISE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp convert_element_type copy cos cosh
digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt integer_pow is_finite le lgamma log log1p log2 logistic
lt max min mul ne neg nextafter not one_minus_square or polynomial pow reciprocal rem round rsqrt select_n shift_left
shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor
"""
_SHAPES = """
argmax argmin broadcast_in_dim concatenate dynamic_slice dynamic_update_slice expand_dims iota pad reduce_and
reduce_max reduce_min reduce_or reduce_prod reduce_sum reshape rev slice split squeeze stack tile transpose unstack
"""
_CONTROL = """
checkpoint closed_call cond core_call custom_jvp_call custom_vjp_call eval_jaxpr jit pjit remat remat2 scan while
"""
_KNOWN = frozenset((_ELEMENTWISE + _SHAPES + _CONTROL).split())
# A larger product is faster in XLA's own routines, which use all cores.
_MOST_MULTIPLICATIONS = 20_000
_LONG_SUM = 4096


def can_fuse(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a loop over this function can be one kernel, and is faster for it.

    False if the environment variable CONTOURMC_FUSE is 0.
    """
    if jax.default_backend() != "cpu" or os.environ.get("CONTOURMC_FUSE") == "0":
        return False
    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    return _real([*jaxpr.constvars, *jaxpr.invars]) and all(_fusible(equation) for equation in _equations(jaxpr))


def has_convolutions(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a function of arrays like these computes convolutions."""
    equations = _equations(jax.make_jaxpr(function)(*arguments).jaxpr)
    return any(equation.primitive.name == "conv_general_dilated" for equation in equations)


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, as a single kernel of the program that calls it."""

    def probed(*arguments: Any) -> Any:
        # The compiler aborts on a single kernel with an argument that nothing reads, so all are read.
        probe = sum(jnp.ravel(leaf)[0].astype(jnp.float32) for leaf in jax.tree.leaves(arguments) if leaf.size)
        return function(*arguments), probe

    compiled = jax.jit(probed)

    def call(*arguments: Any) -> Any:
        # Tagging the results tags the call that makes them, and nothing inside it.
        tags: dict[str, Any] = {"inlineable": "false", "xla_cpu_small_call": "true"}
        results, _ = jax.tree.map(lambda leaf: set_xla_metadata(leaf, **tags), compiled(*arguments))
        return results

    return call


def _equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a program, including those of its inner programs."""
    # Not above: it slows down `import contourmc`.
    from jax.extend.core import ClosedJaxpr, Jaxpr  # pyright: ignore[reportPrivateImportUsage]

    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(list(equation.params.values())):
            inner = value.jaxpr if isinstance(value, ClosedJaxpr) else value
            if isinstance(inner, Jaxpr):
                yield from _equations(inner)


def _fusible(equation: Any) -> bool:
    """Whether an operation works in a single kernel, and is not faster outside of it.

    Of products those with a vector do; sums over 4,096 numbers or more are divided into parts, which it cannot hold.
    """
    name = equation.primitive.name
    if not _real(equation.outvars):
        return False
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        factors = [operand.aval for operand in equation.invars]
        sums = prod(factors[0].shape[axis] for axis in contracted)
        vector = any(factor.ndim <= 1 for factor in factors)
        return vector and sums < _LONG_SUM and equation.outvars[0].aval.size * sums <= _MOST_MULTIPLICATIONS
    if name.startswith(("reduce_", "arg")):
        return name in _KNOWN and equation.invars[0].aval.size < _LONG_SUM
    return name in _KNOWN


def _real(variables: list[Any]) -> bool:
    """Whether all are made of real numbers or truth values: a single kernel has no complex numbers or random keys."""
    kinds = jnp.bool_, jnp.integer, jnp.floating
    return all(any(jnp.issubdtype(variable.aval.dtype, kind) for kind in kinds) for variable in variables)
