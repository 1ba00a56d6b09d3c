"""contourmc: sampling distributions with many modes by contour stochastic-gradient MCMC."""

from typing import TYPE_CHECKING, Any

from contourmc import callbacks
from contourmc._core.info import Info
from contourmc._core.processes import distributed
from contourmc.data.data_error import DataError, EnergyError
from contourmc.draws.samples import Samples
from contourmc.engine.run import DivergenceError, OutOfMemoryError, Run
from contourmc.flattening.following import Following
from contourmc.flattening.partition import Partition
from contourmc.flattening.rules import Biased, Original, Rule, Scalable, Visits
from contourmc.kernels.adjusted import adjusted
from contourmc.kernels.base import Kernel
from contourmc.kernels.basin_shapes import basin_shapes
from contourmc.kernels.contour import Contour, contour, csghmc, csgld, ksgld
from contourmc.kernels.jumps import jumps
from contourmc.kernels.langevin import langevin
from contourmc.kernels.replica_exchange import replica_exchange
from contourmc.kernels.schedules import CyclicCosine, ExponentialDecay, Polynomial
from contourmc.kernels.sghmc import momentum_sgd, sghmc
from contourmc.kernels.sgld import sgd, sgld
from contourmc.predictions.average import Average
from contourmc.predictions.classification import ClassificationAverage
from contourmc.predictions.regression import RegressionAverage
from contourmc.sampling.sample import resume, sample
from contourmc.sampling.start import start
from contourmc.targets.base import Target
from contourmc.targets.box import Box
from contourmc.targets.constraints import interval, ordered, periodic, positive, simplex
from contourmc.targets.energies import ExactEnergy, NoisyEnergy, from_log_density
from contourmc.targets.external import external
from contourmc.targets.likelihoods import CategoricalLikelihood, GaussianLikelihood, HeteroscedasticLikelihood
from contourmc.targets.posterior import Posterior
from contourmc.targets.priors import GaussianPrior
from contourmc.targets.streamed_posterior import StreamedPosterior
from contourmc.targets.transformed import transformed

if TYPE_CHECKING:
    from contourmc import plots as plots
    from contourmc.numpyro import from_numpyro as from_numpyro
    from contourmc.pymc import from_pymc as from_pymc

__version__ = "0.2.0"

__all__ = [
    "Average",
    "Biased",
    "Box",
    "CategoricalLikelihood",
    "ClassificationAverage",
    "Contour",
    "CyclicCosine",
    "DataError",
    "DivergenceError",
    "EnergyError",
    "ExactEnergy",
    "ExponentialDecay",
    "Following",
    "GaussianLikelihood",
    "GaussianPrior",
    "HeteroscedasticLikelihood",
    "Info",
    "Kernel",
    "NoisyEnergy",
    "Original",
    "OutOfMemoryError",
    "Partition",
    "Polynomial",
    "Posterior",
    "RegressionAverage",
    "Rule",
    "Run",
    "Samples",
    "Scalable",
    "StreamedPosterior",
    "Target",
    "Visits",
    "adjusted",
    "basin_shapes",
    "callbacks",
    "contour",
    "csghmc",
    "csgld",
    "distributed",
    "external",
    "from_log_density",
    "from_numpyro",
    "from_pymc",
    "interval",
    "jumps",
    "ksgld",
    "langevin",
    "momentum_sgd",
    "ordered",
    "periodic",
    "positive",
    "replica_exchange",
    "resume",
    "sample",
    "sgd",
    "sghmc",
    "sgld",
    "simplex",
    "start",
    "transformed",
]


def __getattr__(name: str) -> Any:
    """What is imported when it is first used, since it brings other libraries: Matplotlib, NumPyro, PyMC."""
    from importlib import import_module

    if name == "plots":
        return import_module("contourmc.plots")
    if name in ("from_numpyro", "from_pymc"):
        return getattr(import_module(f"contourmc.{name.removeprefix('from_')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
