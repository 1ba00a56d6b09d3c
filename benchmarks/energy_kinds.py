"""Kinds of energy that people write: the smallest example of each, for `python -m benchmarks.energies` and a test."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special
from jaxtyping import Array


@dataclass(frozen=True)
class Kind:
    """An energy, and how to sample it for a few steps.

    init: where the chains start.
    step_size: of SGLD; so small that chains with slightly different numbers do not move apart.
    tolerance: how far two ways to compute the same may be apart, relative to the largest number. Rounding to float32
        costs 6e-8 an operation; over 60 steps, and in a sum of 10⁵ terms in another order, a few hundred times that.
    x64: whether it needs 64-bit numbers.
    """

    energy: Callable[[Any], Array]
    init: Any
    step_size: float = 1e-2
    tolerance: float = 2e-5
    x64: bool = False


class Pair(NamedTuple):
    left: Any
    right: Any


RANDOM = np.random.default_rng(0)


def _normal(*shape: int) -> Array:
    return jnp.asarray(RANDOM.normal(size=shape), jnp.float32)


MATRIX, SMALL, CENTRES, TENSOR = _normal(10, 10) / 3, _normal(4, 4), _normal(2, 10), _normal(3, 4, 4)
PRECISION, START = MATRIX @ MATRIX.T + jnp.eye(10), _normal(10)
INPUTS, TARGETS, MANY, LONG = _normal(50, 3), _normal(50), _normal(4096), _normal(100_000)
ROWS, LABELS = _normal(10_000, 5), jnp.asarray(RANDOM.integers(0, 2, 10_000), jnp.float32)
NUMPY, INDEX, GROUPS = RANDOM.normal(size=10), np.array([3, 1, 1, 7, 9]), np.array([0, 0, 1, 1, 2, 2, 0, 1, 2, 0])
KNOTS, HEIGHTS = jnp.linspace(-3.0, 3.0, 13), _normal(13)
PHASES, KEY = jnp.exp(1j * START), jax.random.key(8)
LAYERS = {"first": jnp.full((3, 8), 0.1), "bias": jnp.zeros(8), "second": jnp.full(8, 0.1)}


def _half(x: Array) -> Array:
    return jnp.sum(x**2) / 2


def _mixture(x: Array) -> Array:
    return -jax.nn.logsumexp(-0.5 * (((x - CENTRES) @ MATRIX) ** 2).sum(-1))


def _network(params: Any) -> Array:
    hidden = jnp.tanh(INPUTS @ params["first"] + params["bias"])
    return jnp.sum((hidden @ params["second"] - TARGETS) ** 2) + sum(map(_half, jax.tree.leaves(params)))


def _logistic(rows: Array, labels: Array) -> Callable[[Array], Array]:
    def energy(weights: Array) -> Array:
        logits = rows @ weights
        return jnp.sum(jnp.logaddexp(0.0, logits) - labels * logits) + _half(weights)

    return energy


def _covariance(x: Array) -> Array:
    return jnp.eye(4) + jnp.outer(x, x)


def _cholesky(x: Array) -> Array:
    factor = jnp.linalg.cholesky(_covariance(x))
    return _half(jax.scipy.linalg.solve_triangular(factor, 1 + x, lower=True)) + jnp.sum(jnp.log(jnp.diagonal(factor)))


def _scan(x: Array) -> Array:
    """An autoregression."""
    last, errors = jax.lax.scan(lambda before, now: (0.9 * before + 0.1 * now, (now - before) ** 2), 0.0, x)
    return jnp.sum(errors) + last**2


def _while(x: Array) -> Array:
    """The number of halvings, which has no derivative, is the precision."""
    start = jax.lax.stop_gradient(jnp.sum(x**2)) + 10
    count, _ = jax.lax.while_loop(lambda c: c[1] > 1, lambda c: (c[0] + 1, c[1] / 2), (0, start))
    return _half(x) * count


@jax.custom_jvp
def _with_jvp(x: Array) -> Array:
    return jnp.log1p(jnp.exp(x))


@_with_jvp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return _with_jvp(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]


@jax.custom_vjp
def _with_vjp(x: Array) -> Array:
    return jnp.sqrt(1 + x**2)


_with_vjp.defvjp(lambda x: (_with_vjp(x), x), lambda x, g: (g * x / jnp.sqrt(1 + x**2),))


@jax.custom_jvp
def _on_the_host(x: Array) -> Array:
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(lambda x: np.asarray(x) ** 2, shape, x, vmap_method="broadcast_all")


@_on_the_host.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return _on_the_host(primals[0]), 2 * primals[0] * tangents[0]


def _dropout(key: Array, x: Array) -> Array:
    return _half(jnp.where(jax.random.bernoulli(key, 0.5, (5, 10)), x, 0.0)) + _half(x)


def _bfloat16(x: Array) -> Array:
    return jnp.sum((SMALL.astype(jnp.bfloat16) @ x.astype(jnp.bfloat16)) ** 2).astype(jnp.float32) + _half(x)


KINDS: dict[str, Kind] = {
    "a single number": Kind(lambda x: (x**2 - 1) ** 2, 0.5),
    "nested containers": Kind(
        lambda p: _half(p["pair"].left) + (p["pair"].right[0] - 1) ** 2 + jnp.sum(jnp.cos(p["list"][0])),
        {"pair": Pair(jnp.ones((2, 3)), (jnp.float32(0.3),)), "list": [jnp.zeros(2)]},
    ),
    "matrix times vector": Kind(lambda x: _half(MATRIX @ x) + _half(x), START),
    "matrix times matrix": Kind(lambda x: jnp.sum((x @ x.T @ SMALL - jnp.eye(4)) ** 2), SMALL / 3, 1e-3),
    "a quadratic form": Kind(lambda x: x @ PRECISION @ x / 2, START),
    "a chain of products": Kind(lambda x: x @ MATRIX @ MATRIX.T @ x + _half(x), START),
    "einsum over three": Kind(lambda x: jnp.einsum("i,ij,j->", x, PRECISION, x), START),
    "a batch of products": Kind(lambda x: _half(jnp.einsum("bij,bj->bi", TENSOR, x)) + _half(x), _normal(3, 4)),
    "a small network": Kind(_network, LAYERS, 1e-3),
    "a mixture with a metric": Kind(_mixture, START),
    "logistic regression on 50 rows": Kind(_logistic(ROWS[:50], LABELS[:50]), jnp.zeros(5)),
    "logistic regression on 10,000 rows": Kind(_logistic(ROWS, LABELS), jnp.zeros(5), 1e-5, 1e-4),
    "a convolution": Kind(lambda x: _half(jnp.convolve(x, HEIGHTS[:3], mode="same")) + _half(x), START),
    "a sum over 4,096 data": Kind(lambda x: _half(MANY - x), 0.1, 1e-4, 1e-4),
    "a sum over 100,000 data": Kind(lambda x: _half(LONG - x), 0.1, 1e-6, 1e-4),
    "a sum over 10,000 rows": Kind(lambda x: _half(LONG.reshape(-1, 10) - x), START, 1e-5, 1e-4),
    "sums of 4,500 numbers in columns": Kind(lambda x: jnp.sum(jnp.sqrt(jnp.sum((ROWS[:900] - x) ** 2, 0))), START[:5]),
    "5,000 dimensions": Kind(_half, jnp.ones(5000), tolerance=1e-4),
    "10,000 dimensions": Kind(lambda x: jnp.sum(jnp.cosh(x)), jnp.ones(10_000), tolerance=1e-4),
    "20,000 dimensions in two arrays": Kind(
        lambda p: _half(p[0]) + _half(p[1]), (jnp.ones((100, 100)),) * 2, tolerance=1e-4
    ),
    "logsumexp": Kind(lambda x: jax.nn.logsumexp(x) + _half(x), START),
    "a cumulative sum": Kind(lambda x: _half(jnp.cumsum(x)), START, 1e-3),
    "a cumulative product": Kind(lambda x: _half(jnp.cumprod(1 + x / 10)) + _half(x), START),
    "a product of all": Kind(lambda x: jnp.prod(1 + x**2) / 100 + _half(x), START / 2, 1e-3),
    "a variance": Kind(lambda x: jnp.var(x) + jnp.std(x) + jnp.mean(x) ** 2, START),
    "a Cholesky factor": Kind(_cholesky, _normal(4)),
    "eigenvalues": Kind(
        lambda x: jnp.sum(jnp.linalg.eigvalsh(_covariance(x) + jnp.diag(jnp.arange(4.0))) ** 2), _normal(4), 1e-3
    ),
    "a linear system": Kind(lambda x: x @ jnp.linalg.solve(_covariance(x), 1 + x) + _half(x), _normal(4)),
    "a determinant": Kind(lambda x: jnp.linalg.slogdet(_covariance(x))[1] + _half(x), _normal(4)),
    "an inverse": Kind(lambda x: x @ jnp.linalg.inv(PRECISION + jnp.diag(x**2)) @ x + _half(x), START),
    "singular values": Kind(lambda x: jnp.sum(jnp.linalg.svd(x, compute_uv=False)) + _half(x), SMALL),
    "a QR factor": Kind(lambda x: _half(jnp.linalg.qr(x + 3 * jnp.eye(4))[1]), SMALL),
    "a matrix exponential": Kind(lambda x: jnp.trace(jax.scipy.linalg.expm(x @ x.T / 10)) + _half(x), SMALL),
    "a Fourier transform": Kind(lambda x: _half(jnp.abs(jnp.fft.rfft(x))), START),
    "a sort": Kind(lambda x: jnp.sum(jnp.sort(x) ** 2 * jnp.arange(1, 11)), START),
    "the largest three": Kind(lambda x: _half(jax.lax.top_k(x, 3)[0]) + _half(x), START),
    "a median": Kind(lambda x: jnp.median(x) ** 2 + _half(x), START),
    "maximum and minimum": Kind(lambda x: jnp.max(x) ** 2 + jnp.min(x) ** 2 + _half(x), START),
    "repeated numbers": Kind(lambda x: _half(jnp.tile(x, 3) - MANY[:30]) + _half(jnp.repeat(x, 2)), START),
    "a gather": Kind(lambda x: _half(x[INDEX]) + _half(x), START),
    "a scatter": Kind(lambda x: _half(jnp.zeros(10).at[INDEX].add(x[:5])) + _half(x), START),
    "sums of groups": Kind(lambda x: _half(jax.ops.segment_sum(x, GROUPS, 3)) + _half(x), START),
    "an interpolation": Kind(lambda x: jnp.sum(jnp.interp(x, KNOTS, HEIGHTS)) + _half(x), START),
    "pieces where others are not finite": Kind(
        lambda x: jnp.sum(jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0) + 1), x**2)) + _half(x), START
    ),
    "rounding and clipping": Kind(lambda x: jnp.sum(jnp.floor(x) * x + jnp.clip(x, -1, 1)) + _half(x), START),
    "scan": Kind(_scan, START),
    "while_loop": Kind(_while, START),
    "fori_loop": Kind(
        lambda x: _half(jax.lax.fori_loop(0, 5, lambda i, x: jnp.sin(x) + 0.1 * i * x, x)) + _half(x), START
    ),
    "cond": Kind(lambda x: jax.lax.cond(x[0] > 0, lambda x: jnp.sum(x), lambda x: -jnp.sum(x), x) + _half(x), START),
    "switch": Kind(lambda x: jax.lax.switch(jnp.int32(x[0] > 0), [jnp.sum, jnp.max], x) + _half(x), START),
    "vmap inside": Kind(lambda x: jnp.sum(jax.vmap(lambda c: jnp.tanh(c @ x))(CENTRES)) + _half(x), START),
    "map inside": Kind(lambda x: jnp.sum(jax.lax.map(lambda c: jnp.tanh(c @ x), CENTRES)) + _half(x), START),
    "jit inside": Kind(lambda x: jax.jit(_half)(x) + jax.jit(_mixture)(x), START),
    "an associative scan": Kind(lambda x: _half(jax.lax.associative_scan(jnp.add, x)), START, 1e-3),
    "a gradient inside": Kind(lambda x: _half(jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(x)) + _half(x), START),
    "a Hessian inside": Kind(lambda x: jnp.trace(jax.hessian(lambda x: jnp.sum(x**4))(x)) + _half(x), START),
    "checkpoint": Kind(lambda x: jax.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x))))(x) + _half(x), START),
    "custom_jvp": Kind(lambda x: jnp.sum(_with_jvp(x)) + _half(x), START),
    "custom_vjp": Kind(lambda x: jnp.sum(_with_vjp(x)) + _half(x), START),
    "the logarithm of Γ": Kind(lambda x: jnp.sum(special.gammaln(1 + x**2)) + _half(x), START),
    "Bessel and error functions": Kind(
        lambda x: jnp.sum(special.i0e(x) + special.erf(x) - special.log_ndtr(x)) + _half(x), START
    ),
    "incomplete Γ": Kind(lambda x: jnp.sum(special.gammainc(2.0, 1 + x**2)) + _half(x), START),
    "angles": Kind(lambda x: jnp.sum(jnp.arctan2(x, 1 + x) + jnp.mod(x, 1.0)) + _half(x), START),
    "random numbers with a fixed key": Kind(lambda x: _dropout(jax.random.key(7), x), START),
    "random numbers with a captured key": Kind(lambda x: _dropout(KEY, x), START),
    "a function on the host": Kind(lambda x: jnp.sum(_on_the_host(x)), START),
    "NumPy's constants": Kind(lambda x: jnp.sum((x - NUMPY) ** 2) * float(NUMPY[0]) ** 2 + _half(x), START),
    "complex numbers inside": Kind(lambda x: jnp.sum(jnp.abs(jnp.exp(1j * x) - x) ** 2), START),
    "complex constants": Kind(lambda x: jnp.sum(jnp.abs(PHASES) * x**2), START),
    "bfloat16 inside": Kind(_bfloat16, START[:4], tolerance=2e-2),
    "64-bit floats": Kind(lambda x: _half(x - NUMPY[:4]), np.zeros(4), tolerance=1e-12, x64=True),
    "64-bit floats in products": Kind(
        lambda x: x @ jnp.asarray(np.outer(NUMPY, NUMPY)) @ x + _half(x), np.zeros(10), tolerance=1e-12, x64=True
    ),
}
