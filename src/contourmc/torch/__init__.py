"""The samplers as optimisers of PyTorch, and the ensemble of networks that they draw."""

from contourmc.torch.ensemble import Ensemble
from contourmc.torch.lightning import ensemble_callback
from contourmc.torch.optimisers import CSGHMC, CSGLD, SGHMC, SGLD
from contourmc.torch.sampler import Sampler

__all__ = ["CSGHMC", "CSGLD", "SGHMC", "SGLD", "Ensemble", "Sampler", "ensemble_callback"]
