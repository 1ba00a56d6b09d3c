"""One cell of Table 1: a method on a data set, run on all splits at once."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from contourmc.draws.samples import Samples
from contourmc.kernels.contour import Contour
from contourmc.kernels.dynamics import Dynamics
from contourmc.kernels.sghmc import momentum_sgd, sghmc
from contourmc.kernels.sgld import sgd, sgld
from contourmc.predictions.regression import RegressionAverage
from contourmc.sampling.sample import sample
from contourmc.studies import datasets
from contourmc.studies.base import complete
from contourmc.targets.likelihoods import GaussianLikelihood
from contourmc.targets.posterior import Posterior
from contourmc.targets.priors import GaussianPrior

# What the paper says.
HIDDEN, BATCH, EPOCHS, MODELS = 50, 50, 5000, 50
STEP_SIZE, PRECISION, WIDTH = 5e-6, 1e-4, 100.0

# The dynamics of each method at a temperature. There are two families, without and with momentum; the third method of
# each is flattened.
METHODS: dict[str, Callable[[float], Dynamics]] = {
    "SGD": lambda temperature: sgd(STEP_SIZE),
    "SGLD": lambda temperature: sgld(STEP_SIZE, temperature),
    "CSGLD": lambda temperature: sgld(STEP_SIZE, temperature),
    "M-SGD": lambda temperature: momentum_sgd(STEP_SIZE),
    "SGHMC": lambda temperature: sghmc(STEP_SIZE, temperature),
    "CSGHMC": lambda temperature: sghmc(STEP_SIZE, temperature),
}
BASELINES = {"CSGLD": "SGLD", "CSGHMC": "SGHMC"}  # the sampler that each contour method flattens
FAMILIES = {contour: tuple(METHODS)[i : i + 3] for i, contour in zip((0, 3), BASELINES, strict=True)}

# The UCI data set "Energy efficiency" has two targets. The file that most benchmarks use has the heating load alone.
COOLING = "cooling"


@dataclass(frozen=True)
class Model:
    """What the three methods of a family share. The paper states the temperature alone.

    temperature: τ.
    activation: the function of the hidden layer.
    normalised: whether targets are scaled to mean 0 and deviation 1 on the training set.
    noise: σ of the likelihood y ~ N(network(x), σ²), in units of the targets.
    burn_in: the share of the run before the first model that is averaged.
    as_authors: whether weights and biases start uniformly in ±1/√inputs, and the energy is Σ(y − f)²/(2σ²) alone, as
        in a program of the paper's first author. Otherwise weights start as Gaussians, and the energy includes the
        constant of a Gaussian density.
    """

    temperature: float
    activation: Literal["relu", "tanh"]
    normalised: bool
    noise: float
    burn_in: float
    as_authors: bool = False


@dataclass(frozen=True)
class Flattening(ABC):
    """How a contour method flattens; each recipe has its own way (recipes.py).

    zeta: ζ of Table 1.
    """

    zeta: float

    @property
    @abstractmethod
    def tempering(self) -> float:
        """The power of the weights θ^ζ of the models: 1 as in the paper, 0 for equal weights."""

    @abstractmethod
    def kernel(self, dynamics: Dynamics, burn_in: int) -> Contour:
        """The contour kernel; a chain burns in for `burn_in` steps."""


class Split(NamedTuple):
    """Inputs, normalised by the statistics of the training set, and targets as they are."""

    train: tuple[Float[np.ndarray, "n features"], Float[np.ndarray, " n"]]
    test: tuple[Float[np.ndarray, "m features"], Float[np.ndarray, " m"]]


@dataclass(frozen=True)
class Cell:
    """The results of a method on a data set. The first five have a number for each split.

    rmse: error of the mean over models, in units of the target.
    nll: minus the mean log density of the mixture of the models.
    coverage: the share of targets in the central 90% interval of the mixture.
    last_rmse: error of the last model alone.
    effective_models: the effective number of models, (Σ w)² / Σ w².
    energies: the quantiles 0, 0.1, 0.5, 0.9 and 1 of the energies of the models, over all splits.
    multipliers: the smallest and the largest gradient multiplier at a model.
    theta: the smallest and the largest m·θ(i) at the end, where 1 is the start; empty without flattening.
    """

    rmse: list[float]
    nll: list[float]
    coverage: list[float]
    last_rmse: list[float]
    effective_models: list[float]
    energies: list[float]
    multipliers: list[float]
    theta: list[float]
    seconds: float


Cells = Mapping[str, Mapping[str, Cell | None]]  # by data set and method; None where a chain diverged


# --- Data --------------------------------------------------------------------------------------------


def load(name: str, data: Path | None) -> tuple[Float[np.ndarray, "n features"], Float[np.ndarray, " n"]]:
    """A data set; `cooling` has the inputs of `energy` and the other target."""
    if name != COOLING:
        return datasets.uci(name, data)
    x, _ = datasets.uci("energy", data)
    return x, datasets.cooling_loads(data)


def split(x: np.ndarray, y: np.ndarray, seed: int, *, inner: bool = False) -> Split:
    """A tenth of the observations, drawn by the seed, to test on, and the others to train on.

    inner: for cross-validation. The training set is split once more, and the test set is not used.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = np.split(order, [round(len(y) / 10)])
    if inner:
        test, train = np.split(train, [round(len(train) / 10)])
    centre, scale = x[train].mean(axis=0), x[train].std(axis=0)
    scale[scale == 0] = 1.0
    normalised = (x - centre) / scale
    return Split((normalised[train], y[train]), (normalised[test], y[test]))


def load_splits(name: str, seeds: int, data: Path | None, *, inner: bool = False) -> list[Split]:
    """The splits of a data set by the seeds 0, 1, …"""
    x, y = load(name, data)
    return [split(x, y, seed, inner=inner) for seed in range(seeds)]


# --- The network -------------------------------------------------------------------------------------


def _network(activation: Callable[[Array], Array]) -> Callable[[Any, Any], Array]:
    def apply(params: Any, x: Array) -> Array:
        hidden = activation(x @ params["hidden"]["kernel"] + params["hidden"]["bias"])
        return hidden @ params["output"]["kernel"] + params["output"]["bias"]

    return apply


_NETWORKS = {"relu": _network(jax.nn.relu), "tanh": _network(jnp.tanh)}


def _init(features: int, uniform: bool) -> Callable[[PRNGKeyArray], Any]:
    """Weights of variance 1 / inputs and biases 0, or both uniform in ±1/√inputs, the default of PyTorch."""

    def layer(key: PRNGKeyArray, inputs: int, outputs: int) -> dict[str, Array]:
        reach, shape = inputs**-0.5, (inputs, outputs)
        if not uniform:
            return {"kernel": jax.random.normal(key, shape) * reach, "bias": jnp.zeros(outputs)}
        kernel_key, bias_key = jax.random.split(key)
        return {
            "kernel": jax.random.uniform(kernel_key, shape, minval=-reach, maxval=reach),
            "bias": jax.random.uniform(bias_key, (outputs,), minval=-reach, maxval=reach),
        }

    def init(key: PRNGKeyArray) -> Any:
        hidden_key, output_key = jax.random.split(key)
        return {"hidden": layer(hidden_key, features, HIDDEN), "output": layer(output_key, HIDDEN, 1)}

    return init


@dataclass(frozen=True)
class _SumOfSquares(GaussianLikelihood):
    """A Gaussian likelihood whose energy is Σ(y − f)²/(2σ²), without the constant of the density."""

    def log_density(self, outputs: Any, targets: Array) -> Float[Array, " n"]:
        mean, variance = self.describe_targets(outputs)
        return -0.5 * (targets - mean) ** 2 / variance


def likelihood_of(model: Model) -> GaussianLikelihood:
    """The likelihood of a model, whose minus log density is the energy."""
    kind = _SumOfSquares if model.as_authors else GaussianLikelihood
    return kind(_NETWORKS[model.activation], model.noise)


# --- A cell ------------------------------------------------------------------------------------------


def make_kernel(method: str, temperature: float, flattening: Flattening | None, burn_in: int) -> Dynamics | Contour:
    """The kernel of a method."""
    dynamics = METHODS[method](temperature)
    return dynamics if flattening is None else flattening.kernel(dynamics, burn_in)


def steps_of(model: Model, epochs: int, steps_per_epoch: int) -> tuple[int, int, int]:
    """How many steps a chain makes, how many of them are burn-in, and how many lie between two models."""
    steps = epochs * steps_per_epoch
    thin = max(1, int((1 - model.burn_in) * steps) // MODELS)
    return steps, steps - thin * MODELS, thin


def measure(
    method: str,
    splits: Sequence[Split],
    model: Model,
    flattening: Flattening | None,
    epochs: int,
    *,
    progress: bool | None,
) -> Cell:
    """Run a method on all splits at once, and average its models on the test set of each split.

    flattening: the settings of a contour method; None for the others.
    """
    likelihood = likelihood_of(model)
    tempering = 1.0 if flattening is None else flattening.tempering
    units = [_units(one.train[1]) if model.normalised else (0.0, 1.0) for one in splits]
    targets, averages = [], []
    for (train_x, train_y), (test_x, test_y), (centre, scale) in zip(*zip(*splits, strict=True), units, strict=True):
        data = train_x, (train_y - centre) / scale
        targets.append(Posterior(likelihood, GaussianPrior(PRECISION), data, BATCH))
        averages.append(RegressionAverage(likelihood.predict, test_x, (test_y - centre) / scale, tempering))
    steps, burn_in, thin = steps_of(model, epochs, targets[0].steps_per_epoch)
    run = sample(
        targets,
        init=_init(splits[0].train[0].shape[1], model.as_authors),
        steps=steps,
        kernel=make_kernel(method, model.temperature, flattening, burn_in),
        burn_in=burn_in,
        thin=thin,
        average=averages,
        store=False,
        progress=progress,
    )
    return _cell(complete(run), [scale for _, scale in units])


def _units(targets: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """The mean and the standard deviation of the targets."""
    return float(targets.mean()), float(targets.std())


def _cell(run: Samples, scales: list[float]) -> Cell:
    """The numbers of a finished run; errors are multiplied by the scale of each split's targets."""
    found = run.average
    theta = None if run.theta is None else np.asarray(run.theta) * np.shape(run.theta)[-1]
    return Cell(
        rmse=[one.rmse * scale for one, scale in zip(found, scales, strict=True)],
        nll=[one.nll + math.log(scale) for one, scale in zip(found, scales, strict=True)],
        coverage=[one.coverage(0.9) for one in found],
        last_rmse=[float(one.points.last_error[0]) * scale for one, scale in zip(found, scales, strict=True)],
        effective_models=[float(one.effective_models[0]) for one in found],
        energies=np.quantile(run.energies, [0, 0.1, 0.5, 0.9, 1]).tolist(),
        multipliers=[float(run.multipliers.min()), float(run.multipliers.max())],
        theta=[] if theta is None else [float(theta.min()), float(theta.max())],
        seconds=run.seconds + run.compile_seconds,
    )
