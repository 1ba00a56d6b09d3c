"""Stochastic approximation Monte Carlo (Liang et al. 2007), which the paper generalises, and naïve contour SGLD.

SAMC moves by a Metropolis random walk on the flattened density with the step function Ψ, which needs exact energies:

    accept y in place of x with probability min(1, π(y) θ(J(x)) / (π(x) θ(J(y)))),
    log θ(i) ← log θ(i) + γ_k (1[i = J(x_k)] − 1/m),      γ_k = k₀ / max(k₀, k),

and weighs each point by θ(J). The same step function with Langevin moves is the paper's naïve contour SGLD.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc.flattening.partition import Partition
from contourmc.kernels.contour import csgld
from contourmc.kernels.schedules import Polynomial
from contourmc.kernels.sgld import sgld
from contourmc.problems import GaussianMixture, NineModes
from contourmc.problems.base import Problem
from contourmc.problems.gaussian_mixture import bin_probabilities
from contourmc.sampling.sample import sample
from contourmc.studies.algorithm import FlatLastBin
from contourmc.studies.algorithm_one import AlgorithmOne, noisy, papers_omega, run
from contourmc.studies.base import (
    Claim,
    Drawing,
    Options,
    Outcome,
    Record,
    complete,
    difference,
    judge,
    over_seeds,
    ratio,
)
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The bins, the step of Langevin moves, ω_k, the deviation of SAMC's proposals, and the variance of the noise that the
# Langevin methods see. Partition and settings are the paper's, as far as it gives them.
EVEN, UNEVEN = GaussianMixture(), GaussianMixture(weights=(1 / 6, 5 / 6))
TARGETS: dict[str, tuple[Problem, Partition, float, Callable[[Array], Array], float, tuple[float, float]]] = {
    "mixture of 0.4 and 0.6": (EVEN, Partition(2.0, 1.0, 50), 0.1, papers_omega, 1.0, (0.01, 0.0)),
    "mixture of 1/6 and 5/6": (UNEVEN, Partition(2.0, 1.0, 50), 0.1, papers_omega, 1.0, (0.01, 0.0)),
    "nine modes": (
        NineModes(), Partition(-6.5, 0.25, 100), 0.001, Polynomial(10.0, 0.8, 100.0, cap=0.003), 0.3, (0.1, 0.1)
    ),
}  # fmt: skip
K0 = 1_000
THIN = 10
SAMC, KNOWN, SGLD, NAIVE, PRINTED, OURS = (
    "SAMC",
    "SAMC, θ known",
    "SGLD",
    "naïve contour SGLD",
    "Algorithm 1, flat last bin",
    "the library's defaults",
)
COLORS = {SAMC: "#009E73", SGLD: "k", NAIVE: "#7f7f7f", PRINTED: "#D55E00", OURS: "#0072B2"}


# --- Measurements ------------------------------------------------------------------------------------


def measure(options: Options, record: Record) -> None:
    """All four methods on the three targets, from one point, with the same number of iterations."""
    steps, chains = options.size.length // THIN * THIN, max(2, options.size.seeds)
    for name, (problem, partition, step_size, omega, width, noise) in TARGETS.items():
        found = record.setdefault("targets", {}).setdefault(name, {})
        start = np.zeros(np.shape(problem.start))
        true = probabilities(problem, partition)
        for method, theta in ((SAMC, None), (KNOWN, true)):
            x, weights, visits, accepted = samc(problem, partition, width, start, steps, chains, theta)
            found[method] = _numbers(problem, x, weights) | {"flatness": flatness(true, visits)}
            found[method]["accepted"] = float(accepted.mean())
        plain = complete(
            sample(
                NoisyEnergy(problem.energy, *noise), init=jnp.asarray(start, jnp.result_type(float)), steps=steps,
                kernel=sgld(step_size), chains=chains, burn_in=0, thin=THIN,
            )
        )  # fmt: skip
        found[SGLD] = _numbers(problem, plain.draws, plain.weights)
        target = noisy(problem.energy, *noise)
        settings: dict[str, Any] = dict(bins=partition.bins, step_size=step_size, omega=omega)
        naive = AlgorithmOne(partition.low, partition.width, scheme="step", zeta=1.0, **settings)
        printed = FlatLastBin(partition.low, partition.width, zeta=0.75, **settings)
        for method, algorithm in ((NAIVE, naive), (PRINTED, printed)):
            path = run(algorithm, target, start, steps=steps, every=THIN, chains=chains, seed=0)
            found[method] = _numbers(problem, path.x, path.weight)
        kernel = csgld(step_size, partition, zeta=0.75, omega=omega)
        samples = complete(
            sample(
                NoisyEnergy(problem.energy, *noise), init=jnp.asarray(start, jnp.result_type(float)), steps=steps,
                kernel=kernel, chains=chains, burn_in=0, thin=THIN,
            )
        )  # fmt: skip
        found[OURS] = _numbers(problem, samples.draws, samples.weights)
    record |= {"steps": steps, "chains": chains}


def samc(
    problem: Problem,
    partition: Partition,
    width: float,
    start: np.ndarray,
    steps: int,
    chains: int,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions and weights of every tenth step, the visits of each bin, and the share of proposals accepted.

    known: θ if it is known; then nothing is learnt.
    """
    with jax.enable_x64(True):
        begin = jnp.asarray(start, jnp.float64)

        def one_step(state: Any, drawn: Any) -> Any:
            x, energy, log_theta, visits, accepted, k = state
            move, log_uniform = drawn
            proposed = x + width * move
            new = problem.energy(proposed)
            here, there = partition.index(energy), partition.index(new)
            accept = log_uniform < energy - new + log_theta[here] - log_theta[there]
            x, energy = jnp.where(accept, proposed, x), jnp.where(accept, new, energy)
            bin_now = jnp.where(accept, there, here)
            gamma = 0.0 if known is not None else K0 / jnp.maximum(K0, k)
            log_theta = (log_theta - gamma / partition.bins).at[bin_now].add(gamma)
            return (x, energy, log_theta, visits.at[bin_now].add(1), accepted + accept, k + 1), None

        def to_mark(state: Any, key: Array) -> Any:
            keys = jax.random.split(key)
            drawn = jax.random.normal(keys[0], (THIN, *begin.shape)), jnp.log(jax.random.uniform(keys[1], (THIN,)))
            state, _ = jax.lax.scan(one_step, state, drawn)
            return state, (state[0], state[2][partition.index(state[1])] - jax.nn.logsumexp(state[2]))

        @jax.jit
        def everything(keys: Array) -> Any:
            def chain(key: Array) -> Any:
                none = jnp.zeros(partition.bins, jnp.int32)
                theta = jnp.full(partition.bins, 1 / partition.bins) if known is None else jnp.asarray(known)
                state = begin, problem.energy(begin), jnp.log(theta), none, 0, 1
                (*_, visits, accepted, _), (x, log_weights) = jax.lax.scan(
                    to_mark, state, jax.random.split(key, steps // THIN)
                )
                return x, log_weights, visits, accepted / steps

            return jax.vmap(chain)(keys)

        x, log_weights, visits, accepted = map(np.asarray, everything(jax.random.split(jax.random.key(0), chains)))
    return x, np.exp(log_weights - log_weights.max(axis=1, keepdims=True)), visits, accepted


def _numbers(problem: Problem, x: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    """Of each chain: total variation of the mode masses after every tenth of the run, and moves between modes."""
    labels = np.asarray(problem.mode(np.where(np.isfinite(x), x, 0.0)))
    count = labels.shape[1]
    ends = [count * part // 10 for part in range(1, 11)]
    distances = []
    for end in ends:
        masses = np.stack([np.bincount(a[:end], w[:end], problem.modes) for a, w in zip(labels, weights, strict=True)])
        masses /= masses.sum(axis=1, keepdims=True)
        distances.append(np.abs(masses - problem.masses).sum(axis=1) / 2)
    return {
        "total_variation": np.round(distances, 5).tolist(),
        "moves": np.sum(np.diff(labels, axis=1) != 0, axis=1).tolist(),
    }


def probabilities(problem: Problem, partition: Partition) -> np.ndarray:
    """The true θ, by a grid; bins that the grid does not reach get the least probability there is."""
    if isinstance(problem, GaussianMixture):
        return np.maximum(problem.theta(partition), 1e-300)
    energies = NineModes().grid(2001, 6.0)[1].ravel()
    weights = np.exp(energies.min() - energies)
    return np.maximum(bin_probabilities(energies, weights / weights.sum(), partition), 1e-300)


def flatness(true: np.ndarray, visits: np.ndarray) -> list[float]:
    """The least over the largest share of visits, over the bins that hold at least 10⁻⁵ of the probability."""
    held = true >= 1e-5
    return [float(one[held].min() / one[held].max()) for one in visits]


# --- What it says ------------------------------------------------------------------------------------


def conclude(record: Record) -> Outcome:
    drawing = Drawing(
        lambda: _figure(record),
        f"Total variation of the mode masses along runs of {record['steps']:,} iterations from the origin, means of"
        f" {record['chains']} chains with standard errors. SAMC: exact energies, ζ = 1, step Ψ, γ_k = {K0}/max({K0},"
        " k). Naïve: Langevin moves with the same Ψ. Algorithm 1: scheme left, step weights, ζ = 0.75. The library:"
        " smooth, continuous weights, ζ = 0.75.",
    )
    return Outcome(_claims(record), {"samc": drawing}, _notes(record))


def _claims(record: Record) -> list[Claim]:
    claims = []
    for (name, found), key in zip(record["targets"].items(), ("even", "uneven", "nine"), strict=True):
        end = {method: over_seeds(one["total_variation"][-1]) for method, one in found.items()}
        moves = {method: over_seeds(one["moves"]) for method, one in found.items()}
        flat = {method: over_seeds(found[method]["flatness"]) for method in (KNOWN, SAMC)}
        apart = ratio(difference(moves[NAIVE], moves[SGLD]), moves[PRINTED])
        told = ", ".join(f"{method} {one:.3f}" for method, one in end.items())
        claims += [
            Claim(
                f"flat-{key}",
                "with the true θ and the Metropolis algorithm the sampler acts like SAMC, with a flat histogram",
                f"{name}: the least over the most visited bin is {flat[KNOWN]:.2f} with the true θ, {flat[SAMC]:.2f}"
                f" for SAMC; {found[KNOWN]['accepted']:.0%} of the proposals are accepted",
                judge(flat[KNOWN], above=0.5, unit="for least over most with the true θ"),
            ),
            Claim(
                f"naive-{key}",
                "the naïve algorithm behaves like SGLD: its gradient vanishes (section 2.1)",
                f"{name}: {moves[NAIVE]:.1f} moves between modes per chain, SGLD {moves[SGLD]:.1f}, Algorithm 1"
                f" {moves[PRINTED]:.0f}",
                judge(apart, above=-0.1, below=0.1, unit="of the moves of Algorithm 1, for naïve less SGLD"),
            ),
            Claim(
                f"against-{key}",
                "CSGLD is better than SAMC at equal iterations, SAMC with exact energies (not in the paper)",
                f"{name}, total variation of the mode masses at the end: {told}",
                judge(difference(end[PRINTED], end[SAMC]), below=0.0, unit="for Algorithm 1 less SAMC"),
            ),
        ]
    return claims


def _notes(record: Record) -> list[str]:
    rows = ["| | " + " | ".join(COLORS) + " |", "|---" * (1 + len(COLORS)) + "|"]
    for name, found in record["targets"].items():
        cells = [f"{over_seeds(found[method]['total_variation'][-1]):.3f}" for method in COLORS]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return [
        f"{record['chains']} chains of {record['steps']:,} iterations from the origin, no burn-in. SAMC proposes from a"
        " Gaussian of deviation 1 on the mixtures and 0.3 on the nine modes, which we chose, and sees exact energies,"
        " since a Metropolis test needs them; an iteration costs it one energy and no gradient. The Langevin methods"
        " see the paper's noise. Total variation of the mode masses at the end:",
        "\n".join(rows),
    ]


def _figure(record: Record) -> "Figure":
    import matplotlib.pyplot as plt

    steps = record["steps"] * np.arange(1, 11) / 10
    with plt.rc_context({"font.size": 12}):
        figure, axes = plt.subplots(1, 3, figsize=(15, 4.8), layout="constrained", sharey=True)
        for axis, (name, found) in zip(axes, record["targets"].items(), strict=True):
            for method, color in COLORS.items():
                means = [over_seeds(one) for one in found[method]["total_variation"]]
                values, errors = [one.value for one in means], [one.error for one in means]
                axis.errorbar(steps, values, errors, color=color, marker="o", ms=4, capsize=2, label=method)
            axis.set(title=name, xlabel="iteration", yscale="log")
        axes[0].set_ylabel("total variation of the mode masses")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure
