"""All cases, the right ones first."""

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

import contourmc as cm
from benchmarks.trust.case import Case, Kind, expected
from contourmc.problems import Problem, gallery

PARTITION = cm.Partition(low=1.5, width=1.0, bins=30)  # of the mixture


def gaussian(x: Array) -> Array:
    return jnp.sum(x**2) / 2


def mixture(x: Array) -> Array:
    return -jnp.logaddexp(jnp.log(0.4) - (x + 6) ** 2 / 2, jnp.log(0.6) - (x - 4) ** 2 / 2)


def truncated(x: Array) -> Array:
    return jnp.where(x > 0, x**2 / 2, jnp.inf)


def box(x: Array) -> Array:
    return jnp.where(jnp.all(jnp.abs(x) < 1), 0.0, jnp.inf) + 0.0 * jnp.sum(x)


def funnel(x: Array) -> Array:
    return x[0] ** 2 / 18 + 9 * x[0] / 2 + jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) / 2


def narrow_mode(x: Array) -> Array:
    """Half of the mass has a standard deviation of 0.3, in ten dimensions, six away."""
    away = jnp.sum((x - 6 / 10**0.5) ** 2) / (2 * 0.3**2)
    return -jnp.logaddexp(-jnp.sum(x**2) / 2, -away - 10 * jnp.log(0.3))


def narrow_hole(x: Array) -> Array:
    """A Gaussian beside a hole in which no ordinary step is accepted."""
    return jnp.minimum(jnp.sum(x**2) / 2, 1e8 * jnp.sum((x - 8.0) ** 2) - 3)


def banana(x: Array) -> Array:
    return x[0] ** 2 / 2 + (x[1] - x[0] ** 2) ** 2 / 0.5


def student(x: Array) -> Array:
    return 2.5 * jnp.log1p(x**2 / 4)


def normal_posterior(batch_size: int) -> cm.Posterior:
    data = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    data = (data - data.mean()) / data.std()
    return cm.Posterior(lambda x, batch: -((batch - x) ** 2) / 2, lambda x: 0.0 * x, data, batch_size=batch_size)


def sampled(
    target: Any, kernel: cm.Kernel | None, init: Any = 0.0, steps: int = 100_000, chains: int = 4, **more: Any
) -> Callable[[], cm.Samples]:
    return lambda: cm.sample(target, init=init, steps=steps, kernel=kernel, chains=chains, **more)


def second_moment(
    name: str, kind: Kind, target: Any, kernel: cm.Kernel | None, truth: float = 1.0, **more: Any
) -> Case:
    return Case(name, kind, sampled(target, kernel, **more), "E x²", expected(lambda x: jnp.mean(x**2)), truth)


def right_mode(name: str, kind: Kind, kernel: cm.Kernel | None, target: Any = mixture, **more: Any) -> Case:
    more = {"init": -6.0, "steps": 400_000} | more
    return Case(name, kind, sampled(target, kernel, **more), "mass right", expected(lambda x: x > -1), 0.6, True)


def problem_case(problem: Problem, kind: Kind, **more: Any) -> Case:
    run = sampled(problem.energy, None, problem.start, **({"steps": 300_000, "chains": 8} | more))
    measure: Callable[[Any], tuple[float, float]] = lambda samples: (problem.distance(samples), 0.0)  # noqa: E731
    return Case(f"{problem.name}, automatic", kind, run, "mode masses, TV", measure, 0.0, True)


def right() -> Iterator[Case]:
    for problem in gallery().values():
        yield problem_case(problem, "right", steps=1_000_000 if problem.dimension == 100 else 300_000)
    auto: dict[str, Any] = dict(chains=8)
    yield second_moment("Gaussian 1-D, automatic", "right", gaussian, None, **auto)
    yield second_moment("Gaussian 30-D, automatic", "right", gaussian, None, init=jnp.zeros(30), **auto)
    yield second_moment("truncated Gaussian, automatic", "right", truncated, None, init=1.0, **auto)
    yield second_moment("uniform in a box, automatic", "right", box, None, 1 / 3, init=jnp.zeros(2), **auto)
    yield second_moment("start 10,000 σ away, automatic", "right", gaussian, None, init=jnp.full(2, 1e4), **auto)
    tails: dict[str, Any] = dict(chains=8, steps=2_000_000)  # far out, a walk in energy takes long
    yield second_moment("Student t with 4 degrees, automatic", "right", student, None, 2.0, **tails)
    yield second_moment("x² in units of 10⁻⁶, automatic", "right", lambda x: x**2 * 5e11, None, 1e-12, **auto)
    where = expected(lambda x: x[1])
    run = sampled(banana, None, jnp.zeros(2), **auto)
    yield Case("banana, automatic", "right", run, "E x₂", where, 1.0)
    yield second_moment("Gaussian, adjusted(0.5)", "right", gaussian, cm.adjusted(0.5))
    yield second_moment("Gaussian, langevin(0.2)", "right", gaussian, cm.langevin(0.2))
    yield second_moment("Gaussian, sgld(0.002)", "right", gaussian, cm.sgld(0.002), steps=400_000)
    yield second_moment("Gaussian, sghmc(0.001)", "right", gaussian, cm.sghmc(0.001), steps=400_000)
    yield right_mode("mixture, csgld(0.1)", "right", cm.csgld(0.1, PARTITION), steps=2_000_000, chains=8)
    kernel = cm.contour(cm.adjusted(0.5), PARTITION)
    yield right_mode("mixture, contour(adjusted(0.5))", "right", kernel, steps=2_000_000, chains=8)
    kernel = cm.replica_exchange(cm.langevin(0.1), cm.langevin(0.1, 5.0), cm.langevin(0.1, 25.0))
    yield right_mode("mixture, three replicas", "right", kernel, steps=1_000_000)
    small = cm.sgld(1e-5)
    yield second_moment("posterior, batch 100, sgld(10⁻⁵)", "right", normal_posterior(100), small, 1e-3, steps=400_000)


def wrong() -> Iterator[Case]:
    yield second_moment("Gaussian, sgld(1.5)", "wrong", gaussian, cm.sgld(1.5))
    yield second_moment("Gaussian, sghmc(2)", "wrong", gaussian, cm.sghmc(2.0))
    yield second_moment("Gaussian, sgd(0.1)", "wrong", gaussian, cm.sgd(0.1))
    noisy = cm.NoisyEnergy(gaussian, gradient_variance=9.0)
    yield second_moment("noise of variance 9, sgld(0.5)", "wrong", noisy, cm.sgld(0.5))
    yield second_moment("noise of variance 9, automatic at 0.5", "wrong", noisy, None, step_size=0.5)
    large = cm.sgld(5e-4)
    yield second_moment("posterior, batch 10, sgld(5·10⁻⁴)", "wrong", normal_posterior(10), large, 1e-3)
    yield second_moment("posterior on mini-batches, automatic", "wrong", normal_posterior(10), None, 1e-3)
    yield second_moment("energy 10⁸ + x²/2, adjusted", "wrong", lambda x: 1e8 + x**2 / 2, cm.adjusted(0.5))
    yield second_moment("energy 10⁸ + x²/2, automatic", "wrong", lambda x: 1e8 + x**2 / 2, None)
    run = sampled(gaussian, cm.sgld(0.01), 20.0, 500)
    yield Case("500 steps from 20 away", "wrong", run, "E x", expected(lambda x: x), 0.0)
    yield right_mode("mixture, csgld at 15 times the step", "wrong", cm.csgld(1.5, PARTITION))
    yield right_mode("partition far above", "wrong", cm.csgld(0.1, cm.Partition(40.0, 1.0, 30)))
    yield right_mode("partition far below", "wrong", cm.csgld(0.1, cm.Partition(-40.0, 1.0, 30)))
    yield right_mode("bins of 0.02", "wrong", cm.csgld(0.1, cm.Partition(1.5, 0.02, 1500)), steps=50_000)
    yield right_mode("ζ = 10⁶", "wrong", cm.csgld(0.1, PARTITION, zeta=1e6, rule="scalable"), steps=50_000)
    yield right_mode("θ learnt too slowly", "wrong", cm.csgld(0.1, PARTITION, omega=1e-4), steps=20_000)
    apart = np.array([-6.0, -6.0, 4.0, -6.0])
    yield right_mode("sgld, chains apart", "wrong", cm.sgld(0.1), init=apart, per_chain_init=True)
    yield right_mode("2,000 steps, automatic", "wrong", None, steps=2000)
    starts = np.zeros((4, 2), np.float32)
    starts[2] = 8.0
    frozen: dict[str, Any] = dict(init=starts, per_chain_init=True)
    yield second_moment("a chain in a narrow hole, adjusted", "wrong", narrow_hole, cm.adjusted(0.5), **frozen)
    deep = sampled(funnel, None, jnp.zeros(10), chains=8)
    yield Case("funnel 10-D, automatic", "wrong", deep, "E x₁", expected(lambda x: x[0]), 0.0)
    quick = cm.csghmc(1.0, PARTITION)
    yield right_mode("mixture, csghmc at 100 times the step", "wrong", quick)
    linear = sampled(lambda x: jnp.sum(x), None, jnp.zeros(2))
    yield Case("energy without a lowest value", "wrong", linear, "E x", expected(lambda x: x[0]), float("nan"))


def unseen() -> Iterator[Case]:
    yield right_mode("sgld from one mode", "unseen", cm.sgld(0.1))
    half = expected(lambda x: jnp.sum(x) > 3 * 10**0.5)
    run = sampled(narrow_mode, None, jnp.zeros(10), chains=8)
    yield Case("a narrow mode of half the mass, automatic", "unseen", run, "mass narrow", half, 0.5, True)
    problem = gallery()["mixture-50d-unequal"]
    run = sampled(problem.energy, None, -problem.start, chains=8)
    masses: Callable[[Any], tuple[float, float]] = lambda samples: (problem.distance(samples), 0.0)  # noqa: E731
    yield Case(f"{problem.name} from its wide mode, automatic", "unseen", run, "mode masses, TV", masses, 0.0, True)


def all_cases() -> list[Case]:
    return [*right(), *wrong(), *unseen()]
