"""The paper's two theorems as pictures: θ converges to θ⋆, and weighted averages to the truth."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from contourmc import flattening
from contourmc.flattening import Scheme
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import DEFAULT_OMEGA, Weights, csgld, ksgld
from contourmc.partition import Partition
from contourmc.problems import GaussianMixture
from contourmc.samples import Samples
from contourmc.sampling import sample
from contourmc.studies.base import Claim, Options, Outcome, Study
from contourmc.targets import NoisyEnergy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Variant = tuple[Scheme, Weights]

PROBLEM = GaussianMixture()
X, ENERGY, PROBABILITY = PROBLEM.grid()
TRUTH = {"E[U]": float(PROBABILITY @ ENERGY), "P(x < 0)": float(PROBABILITY @ (X < 0))}
ZETA = 0.75
COLORS: dict[Variant, str] = {
    ("left", "step"): "#D55E00",
    ("left", "continuous"): "#0072B2",
    ("centred", "step"): "#E69F00",
    ("centred", "continuous"): "#56B4E9",
}
NAMES = {variant: f"{variant[0]}, {variant[1]} weights" for variant in COLORS}
SYMBOLS = {"width": "Δu", "step_size": "ε", "energy_variance": "variance of the energy noise"}
SWEEPS = {
    "width": (0.25, 0.5, 1.0, 2.0, 4.0),
    "step_size": (0.02, 0.05, 0.1, 0.2, 0.4),
    "energy_variance": (0.0, 0.1, 0.5, 1.0, 2.0),
}
QUICK_SWEEPS = {"width": (0.5, 1.0), "step_size": (0.02, 0.2), "energy_variance": (0.0, 1.0)}


@dataclass(frozen=True)
class Setting:
    """What the errors of the theorems depend on; a sweep changes one of these."""

    width: float = 1.0
    step_size: float = 0.02
    energy_variance: float = 0.0

    @property
    def partition(self) -> Partition:
        """48 units of energy; bin 0 shrinks with the others, to half a width above the lowest energy."""
        return Partition(float(ENERGY.min()) + self.width / 2, self.width, round(48 / self.width) + 2)

    def sample(self, kernel: Kernel, steps: int, chains: int) -> Samples:
        target, thin = NoisyEnergy(PROBLEM.energy, 0.01, self.energy_variance), max(1, steps // 100_000)
        return sample(target, init=0.0, steps=steps, thin=thin, kernel=kernel, chains=chains)


def run(options: Options) -> Outcome:
    """Both theorems: the learning of θ over time, and the estimates against Δu, ε and noise."""
    steps, seeds = options.choose(steps=1_000_000, seeds=20, quick_steps=100_000, quick_seeds=4)
    steps, chains = max(steps, 20_000), max(seeds, 2)  # a rate needs several marks, a spread two chains
    variants = tuple(COLORS)[:: 3 if options.quick else 1]
    lengths = (steps,) if options.quick else (steps // 20, steps)
    learning = {NAMES[variant]: _learning(variant, lengths, chains) for variant in variants}
    estimates = _estimates(QUICK_SWEEPS if options.quick else SWEEPS, steps, chains)
    results = {"steps": steps, "chains": chains, "truth": TRUTH, "learning": learning, "estimates": estimates}
    figures = {
        "theta_convergence": _learning_figure(learning),
        "weighted_estimates": _estimates_figure(estimates),
    }
    return Outcome(_claims(learning, estimates), results, figures, _notes(results))


def _learning(variant: Variant, lengths: tuple[int, ...], chains: int) -> dict[str, Any]:
    """How θ of CSGLD approaches θ⋆ at ε = 0.1; a short run before the long one gives the early marks."""
    setting = Setting(step_size=0.1)
    kernel = csgld(0.1, setting.partition, zeta=ZETA, scheme=variant[0], weights=variant[1])
    runs = [setting.sample(kernel, steps, chains) for steps in lengths]
    steps = np.concatenate([run.path.steps for run in runs])
    theta = np.concatenate([run.path.theta for run in runs], axis=1)  # type: ignore[arg-type]
    new = np.append(True, steps[1:] > np.maximum.accumulate(steps)[:-1])
    steps, errors = steps[new], theta[:, new] - PROBLEM.theta(setting.partition)
    squares, variance = np.sum(errors**2, axis=-1), errors.var(axis=0, ddof=1).sum(axis=-1)
    omega = np.asarray(DEFAULT_OMEGA(jnp.asarray(steps)), float)
    last = steps >= steps[-1] // 20
    return {
        "steps": steps.tolist(),
        "omega": omega.tolist(),
        "mean_square": squares.mean(axis=0).tolist(),
        "mean_square_standard_error": (squares.std(axis=0, ddof=1) / chains**0.5).tolist(),
        "variance": variance.tolist(),
        "rate": _slope(np.log(omega[last]), np.log(variance[last])),
        "floor": _floor(errors[:, steps > 0.75 * steps[-1]].mean(axis=1)),
        "estimates": _summaries(runs[-1]),
    }


def _slope(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """The slope of a straight line through at least 3 points, and its standard error by their scatter."""
    line, covariance = np.polyfit(x, y, 1, w=weights, cov=True)
    return float(line[0]), float(covariance[0, 0] ** 0.5)


def _floor(errors: np.ndarray) -> tuple[float, float]:
    """‖bias‖² of θ by the chains' errors (chain, bin), less what their spread adds; standard error."""
    bias, chains = errors.mean(axis=0), len(errors)
    along = (errors - bias) @ bias
    floor = bias @ bias - errors.var(axis=0, ddof=1).sum() / chains
    return float(floor), float(2 * along.std(ddof=1) / chains**0.5)


def _summaries(samples: Samples) -> dict[str, dict[str, float]]:
    """Bias, its standard error, and mean absolute error of the weighted averages of U and 1[x < 0]."""
    weights, x = samples.weights * samples.chains, samples.draws
    summaries = {}
    for name, values in (("E[U]", np.interp(x, X, ENERGY)), ("P(x < 0)", x < 0)):  # the exact U, without noise
        errors = np.sum(weights * values, axis=1) - TRUTH[name]
        summaries[name] = {
            "bias": float(errors.mean()),
            "standard_error": float(errors.std(ddof=1) / samples.chains**0.5),
            "mean_absolute_error": float(np.abs(errors).mean()),
        }
    return summaries


def _estimates(sweeps: dict[str, tuple[float, ...]], steps: int, chains: int) -> dict[str, Any]:
    """Errors of KSGLD, whose θ is θ⋆, along each sweep; settings that sweeps share are run once."""
    settings = {sweep: [replace(Setting(), **{sweep: v}) for v in values] for sweep, values in sweeps.items()}
    unique = dict.fromkeys(setting for row in settings.values() for setting in row)
    schemes: tuple[Scheme, ...] = ("left", "centred")
    known = {(setting, scheme): _known(setting, scheme, steps, chains) for setting in unique for scheme in schemes}
    return {
        sweep: {
            "values": list(sweeps[sweep]),
            "errors": {name: [known[setting, s][w] for setting in row] for (s, w), name in NAMES.items()},
            "step_bias_by_quadrature": {s: [_step_bias(setting.partition, s) for setting in row] for s in schemes},
        }
        for sweep, row in settings.items()
    }


def _known(setting: Setting, scheme: Scheme, steps: int, chains: int) -> dict[str, Any]:
    """One run, weighted in both ways: with θ fixed, the path does not depend on the weights."""
    partition = setting.partition
    theta = PROBLEM.theta(partition)
    kernel = ksgld(setting.step_size, partition, theta.tolist(), zeta=ZETA, scheme=scheme)
    samples = setting.sample(kernel, steps, chains)
    bins = np.asarray(partition.index(jnp.asarray(samples.energies)))
    stepped = replace(samples, log_weights=ZETA * np.log(theta)[bins])
    return {"continuous": _summaries(samples), "step": _summaries(stepped)}


def _step_bias(partition: Partition, scheme: Scheme) -> dict[str, float]:
    """The bias that step weights have for ε → 0 and k → ∞: the chain samples π/Ψ^ζ, weighed by θ^ζ(J)."""
    energy = jnp.asarray(ENERGY, jnp.result_type(float))
    theta = flattening.log_theta(jnp.asarray(PROBLEM.theta(partition), energy.dtype))
    log_psi, _ = jax.vmap(lambda u: flattening.interpolate(theta, partition, u, scheme))(energy)
    excess = np.asarray(theta.levels[partition.index(energy)] - log_psi, float)
    weighted = PROBABILITY * np.exp(ZETA * excess)
    weighted /= weighted.sum()
    means = {"E[U]": weighted @ ENERGY, "P(x < 0)": weighted @ (X < 0)}
    return {name: float(mean) - TRUTH[name] for name, mean in means.items()}


def _claims(learning: dict[str, Any], estimates: dict[str, Any]) -> list[Claim]:
    def each(text: Any) -> str:
        return "; ".join(f"{name}: {text(row)}" for name, row in learning.items())

    rates = [row["rate"] for row in learning.values()]
    falls = all(rate > 2 * error for rate, error in rates) or None  # None: too noisy to tell
    return [
        Claim(
            "Theorem 1: E‖θ_k − θ⋆‖² = O(ω_k), above a floor",
            "E‖θ_k − Eθ_k‖² falls like ω_k to the power: " + each(lambda row: "{:.2f} ± {:.2f}".format(*row["rate"])),
            falls if all(rate + 2 * error >= 1 for rate, error in rates) else False,
        ),
        Claim(
            "Theorem 1: the floor is O(ε + 1/m + Var), of unnamed size",
            "‖E θ_k − θ⋆‖² at the end, ε = 0.1 and Δu = 1: "
            + each(lambda row: "{:.1e} ± {:.0e}".format(*row["floor"])),
            None,
        ),
        _effect(estimates, "width", "step", "a finer partition decreases the bias (weights θ^ζ(J)); O(1/√m)"),
        _effect(estimates, "width", "continuous", "the same, with weights Ψ^ζ(U) instead (not in the paper)"),
        _effect(estimates, "step_size", "step", "a smaller ε decreases the bias; O(√ε)"),
        _effect(estimates, "step_size", "continuous", "the same, with weights Ψ^ζ(U)"),
        _effect(estimates, "energy_variance", "step", "less energy noise decreases the bias; O(√Var)"),
        _effect(estimates, "energy_variance", "continuous", "the same, with weights Ψ^ζ(U)"),
        Claim(
            "Theorem 2 with θ learnt: the same orders, and the mean of ω",
            "CSGLD at ε = 0.1, Δu = 1, bias of E[U] and P(x < 0): "
            + each(lambda row: " and ".join(_pm(cell) for cell in row["estimates"].values())),
            None,
        ),
    ]


def _effect(estimates: dict[str, Any], sweep: str, weights: Weights, paper: str) -> Claim:
    """The bias of E[U] at the two ends of a sweep, the power of its growth, and whether it grows at all."""
    values = np.array(estimates[sweep]["values"])
    use, texts, growths = values > 0, [], []
    for scheme in ("left", "centred"):
        cells = [row["E[U]"] for row in estimates[sweep]["errors"][NAMES[scheme, weights]]]
        bias, error = (np.array([cell[key] for cell in cells]) for key in ("bias", "standard_error"))
        size = np.abs(bias)
        growths.append((size[-1] - size[0]) / np.hypot(error[0], error[-1]))
        texts.append(f"{scheme} {_pm(cells[0])} → {_pm(cells[-1])}")
        if size[0] > 2 * error[0] and (bias[-1] - bias[0]) * bias[0] < 0:
            texts[-1] += " (opposite signs)"
        elif use.sum() > 2 and growths[-1] > 2:
            power = _slope(np.log(values[use]), np.log(size[use]), size[use] / error[use])
            texts[-1] += ", power {:.2f} ± {:.2f}".format(*power)
    agrees = False if min(growths) < -2 else True if min(growths) > 2 else None  # None: within the noise
    ends = f"{SYMBOLS[sweep]} {values[0]:g} → {values[-1]:g}"
    return Claim(paper, f"bias of E[U], {weights} weights, {ends}: {'; '.join(texts)}", agrees)


def _pm(cell: dict[str, float]) -> str:
    return f"{cell['bias']:+.4f} ± {cell['standard_error']:.4f}"


def _notes(results: dict[str, Any]) -> list[str]:
    about = f"""{results["chains"]} chains of {results["steps"]:,} steps from x = 0; ± is one standard error, and
a verdict asks for two. True values: E[U] = {TRUTH["E[U]"]:.4f}, P(x < 0) = {TRUTH["P(x < 0)"]:.4f}. θ is learnt
in the first figure and the last claim; the sweeps use the known θ⋆ (KSGLD), so that only the partition, ε and
the noise are seen, and both kinds of weights are read off the same paths. A sweep changes one of Δu = 1,
ε = 0.02, no energy noise; the gradient noise has variance 0.01. Powers are fitted to the size of the bias.
E[U] is the yardstick because it hardly depends on the rare crossings, which blur P(x < 0) and the mean of x."""
    why = """**Step weights keep a bias.** The chain samples π/Ψ^ζ with Ψ continuous, and the paper weighs by
the step θ^ζ(J). What is left is a bias that depends on Δu and that no number of steps removes; the dotted lines
give it by quadrature, for ε → 0. With Ψ^ζ(U(x)) as the weight this term is zero at every Δu.
The theorem bounds a sum of terms: where a claim says "opposite signs", ε or the noise pushes against the bias of
the step weights, and lessening it uncovers that bias. Such a claim can differ while the bound holds."""
    return [about, why, *(_table(results["estimates"], observable) for observable in TRUTH)]


def _table(estimates: dict[str, Any], observable: str) -> str:
    """Every bias ± its standard error, with the mean absolute error of a chain in brackets."""
    lines = [f"{observable}: bias ± standard error (mean absolute error of one chain)", ""]
    lines += ["| setting | " + " | ".join(NAMES.values()) + " |", "|---" * (1 + len(NAMES)) + "|"]
    for sweep, part in estimates.items():
        for i, value in enumerate(part["values"]):
            cells = [part["errors"][name][i][observable] for name in NAMES.values()]
            texts = [f"{_pm(cell)} ({cell['mean_absolute_error']:.4f})" for cell in cells]
            lines.append(f"| {SYMBOLS[sweep]} = {value:g} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _learning_figure(learning: dict[str, Any]) -> "Figure":
    """Left: E‖θ − θ⋆‖² against k with its floors. Right: the variance part against ω."""
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 13}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(14, 6.5), layout="constrained")
        for variant, name in NAMES.items():
            if name not in learning:
                continue
            row, style = learning[name], dict(color=COLORS[variant], marker=".", ms=6, lw=1)
            error = row["mean_square_standard_error"]
            left.errorbar(row["steps"], row["mean_square"], error, label=name, elinewidth=0.7, **style)
            if row["floor"][0] > 0:
                left.axhline(row["floor"][0], color=COLORS[variant], ls=":", lw=2)
            label = "{}: {:.2f} ± {:.2f}".format(name, *row["rate"])
            right.plot(row["omega"], row["variance"], label=label, **style)
        omega = np.array(next(iter(learning.values()))["omega"])
        middle = np.exp(np.mean([np.log(np.array(row["variance"]) / omega) for row in learning.values()]))
        right.plot(omega, middle * omega, color="k", lw=1.5, ls="--", label="∝ ω: the theorem")
        left.plot([], [], color="0.3", ls=":", lw=2, label="‖E θ − θ⋆‖² at the end")
        left.set(xlabel="step k", ylabel="E‖θ − θ⋆‖²", title="Theorem 1: the error of θ along the run")
        right.set(xlabel="ω, learning rate of θ", ylabel="E‖θ − E θ‖²", title="Its variance against ω")
        for axis in (left, right):
            axis.set(xscale="log", yscale="log")
            axis.xaxis.set_minor_formatter("")
        left.legend(frameon=False, fontsize=12)
        right.legend(frameon=False, fontsize=12, title="fitted power of ω", loc="upper left")
        right.set_ylim(top=6 * right.get_ylim()[1])
    return figure


def _estimates_figure(estimates: dict[str, Any]) -> "Figure":
    """Bias of two weighted averages (rows) along three sweeps (columns)."""
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 13}):
        figure, axes = plt.subplots(2, 3, figsize=(15, 9), layout="constrained", sharey="row", sharex="col")
        for column, (sweep, part) in zip(axes.T, estimates.items(), strict=True):
            for axis, observable in zip(column, TRUTH, strict=True):
                _draw(axis, sweep, part, observable)
            column[0].set_title(f"Theorem 2: {SYMBOLS[sweep]}")
            column[1].set_xlabel(SYMBOLS[sweep])
        for axis, observable in zip(axes[:, 0], TRUTH, strict=True):
            axis.set_ylabel(f"bias of {observable}")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=12)
    return figure


def _draw(axis: "Axes", sweep: str, part: dict[str, Any], observable: str) -> None:
    """One panel; the variants stand a little apart, so that no error bar hides another."""
    values = np.array(part["values"])
    axis.axhline(0, color="k", lw=1)
    for scheme, row in part["step_bias_by_quadrature"].items():
        label = f"{scheme}, step weights: by quadrature, ε → 0"
        exact = [bias[observable] for bias in row]
        axis.plot(values, exact, color=COLORS[scheme, "step"], ls=":", lw=2, label=label)
    for i, (variant, name) in enumerate(NAMES.items()):
        cells = [row[observable] for row in part["errors"][name]]
        bias, error = ([cell[key] for cell in cells] for key in ("bias", "standard_error"))
        apart = values + 0.03 * (i - 1.5) if sweep == "energy_variance" else values * 1.04 ** (i - 1.5)
        marker = "s" if variant[1] == "step" else "o"
        axis.errorbar(apart, bias, error, color=COLORS[variant], marker=marker, ms=5, capsize=3, label=name)
    if sweep != "energy_variance":
        axis.set_xscale("log")
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.minorticks_off()


THEORY = Study(
    name="theory",
    summary="The convergence theorems on the mixture: θ over time; estimates against Δu, ε and energy noise.",
    title="The theorems, measured",
    run=run,
)
