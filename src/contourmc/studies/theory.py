"""The paper's lemmas and theorems, measured on the mixture: how θ is learnt, and the errors of averages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from contourmc.draws.samples import Samples
from contourmc.flattening import theta as flattening
from contourmc.flattening.partition import Partition
from contourmc.flattening.theta import Scheme
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import csgld, ksgld
from contourmc.problems import GaussianMixture
from contourmc.sampling.sample import sample
from contourmc.studies.algorithm import FlatLastBin
from contourmc.studies.algorithm_one import noisy, papers_omega, run
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
    with_error,
)
from contourmc.targets.energies import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROBLEM = GaussianMixture()
ZETA = 0.75
SYMBOLS = {"width": "Δu", "step_size": "ε", "energy_variance": "variance of the energy noise"}
SWEEPS = {
    "width": (0.01, 0.05, 0.25, 1.0, 4.0),
    "step_size": (0.02, 0.05, 0.1, 0.2, 0.4),
    "energy_variance": (0.0, 0.1, 0.5, 1.0, 2.0),
}
QUICK_SWEEPS = {"width": (0.25, 4.0), "step_size": (0.02, 0.2), "energy_variance": (0.0, 1.0)}
# What is estimated: the paper's scheme with its weights, the paper's scheme without weights, and the defaults.
PAPERS, UNWEIGHTED, OURS = "left, step weights", "left, no weights", "smooth, continuous weights"
COLORS = {PAPERS: "#D55E00", OURS: "#0072B2", UNWEIGHTED: "#009E73"}
SCHEME_OF: dict[str, Scheme] = {PAPERS: "left", UNWEIGHTED: "left", OURS: "smooth"}
OFFSETS = (0.2, 0.35, 0.5, 0.65, 0.8)  # of the lowest energy in its bin, over which a bias is the largest
OBSERVABLES = "E[U]", "P(x < 0)"
PULLS = 2_000  # random θ at which the mean field is evaluated


@cache
def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points on the line, their energies, and their probabilities."""
    return PROBLEM.grid(40_001)


def observables() -> dict[str, np.ndarray]:
    """The functions that are averaged, on the grid; U without noise."""
    x, energy, _ = grid()
    return dict(zip(OBSERVABLES, (energy, (x < 0).astype(float)), strict=True))


@dataclass(frozen=True)
class Setting:
    """What the errors in the theorems depend on; a sweep changes one of these."""

    width: float = 1.0
    step_size: float = 0.02
    energy_variance: float = 0.0
    offset: float = 0.5

    @property
    def partition(self) -> Partition:
        """48 units of energy. Bin 0 shrinks with the others: it ends `offset` widths above the lowest energy."""
        _, energy, _ = grid()
        return Partition(float(energy.min()) + self.offset * self.width, self.width, round(48 / self.width) + 2)

    def sample(self, kernel: Kernel, steps: int, chains: int) -> Samples:
        """Run chains from x = 0."""
        target, thin = NoisyEnergy(PROBLEM.energy, 0.01, self.energy_variance), max(1, steps // 50_000)
        return complete(sample(target, init=0.0, steps=steps, thin=thin, kernel=kernel, chains=chains))


# --- Measurements ------------------------------------------------------------------------------------


def measure(options: Options, record: Record) -> None:
    """The mean field by quadrature; how θ is learnt over time; and averages against Δu, ε and noise."""
    # A rate needs several marks, a spread two chains.
    steps, chains = max(options.size.length, 20_000), max(options.size.seeds, 2)
    record["stability"] = pulls(200 if options.quick else PULLS)
    setting = Setting(step_size=0.1)
    partition = setting.partition
    every = max(1, steps // 200)
    printed = FlatLastBin(partition.low, partition.width, partition.bins)
    path = run(
        printed, noisy(PROBLEM.energy, 0.01), 0.0, steps=steps, every=every, chains=chains, seed=0, every_theta=True
    )
    record["learning"] = {PAPERS: summarise_learning(path.steps, path.theta, partition)}
    samples = setting.sample(csgld(0.1, partition, zeta=ZETA, omega=papers_omega), steps, chains)
    assert samples.trajectory.theta is not None
    learnt = np.asarray(samples.trajectory.theta)
    record["learning"][OURS] = summarise_learning(samples.trajectory.steps, learnt, partition)
    for sweep, found in estimates(QUICK_SWEEPS if options.quick else SWEEPS, steps, chains):
        record.setdefault("estimates", {})[sweep] = found
    widths = (QUICK_SWEEPS if options.quick else SWEEPS)["width"]
    record["partition"] = {
        "widths": list(widths),
        "offsets": list(OFFSETS),
        "biases": [[partition_bias(Setting(width, offset=offset).partition) for offset in OFFSETS] for width in widths],
    }
    _, _, probability = grid()
    truth = {name: float(probability @ values) for name, values in observables().items()}
    record |= {"steps": steps, "chains": chains, "truth": truth}


def pulls(count: int) -> dict[str, Any]:
    """−⟨h(θ), θ − θ⋆⟩ / ‖θ − θ⋆‖² by quadrature (lemma 1), over 12 bins.

    The mean field is h(θ) = ∫ θ^ζ(J(x)) (1[i = J(x)] − θ(i)) π(x)/Ψ_θ^ζ(U(x)) dx / Z_θ, with the continuous Ψ of
    equation 5. θ is drawn as θ⋆ mixed with a Dirichlet draw, in equal shares of log distance; and it is moved along the
    line from θ⋆ through the zero of h, which is where learning ends.
    """
    partition = Partition(2.0, 1.0, 12)
    _, energy, probability = grid()
    true, random = PROBLEM.theta(partition), np.random.default_rng(0)
    index = np.asarray(partition.index(jnp.asarray(energy)))

    def field(theta: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            log_psi = np.asarray(_log_psi(flattening.log_theta(jnp.asarray(theta)), partition, jnp.asarray(energy)))
        trial = probability * np.exp(-ZETA * log_psi)
        gains = trial / trial.sum() * theta[index] ** ZETA
        return np.bincount(index, gains, minlength=partition.bins) - gains.sum() * theta

    def pull(theta: np.ndarray) -> tuple[float, float]:
        away = theta - true
        return round(float(np.sqrt(away @ away)), 6), round(float(-(field(theta) @ away) / (away @ away)), 5)

    drawn = []
    for _ in range(count):
        weight = 10.0 ** random.uniform(-3, 0)
        theta = (1 - weight) * true + weight * random.dirichlet(np.full(partition.bins, random.choice([0.2, 1.0])))
        drawn.append(pull(np.maximum(theta, 1e-12)))
    zero = true.copy()
    for _ in range(500):
        zero = np.maximum(zero + field(zero), 1e-12)
    line = [pull(true + share * (zero - true)) for share in np.linspace(0.1, 2.0, 39)]
    distance = float(np.linalg.norm(zero - true))
    return {"drawn": drawn, "line": line, "zero": {"distance": distance, "lowest_bin": float(zero[0])}}


def summarise_learning(steps: np.ndarray, theta: np.ndarray, partition: Partition) -> dict[str, Any]:
    """How θ of CSGLD approaches θ⋆ at ε = 0.1: theta has the axes (chain, mark, bin)."""
    errors = theta - PROBLEM.theta(partition)
    squares, variance = np.sum(errors**2, axis=-1), errors.var(axis=0, ddof=1).sum(axis=-1)
    omega = np.asarray(papers_omega(jnp.asarray(steps, jnp.result_type(float))))
    last = steps >= steps[-1] // 20
    return {
        "steps": steps.tolist(),
        "omega": omega.tolist(),
        "mean_square": squares.mean(axis=0).tolist(),
        "mean_square_error": (squares.std(axis=0, ddof=1) / len(theta) ** 0.5).tolist(),
        "variance": variance.tolist(),
        "rate": _rate(np.log(omega[last]), errors[:, last]) if last.sum() > 2 else [float("nan")] * 2,
        "floor": _floor(errors[:, steps > 0.75 * steps[-1]].mean(axis=1)),
    }


def _rate(log_omega: np.ndarray, errors: np.ndarray) -> list[float]:
    """The power of ω with which the variance over chains falls, and its error by leaving out each chain in turn."""

    def power(kept: np.ndarray) -> float:
        return float(np.polyfit(log_omega, np.log(kept.var(axis=0, ddof=1).sum(axis=-1)), 1)[0])

    chains = len(errors)
    if chains < 3:
        return [power(errors), float("nan")]
    without = [power(np.delete(errors, i, axis=0)) for i in range(chains)]
    return [power(errors), float(np.sqrt((chains - 1) * np.var(without)))]


def _floor(errors: np.ndarray) -> list[float]:
    """‖bias‖² of θ from the errors of the chains (chain, bin), minus what their spread adds; its standard error."""
    bias, chains = errors.mean(axis=0), len(errors)
    along = (errors - bias) @ bias
    unbiased = bias @ bias - errors.var(axis=0, ddof=1).sum() / chains
    return [float(unbiased), float(2 * along.std(ddof=1) / chains**0.5)]


def estimates(sweeps: Mapping[str, tuple[float, ...]], steps: int, chains: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Errors of averages of KSGLD, whose θ is θ⋆, along each sweep; settings that sweeps share are run once."""
    known: dict[Setting, dict[str, Any]] = {}
    for sweep, values in sweeps.items():
        settings = [replace(Setting(), **{sweep: value}) for value in values]
        for setting in settings:
            if setting not in known:
                known[setting] = _known(setting, steps, chains)
        yield (
            sweep,
            {
                "values": list(values),
                "errors": {name: [known[one][name] for one in settings] for name in COLORS},
                "step_bias_by_quadrature": [partition_bias(one.partition)[PAPERS] for one in settings],
            },
        )


def _known(setting: Setting, steps: int, chains: int) -> dict[str, Any]:
    """Both schemes; step weights and no weights from the same draws, since with θ fixed these do not depend on them."""
    partition, found = setting.partition, {}
    theta = PROBLEM.theta(partition)
    for scheme in ("left", "smooth"):
        samples = setting.sample(
            ksgld(setting.step_size, partition, theta.tolist(), zeta=ZETA, scheme=scheme), steps, chains
        )
        _, _, probability = grid()
        if scheme == "smooth":
            found[OURS] = _errors(samples.draws, samples.log_weights, probability)
            continue
        bins = np.asarray(partition.index(jnp.asarray(samples.energies)))
        with np.errstate(divide="ignore"):
            levels = ZETA * np.log(theta)
        found[PAPERS] = _errors(samples.draws, levels[bins], probability)
        found[UNWEIGHTED] = _errors(samples.draws, np.zeros(samples.energies.shape), _flattened(partition))
    return found


def _flattened(partition: Partition) -> np.ndarray:
    """π/θ⋆^ζ(J) on the grid: what lemma 2 compares unweighted averages with."""
    _, energy, probability = grid()
    theta = np.maximum(PROBLEM.theta(partition), 1e-300)
    density = probability / theta[np.asarray(partition.index(jnp.asarray(energy)))] ** ZETA
    return density / density.sum()


def _errors(draws: np.ndarray, log_weights: np.ndarray, probability: np.ndarray) -> dict[str, list[float]]:
    """The bias of each average and its standard error over chains."""
    x, _, _ = grid()
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    found = {}
    for name, values in observables().items():
        at = (draws < 0).astype(float) if name == "P(x < 0)" else np.interp(draws, x, values)
        errors = np.sum(weights * at, axis=1) - float(probability @ values)
        found[name] = [float(errors.mean()), float(errors.std(ddof=1) / len(errors) ** 0.5)]
    return found


def partition_bias(partition: Partition) -> dict[str, dict[str, float]]:
    """The errors that the partition alone makes, for ε → 0 and k → ∞ with the true θ and the scheme `left`.

    The chain samples π/Ψ^ζ. Its draws are weighted by θ^ζ(J) and compared with π (theorem 2), or not weighted and
    compared with π/θ^ζ(J) (lemma 2).
    """
    _, energy, probability = grid()
    with jax.enable_x64(True):
        theta = flattening.log_theta(jnp.asarray(PROBLEM.theta(partition), jnp.float64))
        log_psi = np.asarray(_log_psi(theta, partition, jnp.asarray(energy)))
        log_step = np.asarray(theta.levels)[np.asarray(partition.index(jnp.asarray(energy)))]
    found: dict[str, dict[str, float]] = {}
    for name, target, sampled in (
        (PAPERS, probability, probability * np.exp(ZETA * (log_step - log_psi))),
        (UNWEIGHTED, probability * np.exp(-ZETA * log_step), probability * np.exp(-ZETA * log_psi)),
    ):
        gap = sampled / sampled.sum() - target / target.sum()
        found[name] = {observable: float(gap @ values) for observable, values in observables().items()}
    return found


@jax.jit
def _log_psi(theta: flattening.LogTheta, partition: Partition, energies: Array) -> Array:
    return jax.vmap(lambda u: flattening.interpolate(theta, partition, u, "left")[0])(energies)


# --- What it says ------------------------------------------------------------------------------------


def conclude(record: Record) -> Outcome:
    settings = f"{record['chains']} chains of {record['steps']:,} steps, ζ = 0.75"
    figures = {
        "theta_convergence": Drawing(
            lambda: _draw_learning(record),
            "Left: the error of θ along the run. Middle: its variance over chains against ω_k. Right: the pull of the"
            f" mean field towards θ⋆ (lemma 1), by quadrature at random θ. ε = 0.1, Δu = 1, {settings}; Algorithm 1"
            " with a flat last bin (scheme left, step weights), and the library (scheme smooth, continuous weights).",
        ),
        "weighted_estimates": Drawing(
            lambda: _draw_estimates(record["estimates"]),
            f"Bias of averages with θ = θ⋆ (KSGLD), {settings}; a sweep changes one of Δu = 1, ε = 0.02 and no energy"
            " noise. Unweighted averages are compared with π/θ⋆^ζ(J) (lemma 2), weighted ones with π (theorem 2).",
        ),
    }
    claims = [*_learning_claims(record), *_average_claims(record)]
    return Outcome(claims, figures, _notes(record))


def _learning_claims(record: Record) -> list[Claim]:
    stability = record["stability"]
    drawn, line = np.array(stability["drawn"]), np.array(stability["line"])
    papers, ours = (record["learning"][name] for name in (PAPERS, OURS))
    everything = np.concatenate([drawn, line])
    repelled = float(everything[everything[:, 1] <= 0, 0].max(initial=0.0))
    claims = [
        Claim(
            "lemma-1",
            "Lemma 1 (stability): ⟨h(θ), θ − θ⋆⟩ ≤ −φ‖θ − θ⋆‖² + O(ε + 1/m + Var), φ > 0",
            f"by quadrature with 12 bins: h is 0 not at θ⋆ but at a distance of {stability['zero']['distance']:.3f}"
            f" from it, where θ of the lowest bin is {stability['zero']['lowest_bin']:.3f} for a true"
            f" {PROBLEM.theta(Partition(2.0, 1.0, 12))[0]:.3f}. The pull −⟨h, θ − θ⋆⟩ is positive at all of"
            f" {len(drawn):,} random θ and {len(line)} on the line to that zero that are farther than {repelled:.3f}"
            " from θ⋆. The lemma holds with a constant of that size, which the paper does not name",
            None,
        )
    ]
    for key, name, found in (("theorem-1", PAPERS, papers), ("theorem-1-ours", OURS, ours)):
        rate = with_error(*found["rate"])
        claims.append(
            Claim(
                key,
                "Theorem 1: E‖θ_k − θ⋆‖² = O(ω_k) above a constant"
                + ("" if key == "theorem-1" else " (the library; not in the paper)"),
                f"{name}: the variance of θ over chains falls like ω_k to the power {rate:.2f}",
                judge(rate, above=0.75, unit="for the power: 1, less a margin of a quarter"),
            )
        )
    floors = [with_error(*found["floor"]) for found in (papers, ours)]
    claims.append(
        Claim(
            "floor",
            "Theorem 1: the constant is O(ε + 1/m + Var), of unnamed size",
            f"‖E θ_k − θ⋆‖² at the end, ε = 0.1 and Δu = 1: {floors[0]:.5f} for Algorithm 1, {floors[1]:.5f} for the"
            " library",
            None,
        )
    )
    return claims


# What the paper says of each sweep.
_SAYS = {
    "width": "a finer partition decreases the bias; O(1/√m)",
    "step_size": "a smaller ε decreases the bias; O(√ε)",
    "energy_variance": "less energy noise decreases the bias; O(√Var)",
}


def _average_claims(record: Record) -> Iterator[Claim]:
    """The partition by quadrature, the largest bias over offsets of the bins; ε and noise by chains."""
    for name, theorem, word in (
        (PAPERS, "Theorem 2, weighted averages", "theorem-2"),
        (UNWEIGHTED, "Lemma 2, unweighted averages (the paper gives the bound alone)", "lemma-2"),
        (OURS, "the same with the library's defaults (not in the paper)", "ours"),
    ):
        for sweep, found in record["estimates"].items():
            for observable, short in zip(OBSERVABLES, ("u", "p"), strict=True):
                cells, how = [with_error(*cell[observable]) for cell in found["errors"][name]], f"bias of {observable}"
                if sweep == "width" and name != OURS:  # the effect of the partition alone
                    biases = record["partition"]["biases"]
                    cells = [exact(max(abs(one[name][observable]) for one in row)) for row in biases]
                    how = f"largest |bias| of {observable} over {len(OFFSETS)} offsets of the bins, by quadrature"
                ends = f"{SYMBOLS[sweep]} {found['values'][0]:g} → {found['values'][-1]:g}"
                sign = "" if cells[0].error == 0 else "+"
                yield Claim(
                    f"{word}-{sweep.replace('_', '-')}-{short}",
                    f"{theorem}: {_SAYS[sweep]}",
                    f"{how}, {ends}: {cells[0]:{sign}.4f} → {cells[-1]:{sign}.4f}",
                    judge(_growth(cells[0], cells[-1]), above=0.0, unit="for the growth of the size of the bias"),
                )


def _growth(first: Measured, last: Measured) -> Measured:
    """By how much the size of the bias grows from one end of a sweep to the other."""
    return difference(replace(last, value=abs(last.value)), replace(first, value=abs(first.value)))


def _notes(record: Record) -> list[str]:
    truth = record["truth"]
    return [
        f"{record['chains']} chains of {record['steps']:,} steps from x = 0; ± is one standard error, and a verdict is"
        f" by the 95% interval. True values: E[U] = {truth['E[U]']:.4f}, P(x < 0) = {truth['P(x < 0)']:.4f}. θ is"
        " learnt in the first figure; the sweeps use the known θ⋆ (KSGLD), so that they show the effect of the"
        " partition, ε and the noise alone, and step weights and no weights use the same draws. The gradient noise has"
        " variance 0.01. The theorems bound a sum of terms, while a sweep asks whether the bias grows with one of"
        " them: a claim can differ while the bound holds.",
        "**Step weights keep a bias.** The chain samples π/Ψ^ζ with a continuous Ψ, but the paper's weight is the step"
        " θ^ζ(J). The result is a bias that no number of steps removes; the dotted lines give it by quadrature, for ε"
        " → 0. The bias of P(x < 0) does not shrink steadily as Δu falls: it depends on where the energies of the two"
        " minima lie in their bins. With Ψ^ζ(U(x)) as the weight this term is zero at every Δu. In the chains a second"
        " error appears below Δu = 0.25 with either kind of weight: a step then jumps over many bins.",
        *(_table(record["estimates"], observable) for observable in OBSERVABLES),
    ]


def _table(estimates: dict[str, Any], observable: str) -> str:
    lines = [f"{observable}: bias ± standard error", ""]
    lines += ["| setting | " + " | ".join(COLORS) + " | step weights by quadrature |", "|---" * (2 + len(COLORS)) + "|"]
    for sweep, found in estimates.items():
        for i, value in enumerate(found["values"]):
            cells = [f"{with_error(*found['errors'][name][i][observable]):+.4f}" for name in COLORS]
            by_quadrature = found["step_bias_by_quadrature"][i][observable]
            lines.append(f"| {SYMBOLS[sweep]} = {value:g} | {' | '.join(cells)} | {by_quadrature:+.4f} |")
    return "\n".join(lines)


# --- The figures -------------------------------------------------------------------------------------


def _draw_learning(record: Record) -> "Figure":
    import matplotlib.pyplot as plt

    learning = record["learning"]
    with plt.rc_context({"font.size": 12}):
        figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 5.4), layout="constrained")
        for name, row in learning.items():
            style = dict(color=COLORS[name], marker=".", ms=5, lw=1)
            left.errorbar(
                row["steps"], row["mean_square"], row["mean_square_error"], label=name, elinewidth=0.6, **style
            )
            if row["floor"][0] > 0:
                left.axhline(row["floor"][0], color=COLORS[name], ls=":", lw=2)
            label = "{}: power {:.2f} ± {:.2f}".format(name, *row["rate"])
            middle.plot(row["omega"], row["variance"], label=label, **style)
        omega = np.array(learning[OURS]["omega"])
        scale = np.exp(
            np.mean([np.log(np.array(row["variance"])[-10:] / row["omega"][-1]) for row in learning.values()])
        )
        middle.plot(omega, scale * omega, color="k", lw=1.5, ls="--", label="∝ ω: the theorem")
        left.plot([], [], color="0.3", ls=":", lw=2, label="‖E θ − θ⋆‖² at the end")
        left.set(xlabel="step k", ylabel="E‖θ_k − θ⋆‖²", title="Theorem 1: the error of θ")
        middle.set(xlabel="ω_k", ylabel="variance of θ over chains", title="Its variance against ω_k")
        for axis in (left, middle):
            axis.set(xscale="log", yscale="log")
            axis.xaxis.set_minor_formatter("")
            axis.set_ylim(top=20 * axis.get_ylim()[1])
            axis.legend(frameon=False, fontsize=10.5, loc="upper left")
        for name, label, color in (
            ("drawn", "random θ", "#009E73"),
            ("line", "on the line to the zero of h", "#D55E00"),
        ):
            right.plot(*np.transpose(record["stability"][name]), ".", ms=3, color=color, alpha=0.5, label=label)
        right.legend(frameon=False, fontsize=10.5, markerscale=3)
        right.axhline(0, color="k", lw=1)
        right.set(
            xscale="log", xlabel="‖θ − θ⋆‖", ylabel="−⟨h(θ), θ − θ⋆⟩ / ‖θ − θ⋆‖²", title="Lemma 1: the pull towards θ⋆"
        )
        right.set_yscale("symlog", linthresh=0.1)
    return figure


def _draw_estimates(estimates: dict[str, Any]) -> "Figure":
    """Bias of two averages (rows) along three sweeps (columns)."""
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 13}):
        figure, axes = plt.subplots(2, 3, figsize=(15, 9), layout="constrained", sharey="row", sharex="col")
        for column, (sweep, found) in zip(axes.T, estimates.items(), strict=True):
            for axis, observable in zip(column, OBSERVABLES, strict=True):
                _draw_sweep(axis, sweep, found, observable)
            column[0].set_title(SYMBOLS[sweep])
            column[1].set_xlabel(SYMBOLS[sweep])
        for axis, observable in zip(axes[:, 0], OBSERVABLES, strict=True):
            axis.set_ylabel(f"bias of {observable}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=12)
    return figure


def _draw_sweep(axis: "Axes", sweep: str, found: dict[str, Any], observable: str) -> None:
    """One panel; the variants are drawn a little apart, so that no error bar hides another."""
    values = np.array(found["values"])
    axis.axhline(0, color="k", lw=1)
    by_quadrature = [bias[observable] for bias in found["step_bias_by_quadrature"]]
    axis.plot(values, by_quadrature, color=COLORS[PAPERS], ls=":", lw=2, label="step weights by quadrature, ε → 0")
    for i, (name, color) in enumerate(COLORS.items()):
        bias, error = np.transpose([cell[observable] for cell in found["errors"][name]])
        apart = values + 0.03 * (i - 1) if sweep == "energy_variance" else values * 1.05 ** (i - 1)
        axis.errorbar(apart, bias, error, color=color, marker="so^"[i], ms=5, capsize=3, label=name)
    if sweep != "energy_variance":
        axis.set_xscale("log")
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.minorticks_off()
