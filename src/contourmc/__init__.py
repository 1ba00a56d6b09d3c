"""contourmc: sampling distributions with many modes by contour stochastic-gradient MCMC."""

from contourmc.averages import Average
from contourmc.classification import ClassificationAverage
from contourmc.kernels.adjusted import adjusted
from contourmc.kernels.base import Info, Kernel
from contourmc.kernels.contour import contour, csghmc, csgld, ksgld
from contourmc.kernels.langevin import langevin
from contourmc.kernels.replica_exchange import replica_exchange
from contourmc.kernels.sghmc import momentum_sgd, sghmc
from contourmc.kernels.sgld import sgd, sgld
from contourmc.likelihoods import CategoricalLikelihood, GaussianLikelihood, HeteroscedasticLikelihood
from contourmc.partition import Partition
from contourmc.posterior import Posterior
from contourmc.priors import GaussianPrior
from contourmc.regression import RegressionAverage
from contourmc.run import DivergenceError
from contourmc.samples import Samples
from contourmc.sampling import sample
from contourmc.schedules import CyclicCosine, ExponentialDecay, Polynomial
from contourmc.streamed import StreamedPosterior
from contourmc.targets import ExactEnergy, NoisyEnergy, Target

__version__ = "0.1.0"

__all__ = [
    "Average",
    "CategoricalLikelihood",
    "ClassificationAverage",
    "CyclicCosine",
    "DivergenceError",
    "ExactEnergy",
    "ExponentialDecay",
    "GaussianLikelihood",
    "GaussianPrior",
    "HeteroscedasticLikelihood",
    "Info",
    "Kernel",
    "NoisyEnergy",
    "Partition",
    "Polynomial",
    "Posterior",
    "RegressionAverage",
    "Samples",
    "StreamedPosterior",
    "Target",
    "adjusted",
    "contour",
    "csghmc",
    "csgld",
    "ksgld",
    "langevin",
    "momentum_sgd",
    "replica_exchange",
    "sample",
    "sgd",
    "sghmc",
    "sgld",
]
