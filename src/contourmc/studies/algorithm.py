"""Algorithm 1 as printed and the library's kernel: where they are the same, and what each difference does."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from contourmc.flattening.partition import Partition
from contourmc.flattening.rules import Biased
from contourmc.kernels.contour import csgld
from contourmc.problems import GaussianMixture
from contourmc.sampling.sample import sample
from contourmc.studies.algorithm_one import AlgorithmOne, Noise, Path, Rule, Scheme, State, Target, noisy, run
from contourmc.studies.base import (
    Claim,
    Drawing,
    Measured,
    Options,
    Outcome,
    Record,
    complete,
    difference,
    exact,
    judge,
    over_seeds,
    ratio,
    share,
)
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEM = GaussianMixture()
SCHEMES: tuple[Scheme, ...] = ("left", "right", "step")
RULES: tuple[Rule, ...] = ("original", "biased", "scalable")
ROUNDING = {"float32": 2e-3, "float64": 1e-11}  # of log θ after REPLAYED steps; each step rounds it
REPLAYED = 20_000
HIGH_ZETA = 5.0  # of the rule `biased`, which is meant for large ζ
HIGH = 14.0  # above the saddle, whose energy is 13.4: there bins are rarely visited
RARE = slice(13, 18)  # bins 14 to 18


# --- The four differences ----------------------------------------------------------------------------


class FlatLastBin(AlgorithmOne):
    """The first difference: the multiplier is 1 in the unbounded last bin."""

    def multiplier(self, theta: Float[Array, " m"], energy: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.where(self.bin(energy) == self.bins, 1.0, super().multiplier(theta, energy))


class LibraryOrder(FlatLastBin):
    """The second: θ_{k+1} is learnt from J(x_k), after x_k was weighed and moved with θ_k."""

    def step(self, state: State, noise: Noise, target: Target) -> State:
        learnt = self.learn(state.theta, state.energy, self.omega((state.k + 1).astype(state.energy.dtype)))
        return super().step(state, noise, target)._replace(theta=learnt)


class ContinuousWeights(LibraryOrder):
    """The third: a point is weighed, and learnt from, with Ψ^ζ(U) in place of θ^ζ(J), for the scheme `left`."""

    def weight(self, theta: Float[Array, " m"], energy: Float[Array, ""]) -> Float[Array, ""]:
        edges = self.low + self.width * jnp.arange(self.bins - 1, dtype=energy.dtype)
        return jnp.exp(self.zeta * jnp.interp(energy, edges, jnp.log(theta[:-1])))


class Normalised(AlgorithmOne):
    """The fourth, which matters for the rule `biased` alone: Σθ = 1 after every step."""

    def learn(self, theta: Float[Array, " m"], energy: Float[Array, ""], omega: Float[Array, ""]) -> Float[Array, " m"]:
        learnt = super().learn(theta, energy, omega)
        return learnt / learnt.sum()


class NormalisedFlat(Normalised, FlatLastBin):
    """The fourth on top of the first."""


STEPWISE: dict[str, type[AlgorithmOne]] = {
    "as printed": AlgorithmOne,
    "flat last bin": FlatLastBin,
    "and the order of the library": LibraryOrder,
    "and continuous weights": ContinuousWeights,
}


def networks_omega(k: Array) -> Array:
    """ω_k of the paper's networks, for which the rule `biased` is meant."""
    return 10 / (k**0.75 + 1000)


# --- Measurements ------------------------------------------------------------------------------------


def measure(options: Options, record: Record) -> None:
    """Replay energies through both; then run the printed algorithm, with one difference after the other."""
    energies = replayed_energies()
    for precision in ROUNDING:
        for scheme in SCHEMES:
            for rule in RULES[:1] if options.quick else RULES:
                replayed = AlgorithmOne(2.0, 0.5, 100, temperature=0.7, zeta=1.3, scheme=scheme, rule=rule)
                found = deviation(replayed, energies, precision)
                record.setdefault("replay", {}).setdefault(precision, {})[f"{scheme}, {rule}"] = found
    length, chains = options.size.length, max(2, options.size.seeds)
    for name, kind in STEPWISE.items():
        record.setdefault("stepwise", {})[name] = _measure(kind(2.0, 1.0, 50), length // 10, chains, seed=0)
    record["stepwise"]["the library"] = _measure_library(length // 10, chains)
    for name, kind in (("as printed", AlgorithmOne), ("flat last bin", FlatLastBin)):
        path = _run(kind(2.0, 1.0, 50), length, length // 1000, chains, seed=1)
        alive = path.finite
        last = np.where(alive.all(axis=1), length, path.steps[np.argmin(alive, axis=1)])
        record.setdefault("divergence", {})[name] = {"finite": int(alive[:, -1].sum()), "step": last.tolist()}
    for name, kind in (("as printed", FlatLastBin), ("normalised", NormalisedFlat)):
        algorithm = kind(2.0, 1.0, 50, rule="biased", zeta=HIGH_ZETA, omega=networks_omega)
        record.setdefault("biased", {})[name] = _measure(algorithm, length // 10, chains, seed=2)
    record |= {"length": length, "chains": chains, "mean": round(PROBLEM.mean, 12)}


def replayed_energies() -> np.ndarray:
    """Energies of a chain of the printed algorithm, and among them energies from far below u₁ to far beyond u_{m−1}."""
    path = _run(AlgorithmOne(2.0, 1.0, 50), REPLAYED, 1, 1, seed=3)
    energies, random = path.energy[0].copy(), np.random.default_rng(0)
    replaced = random.random(REPLAYED) < 0.1
    energies[replaced] = random.uniform(1.0, 60.0, replaced.sum())
    return energies


def deviation(algorithm: AlgorithmOne, energies: np.ndarray, precision: str) -> dict[str, float]:
    """The largest deviation of the library's multipliers, log weights and log θ from the printed ones.

    Both see the same energies, and each step begins with weighing and ends with learning. Left out is what differs on
    purpose: the multiplier of `left` in the last bin, and Σθ of `biased`.
    """
    with jax.enable_x64(precision == "float64"):
        seen = jnp.asarray(energies, precision)
        steps = jnp.arange(1, len(energies) + 1)
        rule: Any = Biased(rho=algorithm.rho) if algorithm.rule == "biased" else algorithm.rule
        kernel = csgld(
            algorithm.step_size, Partition(float(algorithm.low), algorithm.width, algorithm.bins), zeta=algorithm.zeta,
            temperature=algorithm.temperature,
            scheme=algorithm.scheme, rule=rule, weights="step", omega=lambda k: algorithm.omega(k * 1.0),
        )  # fmt: skip
        key, zero, one = jax.random.key(0), jnp.zeros((), precision), jnp.ones((), precision)
        learn = algorithm.learn
        if algorithm.rule == "biased":
            learn = Normalised(**vars(algorithm)).learn

        def ours(state: Any, energy: Array) -> tuple[Any, tuple[Array, ...]]:
            state, info = kernel.step(key, state, energy, one)
            levels = state.theta.levels + state.theta.offset
            return state, (info.multiplier, info.log_weight, levels)

        def printed(theta: Array, given: tuple[Array, Array]) -> tuple[Array, tuple[Array, ...]]:
            energy, k = given
            shown = algorithm.multiplier(theta, energy), jnp.log(algorithm.weight(theta, energy))
            theta = learn(theta, energy, algorithm.omega(k * jnp.ones((), precision)))
            return theta, (*shown, jnp.log(theta))

        found = jax.jit(lambda: jax.lax.scan(ours, kernel.init(zero), seen)[1])()
        uniform = jnp.full(algorithm.bins, 1 / algorithm.bins, precision)
        expected = jax.jit(lambda: jax.lax.scan(printed, uniform, (seen, steps))[1])()
        compared = np.asarray(seen <= algorithm.low + algorithm.width * (algorithm.bins - 2))
        gaps = [np.abs(np.asarray(a, float) - np.asarray(b, float)) for a, b in zip(found, expected, strict=True)]
    if algorithm.scheme == "left":
        gaps[0] = gaps[0][compared]
    return {name: float(gap.max()) for name, gap in zip(("multiplier", "log weight", "log θ"), gaps, strict=True)}


def _run(algorithm: AlgorithmOne, steps: int, every: int, chains: int, seed: int) -> Path:
    return run(algorithm, noisy(PROBLEM.energy, 0.01), 0.0, steps=steps, every=max(1, every), chains=chains, seed=seed)


def _measure(algorithm: AlgorithmOne, steps: int, chains: int, seed: int) -> dict[str, Any]:
    path = _run(algorithm, steps, max(1, steps // 10_000), chains, seed)
    alive = path.finite[:, -1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return _numbers(path.energy[alive], np.log(path.theta[alive, -1]), path.running_mean()[alive, -1])


def _measure_library(steps: int, chains: int) -> dict[str, Any]:
    """The same of the library, at the same settings, with its continuous weights."""
    kernel = csgld(0.1, Partition(2.0, 1.0, 50), zeta=0.75, scheme="left", omega=AlgorithmOne(2.0, 1.0, 50).omega)
    samples = complete(
        sample(
            NoisyEnergy(PROBLEM.energy, gradient_variance=0.01), init=0.0, steps=steps, kernel=kernel, chains=chains,
            burn_in=0, thin=max(1, steps // 10_000),
        )
    )  # fmt: skip
    assert samples.theta is not None
    means = np.sum(samples.weights * samples.draws, axis=1) * chains
    return _numbers(samples.energies, np.log(np.maximum(samples.theta, 1e-38)), means)


def _numbers(energies: np.ndarray, log_theta: np.ndarray, means: np.ndarray) -> dict[str, Any]:
    """Of each chain: the share of high energies, log θ of the rare bins, log Σθ, and the weighted mean of x."""
    return {
        "high": np.mean(energies > HIGH, axis=1).tolist(),
        "rare": log_theta[:, RARE].tolist(),
        "log_total": np.log(np.exp(log_theta).sum(axis=1)).tolist(),
        "mean": means.tolist(),
    }


# --- What it says ------------------------------------------------------------------------------------


def conclude(record: Record) -> Outcome:
    claims = [*_replay_claims(record["replay"]), *_difference_claims(record)]
    drawing = Drawing(
        lambda: _figure(record),
        "Left: the number of chains that have diverged, by Algorithm 1 as printed and by the same algorithm whose last"
        " bin has multiplier 1. Right: log θ of bins 14 to 18 after each of the differences, minus the true log θ."
        f" Mixture of two Gaussians, scheme left, u₁ = 2, Δu = 1, m = 50, ζ = 0.75, {record['chains']} chains.",
    )
    return Outcome(claims, {"algorithm": drawing}, _notes(record))


def _replay_claims(replay: dict[str, Any]) -> list[Claim]:
    claims = []
    for precision, found in replay.items():
        worst = {name: max(one[name] for one in found.values()) for name in ("multiplier", "log weight", "log θ")}
        told = ", ".join(f"{name} {value:.1e}" for name, value in worst.items())
        claims.append(
            Claim(
                f"replay-{precision}",
                "Algorithm 1: gradient multiplier, importance weight and update of θ (equation 6, step 3 of Algorithm"
                " 1, the scalable update, the supplement's alternative scheme and its high-ζ rule)",
                f"largest deviation of the library in {precision} over {REPLAYED:,} steps, {len(found)} pairs of scheme"
                f" and rule, all bins: {told}",
                judge(exact(max(worst.values())), below=ROUNDING[precision], unit="everywhere"),
            )
        )
    return claims


def _difference_claims(record: Record) -> list[Claim]:
    steps, chains = record["stepwise"], record["chains"]
    ended = record["divergence"]
    gone = share(chains - ended["as printed"]["finite"], chains)
    first = np.median(ended["as printed"]["step"])
    flat, order = steps["flat last bin"], steps["and the order of the library"]
    more = ratio(over_seeds(order["high"]), over_seeds(flat["high"]))
    rise = _gap(order, flat, "rare")
    moved = {name: over_seeds(found["mean"]) for name, found in steps.items() if len(found["mean"]) > 1}
    totals = over_seeds(record["biased"]["as printed"]["log_total"])
    rarely = _gap(record["biased"]["normalised"], record["biased"]["as printed"], "rare", normalise=True)
    true = record["mean"]
    return [
        Claim(
            "last-bin",
            "Algorithm 1 is stable (lemma 1; the last bin has the slope of all others)",
            f"{chains - ended['as printed']['finite']} of {chains} chains of Algorithm 1 as printed end in NaN within"
            f" {record['length']:,} steps, half of them by step {first:,.0f}; with multiplier 1 in the last bin"
            f" {chains - ended['flat last bin']['finite']} of {chains}",
            judge(gone, below=0.5, unit="of the chains diverge"),
        ),
        Claim(
            "order",
            "a point is weighed with the θ learnt from it (order of Algorithm 1)",
            f"in the library's order the share of steps above U = {HIGH:g} is {more:.2f} times as large, log θ of bins"
            f" 14 to 18 is higher by {rise:.2f}; the weighted mean of x is {moved['flat last bin']:.3f} in the printed"
            f" order and {moved['and the order of the library']:.3f} in the library's",
            None,
        ),
        Claim(
            "weights",
            "weights θ^ζ(J)",
            f"bias of the weighted mean of x: {_off(moved['and the order of the library'], true)} with weights θ^ζ(J),"
            f" {_off(moved['and continuous weights'], true)} with Ψ^ζ(U); the library:"
            f" {_off(moved['the library'], true)}",
            None,
        ),
        Claim(
            "normalisation",
            "the high-ζ rule does not keep Σθ = 1",
            f"at ζ = {HIGH_ZETA:g}, ρ = 1 and ω_k of the networks log Σθ is {totals:.3f} after"
            f" {record['length'] // 10:,} steps; normalising after every step changes log θ of bins 14 to 18, relative"
            f" to Σθ, by {rarely:+.2f}",
            None,
        ),
    ]


def _off(mean: Measured, true: float) -> str:
    return f"{mean.value - true:+.3f} ± {mean.error:.3f}"


def _gap(one: dict[str, Any], other: dict[str, Any], name: str, *, normalise: bool = False) -> Measured:
    """The difference of two means over chains and bins, with the error over chains."""
    means = []
    for found in (one, other):
        values = np.array(found[name])
        if normalise:
            values = values - np.array(found["log_total"])[:, None]
        means.append(over_seeds(values.mean(axis=1)))
    return difference(*means)


def _notes(record: Record) -> list[str]:
    rows = ["| | steps above U = 14 | weighted mean of x | chains that stay finite |", "|---|---|---|---|"]
    for name, found in record["stepwise"].items():
        high, mean = over_seeds(found["high"]), over_seeds(found["mean"])
        rows.append(f"| {name} | {high:.4f} | {mean:.3f} | {len(found['mean'])} of {record['chains']} |")
    return [
        "`studies/algorithm_one.py` is Algorithm 1 as printed, in 80 lines. The replay gives the same energies to it"
        " and"
        " to the library's kernel, from below u₁ to beyond u_{m−1}, and compares every multiplier, weight and θ. The"
        " differences are then made one after the other, each on top of the one before, on the paper's mixture (true"
        f" mean {record['mean'] + 0.0:g}, scheme left, u₁ = 2), for {record['length'] // 10:,} steps of"
        f" {record['chains']} chains; divergence is counted over {record['length']:,} steps.",
        "\n".join(rows),
    ]


def _figure(record: Record) -> "Figure":
    import matplotlib.pyplot as plt

    from contourmc import plots

    true = np.log(PROBLEM.theta(Partition(2.0, 1.0, 50)))[RARE]
    with plt.rc_context({"font.size": 12}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
        for (name, ended), color in zip(record["divergence"].items(), (plots.ORANGE, plots.BLUE), strict=True):
            steps = np.sort(ended["step"])
            lost = np.arange(1, len(steps) + 1) * (steps < record["length"])
            kept = steps < record["length"]
            x = np.concatenate([[1], np.repeat(steps[kept], 2), [record["length"]]])
            y = np.concatenate([[0], np.repeat(np.concatenate([[0], lost[kept]]), 2)[1:-1], [lost.max(), lost.max()]])
            left.plot(x[: len(y)], y[: len(x)], color=color, lw=2, label=name)
        left.set(
            xlabel="step", ylabel="chains that have diverged", title="The last bin", ylim=(-0.5, record["chains"] + 4)
        )
        left.legend(frameon=False, loc="upper left")
        for (name, found), marker in zip(record["stepwise"].items(), "osD^v", strict=True):
            if found["rare"]:
                right.plot(range(14, 19), np.mean(found["rare"], axis=0) - true, marker=marker, label=name, alpha=0.8)
        right.axhline(0, color="k", lw=1)
        right.set(xlabel="bin", ylabel="log θ − log θ⋆", title="Rare bins after the short run")
        right.set_xticks(range(14, 19))
        right.set_ylim(None, right.get_ylim()[1] + 1.5)
        right.legend(frameon=False, fontsize=10, ncols=2, loc="upper center")
    return figure
