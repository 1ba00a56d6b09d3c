"""The paper's Table 1, and the two recipes that are compared with it: the paper's algorithm, and our best settings.

The paper leaves open the activation, the units of the targets, the noise of the likelihood, u₁, m, ω_k and when models
are taken. The recipe of the paper sets the first three as a public program does that its first author wrote for an
earlier paper (https://github.com/WayneDW/Bayesian-Sparse-Deep-Learning, uci_run.py, uci_net.py and uci_data.py), with
the same hidden layer, batch size, L2 penalty and momentum as in Table 1. `readings.py` compares it with other readings.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from contourmc.flattening.partition import Partition
from contourmc.kernels.contour import Contour, contour
from contourmc.kernels.dynamics import Dynamics
from contourmc.kernels.schedules import Polynomial
from contourmc.studies.uci.cells import COOLING, FAMILIES, WIDTH, Flattening, Model

FILE = Path(__file__).with_name("search.json")  # the settings that our search chose, and its scores

# τ and ζ of Table 1. It does not say which target of Energy it has; both get the same settings.
PAPERS = {"energy": (1.0, 1.0), COOLING: (1.0, 1.0), "concrete": (5.0, 1.0), "yacht": (1.0, 2.5), "wine": (5.0, 10.0)}
TITLES = {
    "energy": "Energy (heating load)",
    COOLING: "Energy (cooling load)",
    "concrete": "Concrete",
    "yacht": "Yacht",
    "wine": "Wine",
}

# Mean RMSE and standard deviation over ten runs. The column Energy is compared with the cooling load.
PAPERS_TABLE: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "SGD": {COOLING: (1.13, 0.07), "concrete": (4.60, 0.14), "yacht": (0.81, 0.08), "wine": (0.65, 0.01)},
    "SGLD": {COOLING: (1.08, 0.07), "concrete": (4.12, 0.10), "yacht": (0.72, 0.07), "wine": (0.63, 0.01)},
    "CSGLD": {COOLING: (1.02, 0.06), "concrete": (3.98, 0.11), "yacht": (0.69, 0.06), "wine": (0.62, 0.01)},
    "M-SGD": {COOLING: (0.95, 0.07), "concrete": (4.32, 0.27), "yacht": (0.73, 0.08), "wine": (0.71, 0.02)},
    "SGHMC": {COOLING: (0.77, 0.06), "concrete": (4.25, 0.19), "yacht": (0.66, 0.07), "wine": (0.67, 0.02)},
    "CSGHMC": {COOLING: (0.76, 0.06), "concrete": (4.15, 0.20), "yacht": (0.72, 0.09), "wine": (0.65, 0.01)},
}


# --- How each recipe flattens ------------------------------------------------------------------------


@dataclass(frozen=True)
class AsPublished(Flattening):
    """Algorithm 1 of the paper: θ is learnt from the first step by its step 3, and a model's weight is θ^ζ(J).

    low: u₁. The energy Σ(y − f)² is 0 or more, so the first bin is as wide as the others.
    bins: m. With 1000, the most that the paper suggests, every model of SGLD and SGHMC is below the last bin.
    """

    low: float = WIDTH
    bins: int = 1000

    @property
    def tempering(self) -> float:
        return 1.0

    def kernel(self, dynamics: Dynamics, burn_in: int) -> Contour:
        kernel = contour(
            dynamics,
            Partition(self.low, WIDTH, self.bins),
            zeta=self.zeta,
            omega=Polynomial(10.0, 0.75, 1000.0),  # ω_k of the paper's networks
            scheme="left",
            rule="original",
            weights="step",
        )
        assert isinstance(kernel, Contour)
        return kernel


@dataclass(frozen=True)
class LearntAfterBurnIn(Flattening):
    """Our flattening: θ is learnt after burn-in, by the rule w = θ(J), which still learns at a large ζ.

    low, bins: where the energy partition begins, and how many bins it has.
    omega: A of ω_k = A / (k^0.75 + 1000), the step size of learning θ.
    power: the power of θ in the weight of a model: 1, or 0 for equal weights.
    """

    low: float
    bins: int
    omega: float
    power: float

    @property
    def tempering(self) -> float:
        return self.power / self.zeta

    def kernel(self, dynamics: Dynamics, burn_in: int) -> Contour:
        kernel = contour(
            dynamics,
            Partition(self.low, WIDTH, self.bins),
            zeta=self.zeta,
            omega=_LearnAfter(self.omega, burn_in),
            scheme="left",
            rule="scalable",
        )
        assert isinstance(kernel, Contour)
        return kernel


@dataclass(frozen=True)
class _LearnAfter:
    """ω_k = A / ((k − begin)^0.75 + 1000), and practically zero up to step `begin`.

    For thousands of steps after the start a chain passes through high energies to which it never returns. A θ learnt
    there is wrong by many orders of magnitude, and with w = θ(J) it recovers very slowly.
    """

    scale: float
    begin: int

    def __call__(self, step: Array) -> Array:
        omega = Polynomial(self.scale, 0.75, 1000.0)(jnp.maximum(step - self.begin, 1))
        return jnp.where(step > self.begin, omega, 1e-30)


# --- The recipes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """A way to fill Table 1.

    key: the name in records and figures.
    title: the name in reports.
    data_sets: the columns.
    quick: the columns of a quick run.
    """

    key: str
    title: str
    data_sets: Sequence[str]
    quick: Sequence[str] = ("yacht",)

    def settings(self, name: str, family: str) -> tuple[Model, Flattening]:
        """The settings of a data set for the family of a contour method."""
        return papers_settings(name) if self is PAPER else chosen(name, family)

    def described(self, name: str) -> dict[str, Any]:
        """The settings of a data set as plain data, by contour method."""
        pairs = {family: self.settings(name, family) for family in FAMILIES}
        return {
            family: {"model": asdict(model), "flattening": asdict(flattening)}
            for family, (model, flattening) in pairs.items()
        }


PAPER = Recipe("paper", "The paper's algorithm", (COOLING, "concrete", "yacht", "wine"))
BEST = Recipe("best", "Our best recipe", ("energy", "concrete", "yacht", "wine"))
RECIPES = {recipe.key: recipe for recipe in (PAPER, BEST)}


def papers_settings(name: str) -> tuple[Model, AsPublished]:
    """The paper's τ and ζ, and for what it leaves open the conventions of its first author's programs.

    The energy of a batch is (N/n)·Σ(y − f)², which is σ = √½. Models are taken from 60% of the run on, as in the
    program for SG-MCMC of the same author (https://github.com/WayneDW/Stochastic_Gradient_MCMC, trainer.py).
    """
    temperature, zeta = PAPERS[name]
    return Model(temperature, "relu", False, 0.5**0.5, 0.6, as_authors=True), AsPublished(zeta)


def chosen(name: str, method: str) -> tuple[Model, LearntAfterBurnIn]:
    """The settings of a data set for the family of a contour method, as our search found them."""
    found = scores()[name][method]
    return Model(**found["model"]), LearntAfterBurnIn(**found["flattening"])


def scores() -> dict[str, Any]:
    """The package's record of the search, by data set and contour method."""
    return json.loads(FILE.read_text(encoding="utf-8"))
