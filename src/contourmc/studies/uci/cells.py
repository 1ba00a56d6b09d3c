"""The cells of Table 1: a method on a data set, on all splits at once."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from contourmc.flattening.partition import Partition
from contourmc.kernels.base import Kernel
from contourmc.kernels.contour import contour
from contourmc.kernels.dynamics import Dynamics
from contourmc.kernels.schedules import Polynomial
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
PAPERS = {"energy": (1.0, 1.0), "concrete": (5.0, 1.0), "yacht": (1.0, 2.5), "wine": (5.0, 10.0)}  # τ, ζ

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
BASELINES = {"CSGLD": "SGLD", "CSGHMC": "SGHMC"}  # of the contour methods
FILE = Path(__file__).with_name("search.json")  # the settings that the search chose, and its scores
FAMILIES = {contour: tuple(METHODS)[i : i + 3] for i, contour in zip((0, 3), BASELINES, strict=True)}


@dataclass(frozen=True)
class Model:
    """What a contour method shares with the other two of its family. The paper gives the temperature only.

    temperature: τ.
    activation: of the hidden layer.
    normalised: whether the network predicts targets of mean 0 and deviation 1 on the training set, or as they are.
    noise: σ of the likelihood, y ~ N(network(x), σ²), in the units of what the network predicts.
    burn_in: the share of the run before the first model that is averaged.
    """

    temperature: float
    activation: Literal["relu", "tanh"]
    normalised: bool
    noise: float
    burn_in: float


@dataclass(frozen=True)
class Flattening:
    """The further settings of a contour method. The paper gives ζ and the width Δu = 100 of the bins only.

    zeta: ζ.
    low, bins: where the energy partition begins, and how many bins it has.
    omega: A of ω_k, the step size of learning θ.
    power: of θ in the weight of a model: 1, or 0 for equal weights.
    """

    zeta: float
    low: float
    bins: int
    omega: float
    power: float


class Split(NamedTuple):
    """Inputs, normalised by the statistics of the training set, and targets as they are."""

    train: tuple[Float[np.ndarray, "n features"], Float[np.ndarray, " n"]]
    test: tuple[Float[np.ndarray, "m features"], Float[np.ndarray, " m"]]


@dataclass(frozen=True)
class Cell:
    """The results of a method on a data set; a number for each split.

    rmse: of the mean of the models, in the units of the target.
    nll: minus the mean log density of the mixture of the models.
    coverage: the share of the targets in its central 90% interval.
    last_rmse: of the last model alone.
    effective_models: how many equally weighted models the average is worth.
    energies: the quantiles 0, 0.1, 0.5, 0.9 and 1 of the energies of the models, over all splits.
    multipliers: the least and the largest gradient multiplier at a model.
    """

    rmse: list[float]
    nll: list[float]
    coverage: list[float]
    last_rmse: list[float]
    effective_models: list[float]
    energies: list[float]
    multipliers: list[float]
    seconds: float


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
    x, y = datasets.uci(name, data)
    return [split(x, y, seed, inner=inner) for seed in range(seeds)]


def chosen(name: str, method: str) -> tuple[Model, Flattening]:
    """The settings of a data set for the family of a contour method, as the search found them."""
    found = scores()[name][method]
    return Model(**found["model"]), Flattening(**found["flattening"])


def scores() -> dict[str, Any]:
    """The package's record of the search, by data set and contour method."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def _network(activation: Callable[[Array], Array]) -> Callable[[Any, Any], Array]:
    def apply(params: Any, x: Array) -> Array:
        hidden = activation(x @ params["hidden"]["kernel"] + params["hidden"]["bias"])
        return hidden @ params["output"]["kernel"] + params["output"]["bias"]

    return apply


_NETWORKS = {"relu": _network(jax.nn.relu), "tanh": _network(jnp.tanh)}


def _init(features: int) -> Callable[[PRNGKeyArray], Any]:
    """Weights of variance 1 / (inputs of the layer), biases 0."""

    def layer(key: PRNGKeyArray, inputs: int, outputs: int) -> dict[str, Array]:
        return {"kernel": jax.random.normal(key, (inputs, outputs)) * inputs**-0.5, "bias": jnp.zeros(outputs)}

    def init(key: PRNGKeyArray) -> Any:
        hidden_key, output_key = jax.random.split(key)
        return {"hidden": layer(hidden_key, features, HIDDEN), "output": layer(output_key, HIDDEN, 1)}

    return init


def _units(targets: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """The mean and the standard deviation of the targets."""
    return float(targets.mean()), float(targets.std())


@dataclass(frozen=True)
class LearnAfter:
    """ω_k = A / ((k − begin)^0.75 + 1000), and practically zero up to step `begin`.

    For thousands of steps after the start a chain passes through high energies to which it never returns. A θ learnt
    from them is wrong by many orders of magnitude, and with w = θ(J) it recovers very slowly.
    """

    scale: float
    begin: int

    def __call__(self, step: Array) -> Array:
        omega = Polynomial(self.scale, 0.75, 1000.0)(jnp.maximum(step - self.begin, 1))
        return jnp.where(step > self.begin, omega, 1e-30)


def make_kernel(method: str, model: Model, flattening: Flattening | None, burn_in: int) -> Kernel:
    """The kernel of a method. θ is learnt after burn-in, by the rule for networks, which can cope with a large ζ."""
    dynamics = METHODS[method](model.temperature)
    if flattening is None:
        return dynamics
    return contour(
        dynamics,
        Partition(flattening.low, WIDTH, flattening.bins),
        zeta=flattening.zeta,
        omega=LearnAfter(flattening.omega, burn_in),
        scheme="left",
        rule="scalable",
    )


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
    likelihood = GaussianLikelihood(_NETWORKS[model.activation], model.noise)
    # Models are weighted by θ, as the rule w = θ(J) learns it, or equally: with θ^ζ a few would dominate the average.
    tempering = 1.0 if flattening is None else flattening.power / flattening.zeta
    units = [_units(one.train[1]) if model.normalised else (0.0, 1.0) for one in splits]
    targets, averages = [], []
    for (train_x, train_y), (test_x, test_y), (centre, scale) in zip(*zip(*splits, strict=True), units, strict=True):
        data = train_x, (train_y - centre) / scale
        targets.append(Posterior(likelihood, GaussianPrior(PRECISION), data, BATCH))
        averages.append(RegressionAverage(likelihood.predict, test_x, (test_y - centre) / scale, tempering))
    steps = epochs * targets[0].steps_per_epoch
    thin = max(1, int((1 - model.burn_in) * steps) // MODELS)
    burn_in = steps - thin * MODELS
    run = sample(
        targets,
        init=_init(splits[0].train[0].shape[1]),
        steps=steps,
        kernel=make_kernel(method, model, flattening, burn_in),
        burn_in=burn_in,
        thin=thin,
        average=averages,
        store=False,
        progress=progress,
    )
    run = complete(run)
    found, scales = run.average, [scale for _, scale in units]
    return Cell(
        rmse=[one.rmse * scale for one, scale in zip(found, scales, strict=True)],
        nll=[one.nll + math.log(scale) for one, scale in zip(found, scales, strict=True)],
        coverage=[one.coverage(0.9) for one in found],
        last_rmse=[float(one.points.last_error[0]) * scale for one, scale in zip(found, scales, strict=True)],
        effective_models=[float(one.effective_models[0]) for one in found],
        energies=np.quantile(run.energies, [0, 0.1, 0.5, 0.9, 1]).tolist(),
        multipliers=[float(run.multipliers.min()), float(run.multipliers.max())],
        seconds=run.seconds + run.compile_seconds,
    )
